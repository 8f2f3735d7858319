#include "windlass/Schedule/Generators.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::Twine;

namespace {

/// The sizes of a schedule.
struct Sizes {
  int64_t positions, chunksPerPosition, microBatches;

  llvm::Error check() const {
    if (positions < 1 || chunksPerPosition < 1 || microBatches < 1)
      return llvm::createStringError("a pipeline of " + Twine(positions) + " positions with " +
                                     Twine(chunksPerPosition) + " chunks each and " + Twine(microBatches) +
                                     " micro-batches; at least one of each is needed");
    if (positions > kMaxChunks || chunksPerPosition > kMaxChunks / positions)
      return llvm::createStringError("a pipeline of " + Twine(positions) + " positions with " +
                                     Twine(chunksPerPosition) + " chunks each; " + Twine(kMaxChunks) +
                                     " chunks are possible");
    // A chunk's micro-batch has a forward, a backward and at most four messages' ends; its reduction and update are
    // two.
    int64_t chunks = positions * chunksPerPosition;
    if (microBatches > kMaxMicroBatches || chunks > static_cast<int64_t>(kMaxActions) / (6 * microBatches + 2))
      return llvm::createStringError("a pipeline of " + Twine(chunks) + " chunks with " + Twine(microBatches) +
                                     " micro-batches has too many actions");
    return llvm::Error::success();
  }
};

/// The computation of one position, in order.
class PositionWriter {
public:
  void forward(int64_t chunk, int64_t microBatch) { add(ActionKind::Forward, chunk, microBatch); }
  void backward(int64_t chunk, int64_t microBatch) { add(ActionKind::Backward, chunk, microBatch); }
  /// `chunks` in the order of the model.
  void finish(llvm::ArrayRef<int64_t> chunks) {
    for (ActionKind kind : {ActionKind::Reduce, ActionKind::Update})
      for (int64_t chunk : llvm::reverse(chunks))
        add(kind, chunk, 0);
  }
  Schedule schedule;

private:
  void add(ActionKind kind, int64_t chunk, int64_t microBatch) {
    Action &action = schedule.actions.emplace_back();
    action.kind = kind;
    action.chunk = chunk;
    action.microBatch = microBatch;
  }
};

} // namespace

/// Makes a pipeline: `write(writer, position, chunks)` writes the forwards and backwards of a position with those
/// chunks.
template <class F> static llvm::Expected<Pipeline> generate(Placement placement, F write) {
  Pipeline pipeline;
  std::vector<std::vector<int64_t>> chunks(placement.positions);
  for (auto [chunk, position] : llvm::enumerate(placement.positionOf))
    chunks[position].push_back(chunk);
  for (int64_t position = 0; position < placement.positions; ++position) {
    PositionWriter writer;
    write(writer, position, llvm::ArrayRef<int64_t>(chunks[position]));
    writer.finish(chunks[position]);
    pipeline.positions.push_back(std::move(writer.schedule));
  }
  pipeline.placement = std::move(placement);
  return insertTransfers(pipeline);
}

llvm::Expected<Pipeline> windlass::schedule::makeGPipe(int64_t positions, int64_t chunksPerPosition,
                                                       int64_t microBatches) {
  if (llvm::Error error = Sizes{positions, chunksPerPosition, microBatches}.check())
    return std::move(error);
  return generate(makeLoopedPlacement(positions, chunksPerPosition),
                  [&](PositionWriter &writer, int64_t, llvm::ArrayRef<int64_t> chunks) {
                    for (int64_t chunk : chunks)
                      for (int64_t n = 0; n < microBatches; ++n)
                        writer.forward(chunk, n);
                    for (int64_t chunk : llvm::reverse(chunks))
                      for (int64_t n = 0; n < microBatches; ++n)
                        writer.backward(chunk, n);
                  });
}

llvm::Expected<Pipeline> windlass::schedule::make1F1B(int64_t positions, int64_t chunksPerPosition,
                                                      int64_t microBatches) {
  if (llvm::Error error = Sizes{positions, chunksPerPosition, microBatches}.check())
    return std::move(error);
  return generate(makeBlockedPlacement(positions, chunksPerPosition),
                  [&](PositionWriter &writer, int64_t position, llvm::ArrayRef<int64_t> chunks) {
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
                  });
}

llvm::Expected<Pipeline> windlass::schedule::makeInterleaved1F1B(int64_t positions, int64_t chunksPerPosition,
                                                                 int64_t microBatches) {
  if (llvm::Error error = Sizes{positions, chunksPerPosition, microBatches}.check())
    return std::move(error);
  int64_t rounds = std::max<int64_t>(1, microBatches / positions), round = microBatches / rounds;
  if (microBatches % rounds != 0)
    return llvm::createStringError("interleaved 1F1B of " + Twine(positions) + " positions cannot run " +
                                   Twine(microBatches) + " micro-batches in " + Twine(rounds) + " equal rounds");
  return generate(makeLoopedPlacement(positions, chunksPerPosition), [&](PositionWriter &writer, int64_t position,
                                                                         llvm::ArrayRef<int64_t> chunks) {
    // A position's steps: `round` micro-batches of one chunk, then `round` of the next, and so on around.
    int64_t steps = microBatches * chunksPerPosition;
    auto getChunk = [&](int64_t step) { return step / round % chunksPerPosition; };
    auto getMicroBatch = [&](int64_t step) { return step / (round * chunksPerPosition) * round + step % round; };
    int64_t warmUp = std::min((chunksPerPosition - 1) * round + 2 * (positions - 1 - position), steps);
    for (int64_t step = 0; step < steps + warmUp; ++step) {
      if (step < steps)
        writer.forward(chunks[getChunk(step)], getMicroBatch(step));
      if (int64_t back = step - warmUp; back >= 0)
        writer.backward(chunks[chunksPerPosition - 1 - getChunk(back)], getMicroBatch(back));
    }
  });
}
