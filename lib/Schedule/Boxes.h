// What drawings of a step show: a box for each forward and backward.
#ifndef WINDLASS_SCHEDULE_BOXES_H
#define WINDLASS_SCHEDULE_BOXES_H

#include "windlass/Schedule/DrawPipeline.h"

namespace windlass::schedule {

struct Box {
  ActionKind kind;
  int64_t chunk, microBatch;
  /// The box's ends in ticks.
  int64_t begin, end;
  /// Whether the position runs an earlier chunk of the model too.
  bool isLaterChunk;

  int64_t getLength() const { return end - begin; }
};

/// Lists the boxes of a position that take time, in their order.
std::vector<Box> listBoxes(const TimedPipeline &step, int64_t position);

/// Returns the word for a forward or a kind of backward: `F`, `B`, `W` or `BW`, a whole backward; nothing for others.
llvm::StringRef getWord(ActionKind kind);

/// Returns 1, 2 or 5 times a power of ten that is at least `least`, above 0.
double roundUpStep(double least);

} // namespace windlass::schedule

#endif
