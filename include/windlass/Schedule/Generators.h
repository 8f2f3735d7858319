// Published pipeline schedules. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_GENERATORS_H
#define WINDLASS_SCHEDULE_GENERATORS_H

#include "windlass/Schedule/Pipeline.h"

namespace windlass::schedule {

/// Makes a schedule. Takes at least one position, one chunk per position and one micro-batch, and fails where there are
/// fewer, or more than `kMaxChunks` chunks or `kMaxActions` actions. The result has its sends and receives, and each
/// position ends with the reduction of its chunks, the last of the model first as backwards end in that order, and
/// their updates. What follows are generators, some of them without chunks per position.
using Generator = llvm::Expected<Pipeline> (*)(int64_t positions, int64_t chunksPerPosition, int64_t microBatches);

/// Makes the schedule of all forwards, then all backwards (GPipe, Huang et al. 2019). A position with several chunks
/// runs all micro-batches of one before the next, on a looped placement.
extern const Generator makeGPipe;

/// Makes the same with the last micro-batch first in backwards (breadth-first, Lamy-Poirier 2023; PyTorch's
/// ScheduleLoopedBFS).
extern const Generator makeBreadthFirst;

/// Makes the schedule of one forward, one backward after a warm-up (PipeDream-Flush, Narayanan et al. 2021): position s
/// of p keeps at most min(p - s, `microBatches`) micro-batches. A position's chunks are neighbours and run in one go.
llvm::Expected<Pipeline> make1F1B(int64_t positions, int64_t chunksPerPosition, int64_t microBatches);

/// Makes the schedule of 1F1B on a looped placement (Narayanan et al. 2021, section 2.2): chunks take turns after each
/// round of micro-batches. A round has as many micro-batches as there are positions, or all micro-batches where these
/// are fewer. Fails where the rounds are not equal.
extern const Generator makeInterleaved1F1B;

/// Makes the schedule of interleaved 1F1B with split backwards: position s runs the weight gradient of a step s steps
/// later (PyTorch's ScheduleInterleavedZeroBubble). Fails as interleaved 1F1B does.
extern const Generator makeInterleavedZeroBubble;

// The schedules below have one chunk per position (ZB1P and ZB2P) or two (the others).

/// Makes the schedules ZB1P and ZB2P (Qi et al., "Zero Bubble Pipeline Parallelism", 2023): forwards and input
/// gradients as early as p or 2p activations per position allow, weight gradients where a position would wait. An
/// activation is counted as freed in two halves, by the two parts of its backward.
llvm::Expected<Pipeline> makeZeroBubble1(int64_t positions, int64_t microBatches);
llvm::Expected<Pipeline> makeZeroBubble2(int64_t positions, int64_t microBatches);

/// Makes the schedule ZB-V on a wave of two chunks per position (Qi et al., "Pipeline Parallelism with Controllable
/// Memory", 2024; PyTorch's ScheduleZBVZeroBubble): as many activations as 1F1B on every position, and with at least 2p
/// micro-batches no wait between a position's first and last action.
llvm::Expected<Pipeline> makeZeroBubbleV(int64_t positions, int64_t microBatches);

/// Makes the schedules V-half and V-min of the same paper on the same placement: about a half and a third of the
/// activations of 1F1B on every position.
llvm::Expected<Pipeline> makeVHalf(int64_t positions, int64_t microBatches);
llvm::Expected<Pipeline> makeVMin(int64_t positions, int64_t microBatches);

/// Makes the schedule DualPipe (DeepSeek-V3 technical report, 2024, section 3.2.1) on a bidirectional placement, with
/// `microBatches` micro-batches in each direction. Fails where the number of positions is odd or above that of
/// micro-batches.
llvm::Expected<Pipeline> makeDualPipe(int64_t positions, int64_t microBatches);

/// Makes the schedule DualPipeV, that of half of a DualPipe's positions on a wave (PyTorch's ScheduleDualPipeV). Fails
/// where micro-batches are fewer than twice the positions.
llvm::Expected<Pipeline> makeDualPipeV(int64_t positions, int64_t microBatches);

// List scheduling gives the two below: a position runs what it can, backwards before forwards, and of several forwards
// or backwards the one that has least ahead of it in the model.

/// Makes the schedule of waves (Hanayo, Liu et al. 2023): `chunksPerPosition` is twice the number of waves.
llvm::Expected<Pipeline> makeHanayo(int64_t positions, int64_t chunksPerPosition, int64_t microBatches);

/// Makes the bidirectional schedule Chimera (Li and Hoefler, 2021), with `microBatches` micro-batches in each
/// direction.
llvm::Expected<Pipeline> makeChimera(int64_t positions, int64_t microBatches);

} // namespace windlass::schedule

#endif
