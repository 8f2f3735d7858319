// The actions of a position's step one by one, in the order in which they run. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_SCHEDULE_H
#define WINDLASS_SCHEDULE_SCHEDULE_H

#include "windlass/Schedule/ActionTable.h"

namespace windlass::schedule {

struct Action {
  ActionKind kind = ActionKind::Forward;
  /// The part of the model that is run.
  int64_t chunk = 0;
  /// The number, from 0, of a micro-batch among those of the chunk's chain in the step. A reduction has that of the
  /// last backward before it; an update has 0.
  int64_t microBatch = 0;
  /// The chunk's slot that keeps the micro-batch's inputs, stash and borders, as `Pipeline` says. Meaningless for
  /// reductions and updates.
  int64_t slot = 0;
  /// The chunk's slot that keeps what the input gradient hands to the weight gradient. Only these two use it.
  int64_t handedSlot = 0;
  /// Whether no action of the same chunk and kind comes before it, or none after it. The first backward overwrites the
  /// gradients, later ones add to them; the last one begins to reduce them.
  bool isFirst = true;
  bool isLast = true;
  /// The chunk at the other end of a send or receive, and the position that runs it; -1 for other kinds.
  int64_t peerChunk = -1;
  int64_t peer = -1;
};

/// A step of a position, each rank of which runs it.
struct Schedule {
  std::vector<Action> actions;

  /// Returns the number of slots that a chunk needs: its most micro-batches in flight, at least 1.
  int64_t getSlots(int64_t chunk) const;
  /// Returns the number of handed slots that a chunk needs: the most micro-batches that have run their input gradient
  /// and wait for their weight gradient, at least 1.
  int64_t getHandedSlots(int64_t chunk) const;
};

/// The most actions of a step, which has at most 2^20 micro-batches; larger tables are not expanded.
constexpr size_t kMaxActions = size_t(1) << 22;

/// Makes the table of a schedule whose micro-batches and slots are those that `expandPipeline` gives it: a run of
/// actions that comes several times in succession becomes a repeat where that makes the table shorter.
ActionTable compress(const Schedule &schedule);

/// A row of a step as programs hold it: an action with all that is known of it, or a repeat of the `length` rows that
/// follow, `count` times. Repeats do not nest. In turn t of a repeat, from 0, an action is of micro-batch
/// `action.microBatch + t * perTurn`; all else of it is the same in each turn.
struct StepRow {
  Action action;
  int64_t perTurn = 0;
  /// How often a repeat runs, and how many rows it repeats; both are 0 for an action.
  int64_t count = 0, length = 0;

  bool isRepeat() const { return count > 0; }
};

/// Lists the rows of a schedule, with a repeat where that takes fewer rows.
std::vector<StepRow> makeRows(const Schedule &schedule);

} // namespace windlass::schedule

#endif
