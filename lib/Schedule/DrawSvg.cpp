#include "windlass/Schedule/DrawPipeline.h"

#include "Boxes.h"

#include "windlass/Support/Markup.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace windlass;
using namespace windlass::schedule;
using llvm::formatv;
using llvm::Twine;

namespace {

constexpr double kLeft = 64, kRight = 16, kTop = 40, kRow = 26, kBox = 22, kBottom = 52;
/// The width of all boxes together, where boxes of average length are not narrower than they should be.
constexpr double kLeastWidth = 900, kMostWidth = 30'000, kGoodBox = 22;
/// The least width of a box, for each letter, with a text inside of it.
constexpr double kLetter = 7;

/// Plain colours, since not every viewer knows variables.
constexpr char kStyle[] = R"(<style>
text { font: 11px system-ui, sans-serif; fill: #222; } .middle { text-anchor: middle; } .title { font-size: 14px; }
.paper { fill: #fff; } .grid { stroke: #8886; } .box { stroke: #444; stroke-width: .6; } .later { stroke-width: 1.8; }
.f { fill: #a9c8ee; } .b { fill: #a5d8b0; } .w { fill: #f3d19b; } .x { fill: #d5bfe8; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e6e6; } .paper { fill: #16181c; } .box { stroke: #bbb; }
  .f { fill: #2f5a8c; } .b { fill: #2c6b45; } .w { fill: #80601f; } .x { fill: #624284; }
}
</style>
)";

class SvgDrawing {
public:
  SvgDrawing(const TimedPipeline &step, llvm::StringRef title) : step(step), title(title) {}

  llvm::Expected<std::string> run() {
    int64_t positions = step.pipeline.placement.positions, count = 0;
    double length = 0;
    std::vector<std::vector<Box>> boxes;
    for (int64_t position = 0; position < positions; ++position) {
      boxes.push_back(listBoxes(step, position));
      count += static_cast<int64_t>(boxes.back().size());
      for (const Box &box : boxes.back())
        length += static_cast<double>(box.getLength());
    }
    if (count > kMaxDrawnBoxes || positions > kMaxDrawnBoxes)
      return llvm::createStringError("has " + Twine(count) + " actions that take time; at most " +
                                     Twine(kMaxDrawnBoxes) + " can be drawn");
    double makespan = static_cast<double>(step.timing.makespan);
    if (count > 0)
      width = std::clamp(makespan * static_cast<double>(count) / length * kGoodBox, kLeastWidth, kMostWidth);
    pixelsPerTick = makespan > 0 ? width / makespan : 0;
    begin(kTop + kRow * static_cast<double>(positions) + kBottom, positions);
    for (int64_t position = 0; position < positions; ++position)
      drawRow(position, boxes[position]);
    drawKey(kTop + kRow * static_cast<double>(positions) + kBottom - 12);
    return std::move(svg) + "</svg>\n";
  }

private:
  double getX(int64_t time) const { return kLeft + static_cast<double>(time) * pixelsPerTick; }
  static double getY(int64_t position) { return kTop + kRow * static_cast<double>(position); }

  void begin(double height, int64_t positions) {
    double all = kLeft + width + kRight;
    std::string text = escapeMarkup(llvm::json::fixUTF8(title));
    svg = formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:f0} {1:f0}\" width=\"{0:f0}\" "
                  "height=\"{1:f0}\" role=\"img\">\n<title>{2}</title>\n",
                  all, height, text);
    svg += kStyle;
    svg += formatv("<rect class=\"paper\" width=\"{0:f0}\" height=\"{1:f0}\"/>\n"
                   "<text class=\"title\" x=\"{2:f0}\" y=\"18\">{3}</text>\n",
                   all, height, kLeft, text);
    drawRuler(getY(positions));
  }

  /// Draws a line from the first row to `bottom` at round times, and the time below it.
  void drawRuler(double bottom) {
    constexpr double kStep = 60;
    double perUnit = pixelsPerTick * step.ticksPerUnit;
    if (perUnit <= 0)
      return;
    double unit = roundUpStep(kStep / perUnit);
    for (int64_t index = 0; static_cast<double>(index) * unit * perUnit <= width; ++index) {
      double time = static_cast<double>(index) * unit, x = kLeft + time * perUnit;
      svg += formatv("<line class=\"grid\" x1=\"{0:f1}\" x2=\"{0:f1}\" y1=\"{1:f0}\" y2=\"{2:f0}\"/>"
                     "<text class=\"middle\" x=\"{0:f1}\" y=\"{3:f0}\">{4}</text>\n",
                     x, kTop - 6, bottom + 4, bottom + 17, printTime(time));
    }
  }

  void drawRow(int64_t position, const std::vector<Box> &boxes) {
    double y = getY(position);
    svg += formatv("<text x=\"8\" y=\"{0:f0}\">rank {1}</text>\n", y + 15, position);
    for (const Box &box : boxes) {
      double x = getX(box.begin), boxWidth = getX(box.end) - x;
      svg += formatv("<g><title>{0} of micro-batch {1} of chunk {2}, {3} to {4}</title>"
                     "<rect class=\"box {5}{6}\" x=\"{7:f1}\" y=\"{8:f0}\" width=\"{9:f1}\" height=\"{10:f0}\"/>",
                     getText(box.kind), box.microBatch, box.chunk, printTime(step.inUnits(box.begin)),
                     printTime(step.inUnits(box.end)), getClass(box.kind), box.isLaterChunk ? " later" : "", x, y,
                     boxWidth, kBox);
      std::string number = std::to_string(box.microBatch);
      if (boxWidth >= kLetter * static_cast<double>(number.size()) + 2)
        svg += formatv("<text class=\"middle\" x=\"{0:f1}\" y=\"{1:f0}\">{2}</text>", x + boxWidth / 2, y + 15, number);
      svg += "</g>\n";
    }
  }

  void drawKey(double y) {
    double x = kLeft;
    for (ActionKind kind :
         {ActionKind::Forward, ActionKind::Backward, ActionKind::InputGradient, ActionKind::WeightGradient}) {
      svg += formatv("<rect class=\"box {0}\" x=\"{1:f0}\" y=\"{2:f0}\" width=\"12\" height=\"12\"/>"
                     "<text x=\"{3:f0}\" y=\"{4:f0}\">{5}</text>\n",
                     getClass(kind), x, y - 10, x + 17, y, getText(kind));
      x += 120;
    }
    svg += formatv(
        "<text x=\"{0:f0}\" y=\"{1:f0}\">numbers: micro-batches; thick frames: further chunks of a rank</text>\n", x,
        y);
  }

  static llvm::StringRef getClass(ActionKind kind) {
    return kind == ActionKind::Forward         ? "f"
           : kind == ActionKind::Backward      ? "x"
           : kind == ActionKind::InputGradient ? "b"
                                               : "w";
  }
  static std::string getText(ActionKind kind) {
    std::string text = getName(kind).str();
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
  }

  const TimedPipeline &step;
  llvm::StringRef title;
  double width = kLeastWidth, pixelsPerTick = 0;
  std::string svg;
};

} // namespace

llvm::Expected<std::string> windlass::schedule::drawSvg(const TimedPipeline &step, llvm::StringRef title) {
  return SvgDrawing(step, title).run();
}
