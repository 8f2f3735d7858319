#include "windlass/Schedule/Schedule.h"

#include "llvm/ADT/Twine.h"

#include <map>
#include <vector>

using namespace windlass::schedule;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {

class OrderChecker {
public:
  explicit OrderChecker(const Schedule &schedule) : schedule(schedule) {}

  Error run() {
    for (const Action &action : schedule.actions) {
      Chunk &chunk = chunks[action.chunk];
      if (action.kind == ActionKind::Forward)
        chunk.microBatches.emplace_back();
      if (action.kind == ActionKind::Backward)
        ++chunk.expectedBackwards;
    }
    if (chunks.empty())
      return llvm::createStringError("has no actions");
    for (index = 0; index < schedule.actions.size(); ++index)
      if (Error error = step(schedule.actions[index]))
        return error;
    return checkEnd();
  }

private:
  struct MicroBatch {
    bool hasForward = false, hasBackward = false;
    int64_t slot = 0;
  };
  struct Chunk {
    int64_t expectedBackwards = 0;
    int64_t forwards = 0, backwards = 0;
    /// One for each forward of the schedule.
    std::vector<MicroBatch> microBatches;
    /// The micro-batch that each slot in use holds.
    std::map<int64_t, int64_t> slots;
    bool isReduced = false, isUpdated = false;

    int64_t countMicroBatches() const { return static_cast<int64_t>(microBatches.size()); }
  };

  Error fail(const Twine &text) const { return llvm::createStringError(text + ", at action " + Twine(index)); }

  static std::string name(StringRef what, const Action &action) {
    return ("the " + what + " of micro-batch " + Twine(action.microBatch) + " of chunk " + Twine(action.chunk)).str();
  }

  Error step(const Action &action) {
    Chunk &chunk = chunks[action.chunk];
    switch (action.kind) {
    case ActionKind::Forward:
      return runForward(chunk, action);
    case ActionKind::Backward:
      return runBackward(chunk, action);
    case ActionKind::Reduce:
      return reduce(chunk, action);
    case ActionKind::Update:
      return update(chunk, action);
    case ActionKind::InputGradient:
    case ActionKind::WeightGradient:
    case ActionKind::Send:
    case ActionKind::Receive:
      return fail("runs " + getName(action.kind) + ", which only a pipeline does");
    }
    return Error::success();
  }

  /// What holds of forwards and backwards alike: `done` of `expected` have run before.
  Error checkTurn(const Chunk &chunk, const Action &action, int64_t done, int64_t expected, StringRef what) {
    if (chunk.isReduced)
      return fail("runs " + name(what, action) + " after the chunk's reduction");
    if (action.microBatch < 0 || action.microBatch >= chunk.countMicroBatches())
      return fail("runs " + name(what, action) + ", but the chunk's number of micro-batches is " +
                  Twine(chunk.countMicroBatches()));
    if (action.isFirst != (done == 0) || action.isLast != (done + 1 == expected))
      return fail("marks " + name(what, action) + " wrongly as the first or last of its kind or as none");
    return Error::success();
  }

  Error runForward(Chunk &chunk, const Action &action) {
    if (Error error = checkTurn(chunk, action, chunk.forwards++, chunk.countMicroBatches(), "forward"))
      return error;
    MicroBatch &microBatch = chunk.microBatches[action.microBatch];
    if (microBatch.hasForward)
      return fail("runs " + name("forward", action) + " twice");
    if (action.slot < 0)
      return fail("runs " + name("forward", action) + " in slot " + Twine(action.slot) + ", but slots count from 0");
    auto [held, isFree] = chunk.slots.try_emplace(action.slot, action.microBatch);
    if (!isFree)
      return fail("runs " + name("forward", action) + " in slot " + Twine(action.slot) + ", which micro-batch " +
                  Twine(held->second) + " needs until its backward");
    microBatch.hasForward = true;
    microBatch.slot = action.slot;
    return Error::success();
  }

  Error runBackward(Chunk &chunk, const Action &action) {
    if (Error error = checkTurn(chunk, action, chunk.backwards++, chunk.expectedBackwards, "backward"))
      return error;
    MicroBatch &microBatch = chunk.microBatches[action.microBatch];
    if (!microBatch.hasForward)
      return fail("runs " + name("backward", action) + " before its forward");
    if (microBatch.hasBackward)
      return fail("runs " + name("backward", action) + " twice");
    if (action.slot != microBatch.slot)
      return fail("runs " + name("backward", action) + " in slot " + Twine(action.slot) +
                  ", but its forward filled slot " + Twine(microBatch.slot));
    microBatch.hasBackward = true;
    chunk.slots.erase(action.slot);
    return Error::success();
  }

  Error reduce(Chunk &chunk, const Action &action) {
    if (chunk.isReduced)
      return fail("reduces chunk " + Twine(action.chunk) + " twice");
    for (size_t i = 0; i < chunk.microBatches.size(); ++i)
      if (!chunk.microBatches[i].hasBackward)
        return fail("reduces chunk " + Twine(action.chunk) + " before the backward of micro-batch " + Twine(i));
    chunk.isReduced = true;
    return Error::success();
  }

  Error update(Chunk &chunk, const Action &action) {
    // All chunks: the norm that gradients are clipped by is that of all.
    for (const auto &[number, other] : chunks)
      if (!other.isReduced)
        return fail("updates chunk " + Twine(action.chunk) + " before chunk " + Twine(number) + " is reduced");
    if (chunk.isUpdated)
      return fail("updates chunk " + Twine(action.chunk) + " twice");
    chunk.isUpdated = true;
    return Error::success();
  }

  Error checkEnd() const {
    const auto &[first, whole] = *chunks.begin();
    if (whole.countMicroBatches() == 0)
      return llvm::createStringError("runs no micro-batch of chunk " + Twine(first));
    for (const auto &[number, chunk] : chunks) {
      if (chunk.countMicroBatches() != whole.countMicroBatches())
        return llvm::createStringError("runs " + Twine(whole.countMicroBatches()) + " micro-batches of chunk " +
                                       Twine(first) + " but " + Twine(chunk.countMicroBatches()) + " of chunk " +
                                       Twine(number));
      if (!chunk.isReduced)
        return llvm::createStringError("does not reduce chunk " + Twine(number));
      if (!chunk.isUpdated)
        return llvm::createStringError("does not update chunk " + Twine(number));
    }
    return Error::success();
  }

  const Schedule &schedule;
  std::map<int64_t, Chunk> chunks;
  size_t index = 0;
};

} // namespace

Error windlass::schedule::checkOrder(const Schedule &schedule) { return OrderChecker(schedule).run(); }
