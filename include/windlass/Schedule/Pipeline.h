// The schedules of all positions of a pipeline over one set of chunks, and the rules of a legal one. A step without a
// pipeline is one of one position. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_PIPELINE_H
#define WINDLASS_SCHEDULE_PIPELINE_H

#include "windlass/Schedule/Placement.h"
#include "windlass/Schedule/Schedule.h"

namespace windlass::schedule {

/// A step of all positions.
///
/// A chunk's output passes from its position to that of the next chunk by a send and a receive where the two differ,
/// and so does the gradient on its way back. A micro-batch takes one of its chunk's slots when its activation is
/// received, or by its forward where nothing is received. The slot is free again when the whole backward is done and,
/// where the gradient goes to another position, has been sent: until then it keeps inputs, stash and what is at the
/// borders. From an input gradient to its weight gradient a micro-batch has one of the chunk's handed slots too.
struct Pipeline {
  Placement placement;
  /// The schedule of each position.
  std::vector<Schedule> positions;
};

/// Lists the actions of each position's table. The n-th action of a kind and its chunks is of micro-batch n, unless the
/// table says otherwise; a micro-batch takes its chunk's lowest free slot. Fails where the placement is none, the
/// number of tables is not that of positions, an action names a chunk that does not exist, or all tables together have
/// more than `kMaxActions`. Whether the order is legal is not looked at.
llvm::Expected<Pipeline> expandPipeline(const Placement &placement, llvm::ArrayRef<ActionTable> tables);

/// Fails with what is wrong, at which action of which position, where the pipeline is not legal for one thread per
/// position that blocks in sends and receives, with room for `capacity` messages (at least 0) between each sender and
/// each receiver; 0: a send ends when its receive begins. In a legal pipeline
/// - each position runs its own chunks, and all chunks of a chain have the same micro-batches 0, 1, ...,
/// - each micro-batch has one forward, and behind it one backward, or one input gradient and then one weight gradient;
///   each runs after what it reads was computed on the position or received,
/// - slots are as `Pipeline` says, and each action names that of its micro-batch,
/// - sends and receives name neighbouring chunks on two positions and the right peer; each send has one receive, in the
///   same order for each sender and receiver; all threads come to their end,
/// - each chunk is reduced once, after all of its backwards, and updated once, after all chunks of its position are
///   reduced,
/// - `isFirst` and `isLast` say what they stand for; a weight gradient counts as a backward there.
/// A pipeline that is legal for one capacity is so for every larger one.
llvm::Error checkPipeline(const Pipeline &pipeline, int64_t capacity = 0);

/// Prints lines such as
///   positions 2
///   chunks 0 1
///   position 0: 2x(forward send:0>1) 2x(receive:0>1 backward) reduce update
///   position 1: ...
/// `chunks` lists the position of each chunk, with `|` between two chains. Slots are those that `expandPipeline` gives.
std::string printPipeline(const Pipeline &pipeline);

/// Reads what `printPipeline` prints, and expands it. Fails with the line, and inside of a table with the character, of
/// what it cannot read.
llvm::Expected<Pipeline> parsePipeline(llvm::StringRef text);

/// Adds the sends and receives that the forwards and backwards of `computation` need, which has none. A position
/// receives an activation right before the forward that reads it, and sends and receives a gradient when it is there,
/// as far as such times are known from actions of unit length (a backward of two). Messages go in one order that all
/// positions have in common, so that the result needs no buffer between them: it is legal for every capacity. Fails
/// where a position waits for what no other one computes before it waits itself.
llvm::Expected<Pipeline> insertTransfers(const Pipeline &computation);

/// Returns the number of micro-batches of the first chunk's chain.
int64_t countMicroBatches(const Pipeline &pipeline);

/// Returns whether any backward is in two parts.
bool hasSplitBackwards(const Pipeline &pipeline);

/// Runs each whole backward as an input gradient and, right behind it, a weight gradient. `isFirst` and `isLast` are
/// not looked at.
void splitBackwards(Pipeline &pipeline);

/// A pipeline, and for each chunk of another one the number of the chunk that it is a part of.
struct JoinedPipeline {
  Pipeline pipeline;
  std::vector<int64_t> numberOf;
};

/// Makes one chunk of chunks that follow each other on one position, as at the turns of a wave. It runs forward where
/// the last of its parts did, and back where the first did, so that it reads nothing earlier than they; sends and
/// receives are inserted anew. Backwards must be all in one part or all in two. Fails where `insertTransfers` does.
llvm::Expected<JoinedPipeline> joinNeighbours(const Pipeline &pipeline);

} // namespace windlass::schedule

#endif
