#include "CheckTransfers.h"
#include "Message.h"

#include "windlass/Schedule/Pipeline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

#include <map>

using namespace windlass::schedule;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// Checks the rules that a position's actions keep by themselves.
class PositionChecker {
public:
  /// `own` lists the chunks of the position.
  PositionChecker(const Pipeline &pipeline, int64_t position, llvm::ArrayRef<int64_t> own)
      : placement(pipeline.placement), actions(pipeline.positions[position].actions), position(position) {
    for (int64_t chunk : own)
      chunks[chunk];
  }

  Error run() {
    for (index = 0; index < actions.size(); ++index)
      if (Error error = count(actions[index]))
        return error;
    for (index = 0; index < actions.size(); ++index)
      if (Error error = step(actions[index]))
        return error;
    for (const auto &[number, chunk] : chunks) {
      if (!chunk.isReduced)
        return failAtEnd("does not reduce chunk " + Twine(number));
      if (!chunk.isUpdated)
        return failAtEnd("does not update chunk " + Twine(number));
    }
    return Error::success();
  }

  /// Returns the number of forwards of a chunk of this position.
  int64_t countMicroBatches(int64_t chunk) const { return chunks.find(chunk)->second.countMicroBatches(); }

private:
  struct MicroBatch {
    int64_t slot = 0;
    bool hasSlot = false;
    bool isReceived = false, hasForward = false, isSent = false;
    bool isGradientReceived = false, hasInputGradient = false, hasWeightGradient = false, isGradientSent = false;
  };
  struct Chunk {
    int64_t expectedBackwards = 0, expectedInputGradients = 0;
    int64_t forwards = 0, backwards = 0, inputGradients = 0;
    std::vector<MicroBatch> microBatches;
    /// The micro-batch that each slot in use holds.
    std::map<int64_t, int64_t> slots;
    bool isReduced = false, isUpdated = false;

    int64_t countMicroBatches() const { return static_cast<int64_t>(microBatches.size()); }
  };

  Error failAtEnd(const Twine &text) const {
    return llvm::createStringError("position " + Twine(position) + " " + text);
  }
  Error fail(const Twine &text) const { return failAtEnd(text + ", at action " + Twine(index)); }

  static std::string name(const Action &action) {
    if (isTransfer(action.kind))
      return Message(action).print();
    std::string kind = getName(action.kind).str();
    std::replace(kind.begin(), kind.end(), '_', ' ');
    return ("the " + Twine(kind) + " of micro-batch " + Twine(action.microBatch) + " of chunk " + Twine(action.chunk))
        .str();
  }
  static std::string verb(const Action &action) {
    StringRef word = action.kind == ActionKind::Send      ? "sends "
                     : action.kind == ActionKind::Receive ? "receives "
                                                          : "runs ";
    return word.str() + name(action);
  }

  /// Counts what must be known before the first step is taken, and checks that the chunk is one of this position.
  Error count(const Action &action) {
    if (action.chunk < 0 || action.chunk >= placement.countChunks())
      return fail("runs " + getName(action.kind) + " of chunk " + Twine(action.chunk) + " of " +
                  Twine(placement.countChunks()));
    auto chunk = chunks.find(action.chunk);
    if (chunk == chunks.end())
      return fail("runs " + getName(action.kind) + " of chunk " + Twine(action.chunk) + ", which is on position " +
                  Twine(placement.positionOf[action.chunk]));
    if (action.kind == ActionKind::Forward)
      chunk->second.microBatches.emplace_back();
    chunk->second.expectedBackwards += endsBackward(action.kind);
    chunk->second.expectedInputGradients += action.kind == ActionKind::InputGradient;
    return Error::success();
  }

  Error step(const Action &action) {
    Chunk &chunk = chunks[action.chunk];
    switch (action.kind) {
    case ActionKind::Reduce:
      return reduce(chunk, action);
    case ActionKind::Update:
      return update(chunk, action);
    case ActionKind::Forward:
    case ActionKind::Backward:
    case ActionKind::InputGradient:
    case ActionKind::WeightGradient:
    case ActionKind::Send:
    case ActionKind::Receive:
      return runMicroBatch(chunk, action);
    }
    llvm_unreachable("covered switch");
  }

  Error runMicroBatch(Chunk &chunk, const Action &action) {
    if (action.microBatch < 0 || action.microBatch >= chunk.countMicroBatches())
      return fail(verb(action) + ", but the chunk's number of micro-batches is " + Twine(chunk.countMicroBatches()));
    MicroBatch &microBatch = chunk.microBatches[action.microBatch];
    if (action.kind == ActionKind::Forward)
      return runForward(chunk, microBatch, action);
    if (isTransfer(action.kind))
      return runTransfer(chunk, microBatch, action);
    return runBackward(chunk, microBatch, action);
  }

