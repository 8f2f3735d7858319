#include "windlass/Schedule/Pipeline.h"

#include "Message.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Twine.h"

#include <map>
#include <set>
#include <tuple>

using namespace windlass::schedule;
using llvm::Twine;

namespace {

/// The actions of one position, without slots.
class Lister {
public:
  /// Lists at most `budget` actions, and subtracts those that it lists.
  Lister(const Placement &placement, size_t &budget) : placement(placement), budget(budget) {}

  llvm::Error run(const ActionTable &table) {
    for (const TableItem &item : table) {
      if (!item.isRepeat()) {
        if (llvm::Error error = add(item))
          return error;
        continue;
      }
      for (int64_t turn = 0; turn < item.count; ++turn)
        if (llvm::Error error = run(item.body))
          return error;
    }
    return llvm::Error::success();
  }

  std::vector<Action> actions;

private:
  llvm::Error add(const TableItem &item) {
    if (budget == 0)
      return llvm::createStringError("has more than " + Twine(kMaxActions) + " actions");
    --budget;
    int64_t last = std::max(item.chunk, item.peerChunk);
    if (last >= placement.countChunks())
      return llvm::createStringError("runs " + getName(item.kind) + " with chunk " + Twine(last) + " of " +
                                     Twine(placement.countChunks()));
    Action &action = actions.emplace_back();
    action.kind = item.kind;
    action.chunk = item.chunk;
    action.peerChunk = item.peerChunk;
    if (isTransfer(item.kind))
      action.peer = placement.positionOf[item.peerChunk];
    switch (item.kind) {
    case ActionKind::Reduce:
      action.microBatch = lastBackward[item.chunk];
      break;
    case ActionKind::Update:
      break;
    case ActionKind::Forward:
    case ActionKind::Backward:
    case ActionKind::InputGradient:
    case ActionKind::WeightGradient:
    case ActionKind::Send:
    case ActionKind::Receive:
      int64_t &following = next[{item.kind, item.chunk, item.peerChunk}];
      action.microBatch = item.microBatch >= 0 ? item.microBatch : following;
      following = action.microBatch + 1;
      if (endsBackward(item.kind))
        lastBackward[item.chunk] = action.microBatch;
    }
    return llvm::Error::success();
  }

  const Placement &placement;
  size_t &budget;
  std::map<std::tuple<ActionKind, int64_t, int64_t>, int64_t> next;
  /// The micro-batch of the last backward, by chunk; 0 before the first.
  std::map<int64_t, int64_t> lastBackward;
};

/// The numbers of slots, of which the lowest that is free is taken.
class FreeSlots {
public:
  int64_t take() {
    int64_t slot = freed.empty() ? used++ : *freed.begin();
    freed.erase(slot);
    return slot;
  }
  void free(int64_t slot) { freed.insert(slot); }

private:
  /// Slots that were used and are free; all from `used` on are free too.
  std::set<int64_t> freed;
  int64_t used = 0;
};

/// Gives each micro-batch of a position the lowest slots that are free.
class SlotAssigner {
public:
  explicit SlotAssigner(std::vector<Action> &actions) : actions(actions) {}

  void run() {
    for (const Action &action : actions)
      if (action.kind == ActionKind::Send && Message(action).isGradient())
        chunks[action.chunk].sendsGradients = true;
    for (Action &action : actions)
      if (action.kind != ActionKind::Reduce && action.kind != ActionKind::Update)
        assign(action);
  }

private:
  struct MicroBatch {
    int64_t slot = 0, handedSlot = 0;
    bool hasSlot = false, hasInputGradient = false, hasWeightGradient = false, isGradientSent = false;
  };
  struct Chunk {
    bool sendsGradients = false;
    llvm::DenseMap<int64_t, MicroBatch> microBatches;
    FreeSlots slots, handedSlots;
  };

  void assign(Action &action) {
    Chunk &chunk = chunks[action.chunk];
    MicroBatch &microBatch = chunk.microBatches[action.microBatch];
    bool isActivation = action.kind == ActionKind::Receive && !Message(action).isGradient();
    if ((action.kind == ActionKind::Forward || isActivation) && !microBatch.hasSlot) {
      microBatch.hasSlot = true;
      microBatch.slot = chunk.slots.take();
    }
    action.slot = microBatch.slot;
    if (action.kind == ActionKind::InputGradient)
      microBatch.handedSlot = chunk.handedSlots.take();
    if (action.kind == ActionKind::InputGradient || action.kind == ActionKind::WeightGradient)
      action.handedSlot = microBatch.handedSlot;
    if (action.kind == ActionKind::WeightGradient)
      chunk.handedSlots.free(microBatch.handedSlot);
    bool isBackward = action.kind == ActionKind::Backward;
    microBatch.hasInputGradient |= isBackward || action.kind == ActionKind::InputGradient;
    microBatch.hasWeightGradient |= isBackward || action.kind == ActionKind::WeightGradient;
    microBatch.isGradientSent |= action.kind == ActionKind::Send && Message(action).isGradient();
    if (microBatch.hasSlot && microBatch.hasInputGradient && microBatch.hasWeightGradient &&
        (microBatch.isGradientSent || !chunk.sendsGradients))
      chunk.slots.free(microBatch.slot);
  }

  std::vector<Action> &actions;
  std::map<int64_t, Chunk> chunks;
};

} // namespace

/// Returns the kind under which first and last actions are counted.
static ActionKind getCountedKind(ActionKind kind) {
  return kind == ActionKind::WeightGradient ? ActionKind::Backward : kind;
}

static void markFirstAndLast(std::vector<Action> &actions) {
  std::map<std::tuple<ActionKind, int64_t, int64_t>, Action *> last;
  for (Action &action : actions) {
    auto [before, isFirst] = last.try_emplace({getCountedKind(action.kind), action.chunk, action.peerChunk}, &action);
    action.isFirst = isFirst;
    if (!isFirst)
      before->second->isLast = false;
    before->second = &action;
  }
}

llvm::Expected<Pipeline> windlass::schedule::expandPipeline(const Placement &placement,
                                                            llvm::ArrayRef<ActionTable> tables) {
  if (llvm::Error error = checkPlacement(placement, tables.size()))
    return std::move(error);
  Pipeline pipeline;
  pipeline.placement = placement;
  size_t budget = kMaxActions;
  for (auto [position, table] : llvm::enumerate(tables)) {
    Lister lister(placement, budget);
    if (llvm::Error error = lister.run(table))
      return llvm::createStringError("position " + Twine(position) + ": " + llvm::toString(std::move(error)));
    SlotAssigner(lister.actions).run();
    markFirstAndLast(lister.actions);
    pipeline.positions.push_back({std::move(lister.actions)});
  }
  return pipeline;
}

int64_t windlass::schedule::countMicroBatches(const Pipeline &pipeline) {
  return llvm::count_if(pipeline.positions[pipeline.placement.positionOf.front()].actions,
                        [](const Action &action) { return action.kind == ActionKind::Forward && action.chunk == 0; });
}
