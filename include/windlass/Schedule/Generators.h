// Published pipeline schedules. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_GENERATORS_H
#define WINDLASS_SCHEDULE_GENERATORS_H

#include "windlass/Schedule/Pipeline.h"

namespace windlass::schedule {

// Each takes at least one position, one chunk per position and one micro-batch, and fails where there are fewer, or
// more than `kMaxChunks` chunks or `kMaxActions` actions. The result has its sends and receives, and each position ends
// with the reduction of its chunks, the last of the model first as backwards end in that order, and their updates.

/// Makes the schedule of all forwards, then all backwards (GPipe, Huang et al. 2019). A position with several chunks
/// runs all micro-batches of one before the next, on a looped placement (breadth-first, Lamy-Poirier 2023).
llvm::Expected<Pipeline> makeGPipe(int64_t positions, int64_t chunksPerPosition, int64_t microBatches);

/// Makes the schedule of one forward, one backward after a warm-up (PipeDream-Flush, Narayanan et al. 2021): position s
/// of p keeps at most min(p - s, `microBatches`) micro-batches. A position's chunks are neighbours and run in one go.
llvm::Expected<Pipeline> make1F1B(int64_t positions, int64_t chunksPerPosition, int64_t microBatches);

/// Makes the schedule of 1F1B on a looped placement (Narayanan et al. 2021, section 2.2): chunks take turns after each
/// round of micro-batches. A round has as many micro-batches as there are positions, or all micro-batches where these
/// are fewer. Fails where the rounds are not equal.
llvm::Expected<Pipeline> makeInterleaved1F1B(int64_t positions, int64_t chunksPerPosition, int64_t microBatches);

} // namespace windlass::schedule

#endif