  /// Checks the place of a forward or a kind of backward in the step: `done` of `expected` have run before it.
  Error checkTurn(const Chunk &chunk, const Action &action, int64_t done, int64_t expected) const {
    if (chunk.isReduced)
      return fail(verb(action) + " after the chunk's reduction");
    if (action.isFirst != (done == 0) || action.isLast != (done + 1 == expected))
      return fail("marks " + name(action) + " wrongly as the first or last of its kind or as none");
    return Error::success();
  }

  /// Makes the micro-batch begin to use a slot.
  Error takeSlot(Chunk &chunk, MicroBatch &microBatch, const Action &action) {
    if (action.slot < 0)
      return fail(verb(action) + " in slot " + Twine(action.slot) + ", but slots count from 0");
    auto [held, isFree] = chunk.slots.try_emplace(action.slot, action.microBatch);
    if (!isFree) {
      const MicroBatch &other = chunk.microBatches[held->second];
      bool isSending = other.hasInputGradient && other.hasWeightGradient;
      return fail(verb(action) + " in slot " + Twine(action.slot) + ", which micro-batch " + Twine(held->second) +
                  " needs until its " + (isSending ? "gradient is sent" : "backward"));
    }
    microBatch.hasSlot = true;
    microBatch.slot = action.slot;
    return Error::success();
  }

  /// Checks that the micro-batch is in its slot, and that the action names that slot.
  Error checkSlot(const MicroBatch &microBatch, const Action &action) const {
    if (action.slot != microBatch.slot)
      return fail(verb(action) + " in slot " + Twine(action.slot) + ", but its micro-batch is in slot " +
                  Twine(microBatch.slot));
    return Error::success();
  }

  void releaseWhenDone(Chunk &chunk, const MicroBatch &microBatch, const Action &action) {
    std::optional<int64_t> previous = placement.getPrevious(action.chunk);
    bool sendsGradient = previous && placement.crossesPositions(action.chunk, *previous);
    if (microBatch.hasInputGradient && microBatch.hasWeightGradient && (microBatch.isGradientSent || !sendsGradient))
      chunk.slots.erase(microBatch.slot);
  }

  /// Returns that micro-batch of a chunk of this position; null where there is none.
  const MicroBatch *find(int64_t chunk, int64_t microBatch) const {
    const Chunk &its = chunks.find(chunk)->second;
    return microBatch < its.countMicroBatches() ? &its.microBatches[microBatch] : nullptr;
  }

  Error runForward(Chunk &chunk, MicroBatch &microBatch, const Action &action) {
    if (Error error = checkTurn(chunk, action, chunk.forwards++, chunk.countMicroBatches()))
      return error;
    if (microBatch.hasForward)
      return fail(verb(action) + " twice");
    if (std::optional<int64_t> previous = placement.getPrevious(action.chunk)) {
      if (placement.crossesPositions(action.chunk, *previous)) {
        if (!microBatch.isReceived)
          return fail(verb(action) + " before it receives the activation from chunk " + Twine(*previous));
      } else if (const MicroBatch *before = find(*previous, action.microBatch); !before || !before->hasForward) {
        return fail(verb(action) + " before that of chunk " + Twine(*previous));
      }
    }
    microBatch.hasForward = true;
    return microBatch.hasSlot ? checkSlot(microBatch, action) : takeSlot(chunk, microBatch, action);
  }

  Error runBackward(Chunk &chunk, MicroBatch &microBatch, const Action &action) {
    bool isInputGradient = action.kind == ActionKind::InputGradient;
    if (Error error = isInputGradient ? checkTurn(chunk, action, chunk.inputGradients++, chunk.expectedInputGradients)
                                      : checkTurn(chunk, action, chunk.backwards++, chunk.expectedBackwards))
      return error;
    if (!microBatch.hasForward)
      return fail(verb(action) + " before its forward");
    if (isInputGradient ? microBatch.hasInputGradient : microBatch.hasWeightGradient)
      return fail(verb(action) + " twice");
    if (action.kind == ActionKind::WeightGradient) {
      if (!microBatch.hasInputGradient)
        return fail(verb(action) + " before its input gradient");
    } else if (microBatch.hasInputGradient) {
      return fail(verb(action) + ", whose input gradient has run");
    } else if (Error error = checkGradient(microBatch, action)) {
      return error;
    }
    if (Error error = checkSlot(microBatch, action))
      return error;
    microBatch.hasInputGradient = true;
    microBatch.hasWeightGradient = !isInputGradient;
    releaseWhenDone(chunk, microBatch, action);
    return Error::success();
  }

  /// Checks that the gradient of the chunk's output is there.
  Error checkGradient(const MicroBatch &microBatch, const Action &action) const {
    std::optional<int64_t> next = placement.getNext(action.chunk);
    if (!next)
      return Error::success();
    if (placement.crossesPositions(action.chunk, *next)) {
      if (!microBatch.isGradientReceived)
        return fail(verb(action) + " before it receives the gradient from chunk " + Twine(*next));
    } else if (const MicroBatch *after = find(*next, action.microBatch); !after || !after->hasInputGradient) {
      return fail(verb(action) + " before that of chunk " + Twine(*next));
    }
    return Error::success();
  }

