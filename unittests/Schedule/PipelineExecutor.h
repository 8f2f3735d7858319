// Runs a small pipeline in every possible way: what `checkPipeline` is compared with.
#ifndef WINDLASS_UNITTESTS_SCHEDULE_PIPELINEEXECUTOR_H
#define WINDLASS_UNITTESTS_SCHEDULE_PIPELINEEXECUTOR_H

#include "windlass/Schedule/Pipeline.h"

#include <deque>
#include <map>
#include <set>

namespace windlass::schedule::testing {

/// Tries all interleavings of the positions' actions. A rule of an action looks at the actions before it on its
/// position only, all of them, each time.
class PipelineExecutor {
public:
  PipelineExecutor(const Pipeline &pipeline, size_t capacity) : pipeline(pipeline), capacity(capacity) {}

  /// Returns whether every run ends and keeps the rules.
  bool run() {
    State start;
    start.current.resize(pipeline.positions.size(), 0);
    return explore(start) && hasAll();
  }

private:
  using Word = std::tuple<int64_t, int64_t, int64_t>; // from, to, micro-batch
  struct State {
    std::vector<size_t> current;
    std::map<std::pair<int64_t, int64_t>, std::deque<Word>> queues;
    bool operator<(const State &other) const {
      return std::tie(current, queues) < std::tie(other.current, other.queues);
    }
  };

  const std::vector<Action> &list(int64_t position) const { return pipeline.positions[position].actions; }
  static Word word(const Action &action) {
    bool isSend = action.kind == ActionKind::Send;
    return {isSend ? action.chunk : action.peerChunk, isSend ? action.peerChunk : action.chunk, action.microBatch};
  }

  /// Returns how many of the first `end` actions match.
  int64_t count(int64_t position, size_t end, ActionKind kind, int64_t chunk, int64_t microBatch,
                int64_t peerChunk = -1) const {
    int64_t number = 0;
    for (size_t i = 0; i < end; ++i) {
      const Action &action = list(position)[i];
      number += action.kind == kind && action.chunk == chunk && action.peerChunk == peerChunk &&
                (microBatch < 0 || action.microBatch == microBatch);
    }
    return number;
  }
  int64_t countAll(int64_t position, ActionKind kind, int64_t chunk) const {
    return count(position, list(position).size(), kind, chunk, -1);
  }
  bool isRemote(int64_t chunk, std::optional<int64_t> other) const {
    return other && pipeline.placement.positionOf[chunk] != pipeline.placement.positionOf[*other];
  }
  bool hasInputGradient(int64_t position, size_t end, int64_t chunk, int64_t n) const {
    return count(position, end, ActionKind::Backward, chunk, n) +
           count(position, end, ActionKind::InputGradient, chunk, n);
  }
  bool hasWeightGradient(int64_t position, size_t end, int64_t chunk, int64_t n) const {
    return count(position, end, ActionKind::Backward, chunk, n) +
           count(position, end, ActionKind::WeightGradient, chunk, n);
  }

  /// The slot that a micro-batch holds after `end` actions; -1: none.
  int64_t getSlot(int64_t position, size_t end, int64_t chunk, int64_t n) const {
    std::optional<int64_t> previous = pipeline.placement.getPrevious(chunk);
    int64_t slot = -1;
    for (size_t i = 0; i < end && slot < 0; ++i) {
      const Action &action = list(position)[i];
      bool takes =
          action.kind == ActionKind::Forward || (action.kind == ActionKind::Receive && action.peerChunk == previous);
      if (takes && action.chunk == chunk && action.microBatch == n)
        slot = action.slot;
    }
    bool isDone = hasInputGradient(position, end, chunk, n) && hasWeightGradient(position, end, chunk, n) &&
                  (!isRemote(chunk, previous) || count(position, end, ActionKind::Send, chunk, n, *previous));
    return isDone ? -1 : slot;
  }
  bool isSlotFree(int64_t position, size_t end, const Action &action) const {
    for (int64_t n = 0; n < countAll(position, ActionKind::Forward, action.chunk); ++n)
      if (getSlot(position, end, action.chunk, n) == action.slot)
        return false;
    return action.slot >= 0;
  }

