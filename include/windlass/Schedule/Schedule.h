// The actions of a rank's step one by one, in the order in which they run, and the rules of a legal order. Plain C++,
// no IR.
#ifndef WINDLASS_SCHEDULE_SCHEDULE_H
#define WINDLASS_SCHEDULE_SCHEDULE_H

#include "windlass/Schedule/ActionTable.h"

namespace windlass::schedule {

struct Action {
  ActionKind kind = ActionKind::Forward;
  /// The part of the model that is run.
  int64_t chunk = 0;
  /// The number, from 0, of a micro-batch among those of the rank in the step. A reduction has the last one that it
  /// covers; an update has 0.
  int64_t microBatch = 0;
  /// Which of the chunk's slots keeps the micro-batch's inputs and stash from its forward to its backward. Meaningless
  /// for other kinds.
  int64_t slot = 0;
  /// Whether no action of the same chunk and kind stands before it, or none after it. The first backward overwrites the
  /// gradients, later ones add to them; the last one begins to reduce them.
  bool isFirst = true;
  bool isLast = true;
  /// Of a send or receive: the chunk at the other end, and the position that runs it. -1 of other kinds.
  int64_t peerChunk = -1;
  int64_t peer = -1;
};

/// A step of a rank.
struct Schedule {
  std::vector<Action> actions;

  /// The slots that each chunk needs.
  int64_t getSlots() const;
};

/// More actions than any step has, which is of at most 2^20 micro-batches; larger tables are not expanded.
constexpr size_t kMaxActions = size_t(1) << 22;

/// Lists the actions of a table. The n-th forward of a chunk is of micro-batch n, and so is its n-th backward; a
/// forward takes the lowest slot that is free, which its backward frees. Fails where there are more than `kMaxActions`.
/// Whether the order is legal is not looked at.
llvm::Expected<Schedule> expand(const ActionTable &table);

/// Makes the table of a schedule whose micro-batches and slots are those that `expand` gives it: a run of actions that
/// comes several times in succession becomes a repeat where that makes the table shorter.
ActionTable compress(const Schedule &schedule);

/// Fails with what is wrong where the order is not legal. In a legal order
/// - each chunk has the same micro-batches 0, 1, ..., and each has one forward and behind it one backward,
/// - a forward's slot is empty, and its backward reads that slot,
/// - each chunk is reduced once, after all of its backwards,
/// - each chunk is updated once, after all chunks are reduced,
/// - `isFirst` and `isLast` say what they stand for.
llvm::Error checkOrder(const Schedule &schedule);

/// A row of a step as programs hold it: an action with all that is known of it, or a repeat of the `length` rows that
/// follow, `count` times. Repeats do not nest. In turn t of a repeat, from 0, an action is of micro-batch
/// `action.microBatch + t * perTurn`; all else of it is the same in each turn.
struct StepRow {
  Action action;
  int64_t perTurn = 0;
  /// Of a repeat; 0: an action.
  int64_t count = 0, length = 0;

  bool isRepeat() const { return count > 0; }
};

/// Lists the rows of a schedule, with a repeat where that takes fewer rows.
std::vector<StepRow> makeRows(const Schedule &schedule);

} // namespace windlass::schedule

#endif