  Error runTransfer(Chunk &chunk, MicroBatch &microBatch, const Action &action) {
    bool isSend = action.kind == ActionKind::Send;
    std::optional<int64_t> previous = placement.getPrevious(action.chunk), next = placement.getNext(action.chunk);
    if (action.peerChunk != previous && action.peerChunk != next)
      return fail(verb(action) + ", which are no neighbours");
    if (!placement.crossesPositions(action.chunk, action.peerChunk))
      return fail(verb(action) + ", which are both on this position");
    if (action.peer != placement.positionOf[action.peerChunk])
      return fail(verb(action) + (isSend ? " at position " : " from position ") + Twine(action.peer) + ", but chunk " +
                  Twine(action.peerChunk) + " is on position " + Twine(placement.positionOf[action.peerChunk]));
    bool isGradient = Message(action).isGradient();
    bool &isDone = isSend ? (isGradient ? microBatch.isGradientSent : microBatch.isSent)
                          : (isGradient ? microBatch.isGradientReceived : microBatch.isReceived);
    if (isDone)
      return fail(verb(action) + " twice");
    isDone = true;
    // That is, once before the forward or backward that reads it, since that needs it.
    if (!isSend && !isGradient)
      return takeSlot(chunk, microBatch, action);
    if (isSend && !(isGradient ? microBatch.hasInputGradient : microBatch.hasForward))
      return fail(verb(action) + " before it is computed");
    if (!microBatch.hasForward)
      return fail(verb(action) + " before the micro-batch's forward");
    // An activation is gone with its slot.
    auto held = chunk.slots.find(microBatch.slot);
    if (held == chunk.slots.end() || held->second != action.microBatch)
      return fail(verb(action) + " after its backward has freed the slot");
    if (Error error = checkSlot(microBatch, action))
      return error;
    releaseWhenDone(chunk, microBatch, action);
    return Error::success();
  }

  Error reduce(Chunk &chunk, const Action &action) {
    if (chunk.isReduced)
      return fail("reduces chunk " + Twine(action.chunk) + " twice");
    for (auto [number, microBatch] : llvm::enumerate(chunk.microBatches))
      if (!microBatch.hasWeightGradient)
        return fail("reduces chunk " + Twine(action.chunk) + " before the backward of micro-batch " + Twine(number));
    chunk.isReduced = true;
    ++reduced;
    return Error::success();
  }

  Error update(Chunk &chunk, const Action &action) {
    if (reduced < chunks.size())
      for (const auto &[number, other] : chunks)
        if (!other.isReduced)
          return fail("updates chunk " + Twine(action.chunk) + " before chunk " + Twine(number) + " is reduced");
    if (chunk.isUpdated)
      return fail("updates chunk " + Twine(action.chunk) + " twice");
    chunk.isUpdated = true;
    return Error::success();
  }

  const Placement &placement;
  const std::vector<Action> &actions;
  int64_t position;
  std::map<int64_t, Chunk> chunks;
  /// The number of chunks that are reduced.
  size_t reduced = 0;
  size_t index = 0;
};

} // namespace

/// Checks that all chunks of a chain have the same micro-batches, at least one.
static Error checkCounts(const Placement &placement, llvm::ArrayRef<int64_t> counts) {
  int64_t first = 0;
  for (auto [chunk, count] : llvm::enumerate(counts)) {
    if (!placement.getPrevious(chunk))
      first = chunk;
    if (count == 0)
      return llvm::createStringError("position " + Twine(placement.positionOf[chunk]) +
                                     " runs no micro-batch of chunk " + Twine(chunk));
    if (count != counts[first])
      return llvm::createStringError("position " + Twine(placement.positionOf[chunk]) + " runs " + Twine(count) +
                                     " micro-batches of chunk " + Twine(chunk) + ", but position " +
                                     Twine(placement.positionOf[first]) + " runs " + Twine(counts[first]) +
                                     " of chunk " + Twine(first));
  }
  return Error::success();
}

Error windlass::schedule::checkPipeline(const Pipeline &pipeline, int64_t capacity) {
  const Placement &placement = pipeline.placement;
  if (Error error = checkPlacement(placement, pipeline.positions.size()))
    return error;
  std::vector<int64_t> counts(placement.countChunks());
  std::vector<std::vector<int64_t>> chunks(placement.positions);
  for (auto [chunk, position] : llvm::enumerate(placement.positionOf))
    chunks[position].push_back(chunk);
  for (int64_t position = 0; position < placement.positions; ++position) {
    PositionChecker checker(pipeline, position, chunks[position]);
    if (Error error = checker.run())
      return error;
    for (int64_t chunk : chunks[position])
      counts[chunk] = checker.countMicroBatches(chunk);
  }
  if (Error error = checkCounts(placement, counts))
    return error;
  return checkTransfers(pipeline, capacity);
}
