#include "windlass/Schedule/DrawPipeline.h"

#include "Boxes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace windlass::schedule;
using llvm::Twine;

namespace {

/// The columns of a box of average length, where the step has room for them, and at most; the most panels.
constexpr double kGoodWidth = 4, kMostWidth = 10;
constexpr int64_t kMostPanels = 6;

class TextDrawing {
public:
  TextDrawing(const TimedPipeline &step, int64_t columns)
      : step(step), drawn(std::min(step.pipeline.placement.positions, kMaxDrawnPositions)),
        labelWidth(("rank " + Twine(drawn - 1) + " ").str().size()), panelWidth(columns - labelWidth) {
    for (int64_t position = 0; position < drawn; ++position)
      boxes.push_back(listBoxes(step, position));
  }

  std::string run() {
    if (!scale())
      return "no action takes time\n";
    std::vector<std::string> rows;
    for (const std::vector<Box> &each : boxes)
      rows.push_back(drawRow(each));
    std::string ruler = drawRuler(), text;
    for (int64_t panel = 0; panel < panels; ++panel) {
      add(text, "time", ruler, panel);
      for (auto [position, row] : llvm::enumerate(rows))
        add(text, "rank " + std::to_string(position), row, panel);
      if (panel + 1 < panels)
        text += '\n';
    }
    if (int64_t hidden = step.pipeline.placement.positions - drawn; hidden > 0)
      text += ("and " + Twine(hidden) + " more ranks\n").str();
    return text + explainLetters();
  }

private:
  /// Chooses the number of panels, and how many columns a tick takes. Returns false where nothing takes time.
  bool scale() {
    double count = 0, length = 0;
    for (const std::vector<Box> &each : boxes)
      for (const Box &box : each) {
        ++count;
        length += static_cast<double>(box.getLength());
      }
    if (count == 0)
      return false;
    double makespan = static_cast<double>(step.timing.makespan), average = length / count;
    double good = makespan / average * kGoodWidth;
    panels = static_cast<int64_t>(
        std::clamp(std::ceil(good / static_cast<double>(panelWidth)), 1.0, static_cast<double>(kMostPanels)));
    columnsPerTick = std::min(static_cast<double>(panels * panelWidth) / makespan, kMostWidth / average);
    return true;
  }

  int64_t getColumn(int64_t time) const { return std::llround(static_cast<double>(time) * columnsPerTick); }

  std::string drawRow(const std::vector<Box> &boxes) const {
    std::string row(getColumn(step.timing.makespan), ' ');
    for (const Box &box : boxes) {
      size_t begin = getColumn(box.begin), width = getColumn(box.end) - begin;
      std::string text = getWord(box.kind).str() + std::to_string(box.microBatch);
      if (text.size() > width)
        text.resize(std::min<size_t>(width, 1));
      if (box.isLaterChunk)
        text = llvm::StringRef(text).lower();
      text.resize(width, getFill(box.kind));
      row.replace(begin, width, text);
    }
    return row;
  }

  static char getFill(ActionKind kind) {
    return kind == ActionKind::Forward ? '>' : kind == ActionKind::WeightGradient ? '-' : '<';
  }

  /// Draws a bar and the time behind it at round times.
  std::string drawRuler() const {
    constexpr double kColumnsOfStep = 10;
    std::string ruler(getColumn(step.timing.makespan), ' ');
    double perUnit = columnsPerTick * step.ticksPerUnit, unit = roundUpStep(kColumnsOfStep / perUnit);
    for (int64_t index = 0;; ++index) {
      double time = unit * static_cast<double>(index);
      std::string text = "|" + printTime(time);
      size_t at = std::llround(time * perUnit);
      if (at + text.size() > ruler.size())
        return ruler;
      ruler.replace(at, text.size(), text);
    }
  }

  /// Adds the part of a row that belongs to a panel.
  void add(std::string &text, std::string label, llvm::StringRef row, int64_t panel) const {
    label.resize(labelWidth, ' ');
    llvm::StringRef part = row.substr(panel * panelWidth, panelWidth).rtrim();
    text += (label + part).str();
    text = llvm::StringRef(text).rtrim(' ').str() + "\n";
  }

  std::string explainLetters() const {
    bool splits = false, isWhole = false, hasLater = false;
    for (const std::vector<Box> &each : boxes)
      for (const Box &box : each) {
        splits |= box.kind == ActionKind::InputGradient;
        isWhole |= box.kind == ActionKind::Backward;
        hasLater |= box.isLaterChunk;
      }
    std::string text = "F forward";
    if (splits)
      text += ", B input gradient, W weight gradient";
    if (isWhole)
      text += ", BW whole backward";
    text += ", and the micro-batch where it fits";
    return text + (hasLater ? "; small letters: further chunks\n" : "\n");
  }

  const TimedPipeline &step;
  int64_t drawn;
  size_t labelWidth;
  int64_t panelWidth, panels = 1;
  double columnsPerTick = 0;
  std::vector<std::vector<Box>> boxes;
};

} // namespace

std::string windlass::schedule::drawText(const TimedPipeline &step, int64_t columns) {
  return TextDrawing(step, columns).run();
}
