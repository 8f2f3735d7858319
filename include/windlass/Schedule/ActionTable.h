// The actions of a rank's step in compact form: a list in which repeats are run-length coded. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_ACTIONTABLE_H
#define WINDLASS_SCHEDULE_ACTIONTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace windlass::schedule {

/// What an action does with its chunk.
enum class ActionKind {
  Forward,        ///< of one micro-batch; fills a slot with what the backward reads
  Backward,       ///< of one micro-batch; empties its slot
  Reduce,         ///< sums the chunk's gradients over the ranks, after all backwards
  BackwardReduce, ///< the chunk's last backward, with the reduction between its commands
  Update          ///< of the chunk's parameters
};

/// The word for the kind in texts: forward, backward, reduce, backward_reduce or update.
llvm::StringRef getName(ActionKind kind);

/// An action, or a repeat of the items of its body.
struct TableItem {
  /// Of an action; a repeat has neither.
  ActionKind kind = ActionKind::Forward;
  int64_t chunk = 0;
  /// Of a repeat: how often its body runs, at least once.
  int64_t count = 1;
  /// Empty: an action.
  std::vector<TableItem> body;

  bool isRepeat() const { return !body.empty(); }
  bool operator==(const TableItem &other) const {
    return kind == other.kind && chunk == other.chunk && count == other.count && body == other.body;
  }
};
using ActionTable = std::vector<TableItem>;

/// Repeats may stand inside repeats, this many deep: what reads or runs a table may recurse.
constexpr int kMaxNesting = 8;

/// A row of the flat form that `#sched.action` and emitted programs hold.
struct TableRow {
  /// None: a repeat of the `length` rows that follow, `count` times. The rows of a repeat inside it count too.
  std::optional<ActionKind> kind;
  int64_t chunk = 0;
  int64_t count = 1;
  int64_t length = 0;

  bool operator==(const TableRow &other) const {
    return kind == other.kind && chunk == other.chunk && count == other.count && length == other.length;
  }
};

/// Reads the flat form. Fails where a repeat is empty, runs less than once, reaches past the end of the table or of the
/// repeat around it, or is nested too deep; where an action has a count or a length; and where a chunk is negative.
llvm::Expected<ActionTable> readRows(llvm::ArrayRef<TableRow> rows);

/// Writes the flat form, which `readRows` reads.
std::vector<TableRow> writeRows(const ActionTable &table);

/// Prints such as `3x(forward backward) reduce update`; an action of chunk 2 is `forward:2`.
std::string printTable(const ActionTable &table);

/// Reads what `printTable` prints. Fails with the place of what it cannot read.
llvm::Expected<ActionTable> parseTable(llvm::StringRef text);

/// Makes the step of a rank with one chunk: each of `microBatches` forward and backward in turn, then the reduction and
/// the update. Takes at least one micro-batch.
ActionTable makeSequentialStep(int64_t microBatches);

} // namespace windlass::schedule

#endif
