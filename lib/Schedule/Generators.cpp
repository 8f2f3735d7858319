#include "windlass/Schedule/Generators.h"

#include "PipelineWriter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::Twine;

/// Runs all forwards, then all backwards. A position runs all micro-batches of a chunk before those of the next chunk,
/// in backwards from the last micro-batch on where `reverses` holds.
static llvm::Expected<Pipeline> makeForwardsThenBackwards(const Sizes &sizes, bool reverses) {
  if (llvm::Error error = sizes.check())
    return std::move(error);
  PipelineWriter writer(makeLoopedPlacement(sizes.positions, sizes.chunksPerPosition));
  for (int64_t position = 0; position < sizes.positions; ++position) {
    llvm::ArrayRef<int64_t> chunks = writer.getChunks(position);
    for (int64_t chunk : chunks)
      for (int64_t n = 0; n < sizes.microBatches; ++n)
        writer.forward(chunk, n);
    for (int64_t chunk : llvm::reverse(chunks))
      for (int64_t n = 0; n < sizes.microBatches; ++n)
        writer.backward(chunk, reverses ? sizes.microBatches - 1 - n : n);
  }
  return writer.finish();
}

llvm::Expected<Pipeline> windlass::schedule::make1F1B(int64_t positions, int64_t chunksPerPosition,
                                                      int64_t microBatches) {
  if (llvm::Error error = Sizes{positions, chunksPerPosition, microBatches}.check())
    return std::move(error);
  PipelineWriter writer(makeBlockedPlacement(positions, chunksPerPosition));
  for (int64_t position = 0; position < positions; ++position) {
    llvm::ArrayRef<int64_t> chunks = writer.getChunks(position);
    int64_t inFlight = std::min(positions - position, microBatches);
    // The backward of micro-batch n follows the forward that fills the last slot.
    for (int64_t n = 0; n < microBatches + inFlight - 1; ++n) {
      if (n < microBatches)
        for (int64_t chunk : chunks)
          writer.forward(chunk, n);
      if (n >= inFlight - 1)
        for (int64_t chunk : llvm::reverse(chunks))
          writer.backward(chunk, n - (inFlight - 1));
    }
  }
  return writer.finish();
}

static llvm::Expected<Pipeline> makeInterleaved(const Sizes &sizes, bool isSplit) {
  if (llvm::Error error = sizes.check())
    return std::move(error);
  auto [positions, chunksPerPosition, microBatches] = sizes;
  int64_t rounds = std::max<int64_t>(1, microBatches / positions), round = microBatches / rounds;
  if (microBatches % rounds != 0)
    return llvm::createStringError("interleaved 1F1B of " + Twine(positions) + " positions cannot run " +
                                   Twine(microBatches) + " micro-batches in " + Twine(rounds) + " equal rounds");
  // A position's steps: `round` micro-batches of one chunk, then `round` of the next, and so on around.
  int64_t steps = microBatches * chunksPerPosition, turn = round * chunksPerPosition;
  PipelineWriter writer(makeLoopedPlacement(positions, chunksPerPosition));
  for (int64_t position = 0; position < positions; ++position) {
    llvm::ArrayRef<int64_t> chunks = writer.getChunks(position);
    auto getMicroBatch = [&, round = round](int64_t step) { return step / turn * round + step % round; };
    auto getBackwardChunk = [&, round = round](int64_t step) {
      return chunks[chunks.size() - 1 - step % turn / round];
    };
    // A whole backward takes as long as two forwards, so that position s has room for two more for each one behind it;
    // where backwards are split, for one more, and weight gradients are s steps late.
    int64_t behind = positions - 1 - position;
    int64_t warmUp = std::min((turn - round) + (isSplit ? behind : 2 * behind), steps);
    for (int64_t step = 0; step < steps + warmUp; ++step) {
      if (step < steps)
        writer.forward(chunks[step % turn / round], getMicroBatch(step));
      int64_t back = step - warmUp;
      if (back < 0)
        continue;
      writer.add(isSplit ? ActionKind::InputGradient : ActionKind::Backward, getBackwardChunk(back),
                 getMicroBatch(back));
      if (isSplit && back >= position)
        writer.weightGradient(getBackwardChunk(back - position), getMicroBatch(back - position));
    }
    for (int64_t late = std::max<int64_t>(steps - position, 0); isSplit && late < steps; ++late)
      writer.weightGradient(getBackwardChunk(late), getMicroBatch(late));
  }
  return writer.finish();
}

/// Gives a rule that makes two published schedules, told apart by `variant`, the form of a generator.
template <llvm::Expected<Pipeline> (*make)(const Sizes &, bool), bool variant>
static llvm::Expected<Pipeline> makeVariant(int64_t positions, int64_t chunksPerPosition, int64_t microBatches) {
  return make({positions, chunksPerPosition, microBatches}, variant);
}

const Generator windlass::schedule::makeGPipe = makeVariant<makeForwardsThenBackwards, /*reverses=*/false>;
const Generator windlass::schedule::makeBreadthFirst = makeVariant<makeForwardsThenBackwards, /*reverses=*/true>;
const Generator windlass::schedule::makeInterleaved1F1B = makeVariant<makeInterleaved, /*isSplit=*/false>;
const Generator windlass::schedule::makeInterleavedZeroBubble = makeVariant<makeInterleaved, /*isSplit=*/true>;
