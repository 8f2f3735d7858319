// Schedules in which each position runs an early and a late part of the model, whose forwards and backwards take turns.
#include "windlass/Schedule/Generators.h"

#include "PipelineWriter.h"

#include "llvm/ADT/Twine.h"

#include <deque>

using namespace windlass::schedule;
using llvm::Twine;

namespace {

/// The actions of a position with two chunks, or two directions: part 0 comes to the position earlier than part 1.
class TwoPartWriter {
public:
  /// Micro-batches from `microBatches` on are left out.
  TwoPartWriter(PipelineWriter &writer, int64_t chunk0, int64_t chunk1, int64_t microBatches)
      : writer(writer), chunks{chunk0, chunk1}, microBatches(microBatches) {}

  int64_t countForwards(int part) const { return forwards[part]; }

  void forward(int part) { add(ActionKind::Forward, part, forwards[part]++); }
  void backward(int part) { add(ActionKind::Backward, part, backwards[part]++); }
  /// Runs an input gradient, whose weight gradient is due from then on.
  void inputGradient(int part) {
    due.push_back({part, backwards[part]});
    add(ActionKind::InputGradient, part, backwards[part]++);
  }
  /// Runs the weight gradient that has been due for longest.
  void weightGradient() {
    add(ActionKind::WeightGradient, due.front().first, due.front().second);
    due.pop_front();
  }
  /// Runs the weight gradient of that part which has been due for longest. Returns false where none is.
  bool weightGradient(int part) {
    for (auto it = due.begin(); it != due.end(); ++it)
      if (it->first == part) {
        add(ActionKind::WeightGradient, part, it->second);
        due.erase(it);
        return true;
      }
    return false;
  }
  void inputAndWeightGradient(int part) {
    inputGradient(part);
    weightGradient();
  }

private:
  void add(ActionKind kind, int part, int64_t microBatch) {
    if (microBatch < microBatches)
      writer.add(kind, chunks[part], microBatch);
  }

  PipelineWriter &writer;
  int64_t chunks[2], microBatches;
  int64_t forwards[2] = {0, 0}, backwards[2] = {0, 0};
  std::deque<std::pair<int, int64_t>> due;
};

/// Calls `step(i)` for i from 0 to `count` - 1.
template <class F> void repeat(int64_t count, F step) {
  for (int64_t i = 0; i < count; ++i)
    step(i);
}

} // namespace

llvm::Expected<Pipeline> windlass::schedule::makeZeroBubbleV(int64_t positions, int64_t microBatches) {
  if (llvm::Error error = Sizes{positions, 2, microBatches}.check())
    return std::move(error);
  PipelineWriter pipeline(makeWavePlacement(positions, 2));
  // The order is that of at least 2p - 1 micro-batches, which fill the pipeline, without those that there are not.
  int64_t full = std::max(2 * positions - 1, microBatches);
  for (int64_t position = 0; position < positions; ++position) {
    int64_t behind = positions - 1 - position;
    TwoPartWriter writer(pipeline, position, 2 * positions - 1 - position, microBatches);
    // Warm-up: part 0 runs until part 1 comes back to the position, both take turns, and part 1 begins its backwards.
    repeat(2 * behind + 1, [&](int64_t) { writer.forward(0); });
    repeat(position, [&](int64_t) {
      writer.forward(1);
      writer.forward(0);
    });
    repeat(behind + 1, [&](int64_t) {
      writer.forward(1);
      writer.inputAndWeightGradient(1);
    });
    // Steady phase: each part runs one of each.
    while (writer.countForwards(1) < full) {
      if (writer.countForwards(0) < full)
        writer.forward(0);
      writer.inputAndWeightGradient(0);
      writer.forward(1);
      writer.inputAndWeightGradient(1);
    }
    // The end: input gradients first, for which other positions wait.
    repeat(position, [&](int64_t) {
      writer.inputGradient(0);
      writer.inputGradient(1);
    });
    repeat(behind + 1, [&](int64_t) {
      writer.inputGradient(0);
      writer.weightGradient(0);
    });
    while (writer.weightGradient(1)) {
    }
    while (writer.weightGradient(0)) {
    }
  }
  return pipeline.finish();
}

/// Writes the eight steps of DualPipe for position `rank` of one half of `half` positions, counted from the outside. A
/// forward and the backward after it, of the other part, may overlap.
static void writeDualPipe(TwoPartWriter &writer, int64_t half, int64_t rank, int64_t microBatches) {
  int64_t behind = half - 1 - rank;
  auto forwardAndBackward = [&](int forward) {
    writer.forward(forward);
    writer.backward(1 - forward);
  };
  repeat(2 * behind, [&](int64_t) { writer.forward(0); });
  repeat(rank + 1, [&](int64_t) {
    writer.forward(0);
    writer.forward(1);
  });
  repeat(behind, [&](int64_t) {
    writer.inputAndWeightGradient(1);
    writer.forward(1);
  });
  repeat(microBatches - 2 * half + rank + 1, [&](int64_t) {
    forwardAndBackward(0);
    forwardAndBackward(1);
  });
  repeat(behind, [&](int64_t) {
    writer.backward(1);
    forwardAndBackward(1);
  });
  // The backwards of the second half of this step are split: their weight gradients fill the waits of the next.
  repeat(rank + 1, [&](int64_t i) {
    int64_t index = 2 * i;
    for (int part : {1, 0})
      if (index++ > rank)
        writer.inputGradient(part);
      else
        writer.backward(part);
  });
  repeat(behind, [&](int64_t) {
    writer.weightGradient();
    writer.inputGradient(0);
  });
  repeat(rank + 1, [&](int64_t) { writer.weightGradient(); });
}

llvm::Expected<Pipeline> windlass::schedule::makeDualPipe(int64_t positions, int64_t microBatches) {
  Sizes sizes = {positions, 2, microBatches};
  if (llvm::Error error = sizes.check())
    return std::move(error);
  if (positions % 2 != 0 || microBatches < positions)
    return llvm::createStringError("DualPipe of " + Twine(positions) + " positions with " + Twine(microBatches) +
                                   " micro-batches in each direction; it needs an even number of positions and at "
                                   "least as many micro-batches in each direction");
  PipelineWriter pipeline(makeBidirectionalPlacement(positions, 1));
  for (int64_t position = 0; position < positions; ++position) {
    int64_t forth = position, back = 2 * positions - 1 - position, rank = std::min(position, positions - 1 - position);
    // In the second half, micro-batches of the second chain come earlier.
    if (rank != position)
      std::swap(forth, back);
    TwoPartWriter writer(pipeline, forth, back, microBatches);
    writeDualPipe(writer, positions / 2, rank, microBatches);
  }
  return pipeline.finish();
}

llvm::Expected<Pipeline> windlass::schedule::makeDualPipeV(int64_t positions, int64_t microBatches) {
  if (llvm::Error error = Sizes{positions, 2, microBatches}.check())
    return std::move(error);
  if (microBatches < 2 * positions)
    return llvm::createStringError("DualPipeV of " + Twine(positions) + " positions with " + Twine(microBatches) +
                                   " micro-batches; it needs at least " + Twine(2 * positions));
  PipelineWriter pipeline(makeWavePlacement(positions, 2));
  for (int64_t position = 0; position < positions; ++position) {
    TwoPartWriter writer(pipeline, position, 2 * positions - 1 - position, microBatches);
    writeDualPipe(writer, positions, position, microBatches);
  }
  return pipeline.finish();
}
