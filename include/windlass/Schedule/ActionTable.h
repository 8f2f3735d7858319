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
  Forward,        ///< runs one micro-batch; fills a slot with what the backward reads
  Backward,       ///< goes back through one micro-batch; empties its slot. The last one begins to reduce full buckets
  Reduce,         ///< sums the chunk's gradients over the ranks, after all backwards; waits for what the last one began
  Update,         ///< updates the chunk's parameters
  InputGradient,  ///< runs the part of a backward that the chunk before waits for
  WeightGradient, ///< runs the rest of that backward
  Send,           ///< sends an activation to the next chunk, or a gradient to the one before, on another position
  Receive         ///< receives what that chunk sends
};

/// All kinds, in the order of their numbers.
constexpr ActionKind kActionKinds[] = {ActionKind::Forward, ActionKind::Backward,      ActionKind::Reduce,
                                       ActionKind::Update,  ActionKind::InputGradient, ActionKind::WeightGradient,
                                       ActionKind::Send,    ActionKind::Receive};

/// Returns the word for the kind in texts, such as `forward` or `weight_gradient`.
llvm::StringRef getName(ActionKind kind);

/// Returns the kind of that name; nothing where there is none.
std::optional<ActionKind> findKind(llvm::StringRef name);

inline bool isTransfer(ActionKind kind) { return kind == ActionKind::Send || kind == ActionKind::Receive; }

/// Returns whether actions of the kind complete the backward of a micro-batch.
inline bool endsBackward(ActionKind kind) { return kind == ActionKind::Backward || kind == ActionKind::WeightGradient; }

/// An action, or a repeat of the items of its body.
struct TableItem {
  /// The kind and the chunk of an action; meaningless for a repeat.
  ActionKind kind = ActionKind::Forward;
  int64_t chunk = 0;
  /// How often a repeat runs its body, at least once.
  int64_t count = 1;
  /// The items of a repeat; empty for an action.
  std::vector<TableItem> body;
  /// The chunk at the other end of a send or receive; -1 for other kinds.
  int64_t peerChunk = -1;
  /// The micro-batch of an action; -1: the one after that of the last action of this kind and these chunks.
  int64_t microBatch = -1;

  bool isRepeat() const { return !body.empty(); }
  bool operator==(const TableItem &other) const {
    return kind == other.kind && chunk == other.chunk && count == other.count && body == other.body &&
           peerChunk == other.peerChunk && microBatch == other.microBatch;
  }
};
using ActionTable = std::vector<TableItem>;

/// The most micro-batches of a step.
constexpr int64_t kMaxMicroBatches = int64_t(1) << 20;

/// How deep repeats may be nested: what reads or runs a table may recurse.
constexpr int kMaxNesting = 8;

/// A row of the flat form that `#sched.action` holds.
struct TableRow {
  /// The kind of an action. Nothing: a repeat of the `length` rows that follow, `count` times; the rows of a repeat
  /// inside it count too.
  std::optional<ActionKind> kind;
  int64_t chunk = 0;
  int64_t count = 1;
  int64_t length = 0;
  /// The same as in `TableItem`.
  int64_t peerChunk = -1;
  int64_t microBatch = -1;

  bool operator==(const TableRow &other) const {
    return kind == other.kind && chunk == other.chunk && count == other.count && length == other.length &&
           peerChunk == other.peerChunk && microBatch == other.microBatch;
  }
};

/// Reads the flat form. Fails where a repeat is empty, runs less than once, reaches past the end of the table or of the
/// repeat around it, or is nested too deep; where an action has a count or a length; where a chunk is negative, and
/// where an action has a peer chunk or a micro-batch that it must not have.
llvm::Expected<ActionTable> readRows(llvm::ArrayRef<TableRow> rows);

/// Writes the flat form, which `readRows` reads.
std::vector<TableRow> writeRows(const ActionTable &table);

/// Prints a text such as `3x(forward backward) reduce update`. An action of chunk 2 is `forward:2`, of its micro-batch
/// 5 `forward:2@5`; what chunk 2 sends to chunk 3 is `send:2>3`, and chunk 3 receives it by `receive:3>2`.
std::string printTable(const ActionTable &table);

/// Reads what `printTable` prints. Fails with the place of what it cannot read.
llvm::Expected<ActionTable> parseTable(llvm::StringRef text);

/// Makes the step of a rank with one chunk: each of `microBatches` forward and backward in turn, then the reduction and
/// the update. Takes at least one micro-batch.
ActionTable makeSequentialStep(int64_t microBatches);

} // namespace windlass::schedule

#endif
