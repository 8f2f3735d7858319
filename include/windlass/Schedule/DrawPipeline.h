// Drawings of a step: a row for each position, boxes in proportion to time. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_DRAWPIPELINE_H
#define WINDLASS_SCHEDULE_DRAWPIPELINE_H

#include "windlass/Schedule/PipelineTiming.h"

#include <string>

namespace windlass::schedule {

/// A step with the time that it takes. The drawings do not know pairs that are fused.
struct TimedPipeline {
  Pipeline pipeline;
  PipelineTimes times;
  PipelineTiming timing;
  /// The number of ticks of `times` in one of the units in which times are printed.
  double ticksPerUnit = 1;

  /// Returns a time in units.
  double inUnits(int64_t ticks) const { return static_cast<double>(ticks) / ticksPerUnit; }
};

/// Returns a time as text, with at most six digits.
std::string printTime(double units);

/// The most positions that `drawText` draws, and the most boxes that `drawSvg` draws.
constexpr int64_t kMaxDrawnPositions = 64, kMaxDrawnBoxes = int64_t(1) << 16;

/// Draws the step as text of at most `columns` columns, at least 40. A box begins with the letter of its operation,
/// `F`, `B`, `W` or `BW` as in `writeOrders`, small for all but the first chunk of its position, and the number of its
/// micro-batch where both fit. A long step is drawn in several panels, one below the other; further positions are
/// counted.
std::string drawText(const TimedPipeline &step, int64_t columns);

/// Draws the step as an SVG document that needs nothing else, for dark and light pages, in which each box has a title
/// that says what runs and when. Fails where there are more than `kMaxDrawnBoxes` boxes.
llvm::Expected<std::string> drawSvg(const TimedPipeline &step, llvm::StringRef title);

} // namespace windlass::schedule

#endif
