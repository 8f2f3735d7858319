// Whether commands on streams touch memory in an order that events guarantee.
#ifndef WINDLASS_INTERPRETER_SCHEDULECHECKER_H
#define WINDLASS_INTERPRETER_SCHEDULECHECKER_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace windlass::interpreter {

/// A strided window onto an arena. The offset is in bytes, strides are in elements of `elementBytes` bytes.
struct Window {
  unsigned arena = 0;
  int64_t offset = 0;
  int64_t elementBytes = 4;
  llvm::SmallVector<int64_t, 4> sizes, strides;

  bool operator==(const Window &other) const {
    return arena == other.arena && offset == other.offset && elementBytes == other.elementBytes &&
           sizes == other.sizes && strides == other.strides;
  }
};

/// Follows one rank's commands in the order in which the host issues them. Two commands are ordered when they are on
/// one stream, or when a chain of events (record on the one stream, later wait on the other) or a wait of the host
/// leads from the first to the second: vector clocks over streams (Mattern, 1989). Of two commands that touch the same
/// bytes, one of them writing, the later one must be ordered after the earlier one; then every order that the device
/// may choose computes the same. Memory is followed in words of four bytes.
class ScheduleChecker {
public:
  /// What is wrong with the current command, and the command that it conflicts with (null: none, or the host).
  struct Finding {
    std::string text;
    mlir::Operation *other = nullptr;
    bool meetsHost = false;
  };

  /// Starts with arenas of `arenaBytes` bytes each, which nobody has written.
  explicit ScheduleChecker(llvm::ArrayRef<int64_t> arenaBytes);

  /// Begins a command of a stream; the accesses that follow are the command's.
  void begin(mlir::Operation *command, int64_t stream);
  /// Begins an access by the host, which all commands that are issued later come after.
  void beginHost();
  /// Checks that the window's bytes have been written, by commands that are ordered before this one. `mayBeUnwritten`
  /// allows holes that nobody wrote (the gaps of a bucket).
  std::optional<Finding> read(const Window &window, bool mayBeUnwritten = false);
  /// Checks that earlier reads and writes of the window's bytes are ordered before this command. `mayOverlapReads`
  /// allows it to write what the command itself reads (a kernel that runs in place).
  std::optional<Finding> write(const Window &window, bool mayOverlapReads = true);

  void record(int64_t event, int64_t stream);
  /// Makes the stream wait for the event. Returns false where the event has not been recorded.
  bool wait(int64_t event, int64_t stream);
  /// Makes the host wait for what the stream has been given so far, or for all streams.
  void waitByHost(int64_t stream);
  void waitByHost();

private:
  using Clock = llvm::SmallVector<int64_t, 4>;
  struct Command {
    mlir::Operation *op;
    unsigned stream;
    int64_t time;
  };
  struct Arena {
    std::vector<int32_t> writer;
    /// The last command of the stream that read the word, by [stream][word].
    std::vector<std::vector<int32_t>> readers;
  };

  unsigned streamIndex(int64_t stream);
  void start(mlir::Operation *op, unsigned stream);
  static void join(Clock &clock, const Clock &other);
  bool isOrdered(int32_t command) const;
  Finding findingOf(llvm::StringRef text, int32_t other, int64_t word) const;
  /// Calls `visit(word)` for every word that the window touches until it returns a finding.
  template <class Visit> std::optional<Finding> forEachWord(const Window &window, Visit visit);

  std::vector<Arena> arenas;
  std::vector<Command> commands;
  /// The indices of streams; index 0 is the host.
  llvm::DenseMap<int64_t, unsigned> streams;
  std::vector<Clock> clocks;
  llvm::DenseMap<int64_t, Clock> events;
  int32_t current = -1;
};

} // namespace windlass::interpreter

#endif