  bool keepsRules(int64_t position, size_t i) const {
    const Action &a = list(position)[i];
    const Placement &placement = pipeline.placement;
    if (placement.positionOf[a.chunk] != position)
      return false;
    int64_t n = a.microBatch, forwards = countAll(position, ActionKind::Forward, a.chunk);
    if (a.kind == ActionKind::Reduce || a.kind == ActionKind::Update) {
      if (count(position, i, a.kind, a.chunk, -1))
        return false;
      for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
        if (a.kind == ActionKind::Update && placement.positionOf[chunk] == position &&
            !count(position, i, ActionKind::Reduce, chunk, -1))
          return false;
      for (int64_t each = 0; each < forwards; ++each)
        if (!hasWeightGradient(position, i, a.chunk, each))
          return false;
      return true;
    }
    if (n < 0 || n >= forwards || count(position, i, a.kind, a.chunk, n, a.peerChunk))
      return false;
    std::optional<int64_t> previous = placement.getPrevious(a.chunk), next = placement.getNext(a.chunk);
    bool hasForward = count(position, i, ActionKind::Forward, a.chunk, n);
    bool isInSlot = a.slot >= 0 && getSlot(position, i, a.chunk, n) == a.slot;
    if (isTransfer(a.kind)) {
      if ((a.peerChunk != previous && a.peerChunk != next) || !isRemote(a.chunk, a.peerChunk) ||
          a.peer != placement.positionOf[a.peerChunk])
        return false;
      bool isSend = a.kind == ActionKind::Send, hasBackward = hasInputGradient(position, i, a.chunk, n);
      if (a.peerChunk == previous)
        return isSend ? hasBackward && isInSlot : !hasForward && isSlotFree(position, i, a);
      return hasForward && isInSlot && (isSend || !hasBackward);
    }
    bool isFirst = true, isLast = true;
    auto getClass = [](ActionKind kind) { return kind == ActionKind::WeightGradient ? ActionKind::Backward : kind; };
    for (size_t k = 0; k < list(position).size(); ++k)
      if (k != i && list(position)[k].chunk == a.chunk && getClass(list(position)[k].kind) == getClass(a.kind))
        (k < i ? isFirst : isLast) = false;
    if (a.isFirst != isFirst || a.isLast != isLast || count(position, i, ActionKind::Reduce, a.chunk, -1))
      return false;
    if (a.kind == ActionKind::Forward) {
      if (isRemote(a.chunk, previous))
        return isInSlot && count(position, i, ActionKind::Receive, a.chunk, n, *previous);
      return isSlotFree(position, i, a) && (!previous || count(position, i, ActionKind::Forward, *previous, n));
    }
    if (!hasForward || !isInSlot)
      return false;
    if (a.kind == ActionKind::WeightGradient)
      return count(position, i, ActionKind::InputGradient, a.chunk, n);
    if (hasInputGradient(position, i, a.chunk, n))
      return false;
    if (isRemote(a.chunk, next))
      return count(position, i, ActionKind::Receive, a.chunk, n, *next);
    return !next || hasInputGradient(position, i, *next, n);
  }

  bool explore(const State &state) {
    if (!seen.insert(state).second)
      return true;
    bool isAtEnd = true, canGoOn = false;
    for (size_t position = 0; position < state.current.size(); ++position) {
      size_t i = state.current[position];
      if (i == list(position).size())
        continue;
      isAtEnd = false;
      if (!keepsRules(position, i))
        return false;
      State following = state;
      ++following.current[position];
      const Action &a = list(position)[i];
      if (isTransfer(a.kind) && !move(following, position, a)) {
        if (isWrong)
          return false;
        continue;
      }
      canGoOn = true;
      if (!explore(following))
        return false;
    }
    return isAtEnd ? llvm::all_of(state.queues, [](const auto &each) { return each.second.empty(); }) : canGoOn;
  }

  /// Returns whether the transfer can end; sets `isWrong` where another message comes than is received.
  bool move(State &state, int64_t position, const Action &a) {
    if (capacity == 0) {
      size_t i = state.current[a.peer];
      if (i == list(a.peer).size())
        return false;
      const Action &other = list(a.peer)[i];
      if (!isTransfer(other.kind) || other.kind == a.kind || other.peer != position)
        return false;
      isWrong |= word(other) != word(a) || !keepsRules(a.peer, i);
      ++state.current[a.peer];
      return !isWrong;
    }
    if (a.kind == ActionKind::Send) {
      std::deque<Word> &queue = state.queues[{position, a.peer}];
      queue.push_back(word(a));
      return queue.size() <= capacity;
    }
    std::deque<Word> &queue = state.queues[{a.peer, position}];
    if (queue.empty())
      return false;
    isWrong |= queue.front() != word(a);
    queue.pop_front();
    return !isWrong;
  }

  /// Every chunk is reduced and updated, and has the micro-batches of its chain.
  bool hasAll() const {
    int64_t expected = 0;
    for (int64_t chunk = 0; chunk < pipeline.placement.countChunks(); ++chunk) {
      int64_t position = pipeline.placement.positionOf[chunk];
      int64_t forwards = countAll(position, ActionKind::Forward, chunk);
      if (!pipeline.placement.getPrevious(chunk))
        expected = forwards;
      if (forwards != expected || forwards == 0 || !countAll(position, ActionKind::Reduce, chunk) ||
          !countAll(position, ActionKind::Update, chunk))
        return false;
    }
    return true;
  }

  const Pipeline &pipeline;
  size_t capacity;
  std::set<State> seen;
  bool isWrong = false;
};

} // namespace windlass::schedule::testing

#endif
