#include "PlanPictures.h"

#include "windlass/Dialect/Sched/Analysis/MemoryCourse.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Explain/StepPictures.h"

#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

/// The most rows of operators that the page has.
constexpr size_t kMostRows = 200;
/// The column at which the printed report's lines say something behind their names.
constexpr size_t kNameColumns = 11;

/// Returns the lines of the printed report, taken apart.
static report::Facts listFacts(PlanReport report) {
  report.rows.clear();
  std::string text;
  llvm::raw_string_ostream out(text);
  printText(report, /*showsModel=*/false, out);
  report::Facts facts;
  SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    facts.emplace_back(line.take_front(kNameColumns).trim().str(), line.substr(kNameColumns).trim().str());
  return facts;
}

static void addTimeline(report::PlanPage &page, Compilation &compilation, const PlanChoice &choice,
                        const StepPrediction &prediction) {
  StepTimeline timeline(compilation.getModule(), prediction);
  compilation.predict(choice, [&](const SimulatedCommand &command) { timeline.add(command); });
  page.timeline.seconds = prediction.seconds;
  for (const char *name : getOccupationNames())
    page.timeline.occupations.push_back(name);
  double column = prediction.seconds / StepTimeline::kColumns;
  for (const TimelineLane &lane : timeline.getLanes()) {
    report::Lane &drawn = page.timeline.lanes.emplace_back();
    drawn.name = lane.name;
    for (const auto &seconds : lane.columns) {
      std::vector<double> &shares = drawn.parts.emplace_back();
      for (double each : seconds)
        shares.push_back(each / column);
    }
  }
  if (timeline.leavesRepeatsOut())
    page.timeline.note =
        "Micro-batches that take the same time as those before them are left out, where the picture is empty.";
}

static void addShares(report::PlanPage &page, const StepPrediction &prediction) {
  for (const PositionPrediction &position : prediction.positions)
    for (const StepWindow &window : position.windows)
      if (!llvm::is_contained(page.windows, window.name))
        page.windows.push_back(window.name);
  for (auto [number, position] : llvm::enumerate(prediction.positions))
    for (const auto &[stream, all] : position.streams) {
      std::string where = prediction.positions.size() > 1 ? "position " + std::to_string(number) + ", " : "";
      std::vector<double> &shares = page.shares.emplace_back(where + stream, std::vector<double>()).second;
      for (const std::string &name : page.windows) {
        double seconds = 0;
        for (const StepWindow &window : position.windows)
          if (auto busy = window.busySeconds.find(stream); window.name == name && busy != window.busySeconds.end())
            seconds += busy->second;
        shares.push_back(seconds / prediction.seconds);
      }
    }
}

static void addMemory(report::MemoryPicture &picture, const sched::MemoryCourse &course, int64_t limit) {
  for (const sched::MemoryCourse::Layer &layer : course.layers)
    picture.layers.push_back({layer.name, std::vector<double>(layer.bytes.begin(), layer.bytes.end())});
  picture.functions = course.functions;
  picture.limit = limit;
}

report::PlanPage windlass::drawPlan(Compilation &compilation, const PlanReport &report, const PlanChoice &choice) {
  report::PlanPage page;
  page.title = llvm::sys::path::filename(report.model).str();
  page.facts = listFacts(report);
  SmallVector<sched::ProgramOp> programs = sched::getPrograms(compilation.getModule());
  for (sched::ProgramOp program : programs) {
    report::Stage &stage = page.stages.emplace_back();
    stage.name = programs.size() > 1 ? "position " + std::to_string(program.getPosition()) : "all devices";
    for (plan::AxisAttr axis : program.getMesh().getAxes())
      if (axis.getSize() > 1)
        stage.axes.emplace_back(axis.getName().getValue().str(), axis.getSize());
  }
  for (const PlanRow &row : llvm::ArrayRef(report.rows).take_front(kMostRows)) {
    report::SplitRow &drawn = page.rows.emplace_back();
    drawn.operators = row.operators;
    drawn.count = row.count;
    drawn.splits.assign(row.split.begin(), row.split.end());
    drawn.weight = row.weight;
  }
  page.moreRows = static_cast<int64_t>(report.rows.size() - page.rows.size());
  addTimeline(page, compilation, choice, report.prediction);
  addShares(page, report.prediction);
  addMemory(page.memory, sched::followMemory(compilation.getProgram()), report.memoryLimit);
  return page;
}
