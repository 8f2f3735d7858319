// The streams of a program by their numbers.
#ifndef WINDLASS_DIALECT_SCHED_IR_STREAMS_H
#define WINDLASS_DIALECT_SCHED_IR_STREAMS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include <optional>
#include <string>

namespace windlass::sched {

/// Returns how timelines name the positions that a communicator spans: "positions" where it spans all, "positions 0, 3"
/// where some, and nothing where it has ranks of its own position only.
std::string describePositions(CommunicatorOp communicator);

/// Returns the name of the stream of the messages with another position, in timelines and reports.
std::string getMessagesName(int64_t peer);

/// The memories that commands on a stream read and write.
struct StreamMemories {
  plan::MemoryKind read = plan::MemoryKind::device, written = plan::MemoryKind::device;
};

/// Returns the memories of streams of a kind.
StreamMemories getMemories(StreamKind kind);

/// Whether the streams of a kind copy between the disk and the host's memory.
inline bool isOfDisk(StreamKind kind) { return kind == StreamKind::disk_read || kind == StreamKind::disk_write; }

/// Returns the kind of the streams that move values from one memory to another; none where no stream does.
std::optional<StreamKind> findMovingKind(plan::MemoryKind from, plan::MemoryKind to);

/// Numbers the streams of a program, in the order of their declaration. Commands must have passed their verifiers: they
/// name streams and communicators of the program.
class StreamTable {
public:
  explicit StreamTable(ProgramOp program);

  int64_t size() const { return static_cast<int64_t>(streams.size()); }
  StreamOp getStream(int64_t number) const { return streams[number]; }
  StreamKind getKind(int64_t number) const { return getStream(number).getKind(); }
  /// Returns the number of the stream that a command, an event or a collective of a function runs on.
  int64_t getNumber(mlir::Operation *command) const;
  int64_t getNumber(CommunicatorOp communicator) const { return numbers.at(communicator.getStreamAttr().getAttr()); }
  /// Returns the number of the stream of kind compute; none in a program without one.
  std::optional<int64_t> getCompute() const;
  /// Returns the name of the stream in timelines and reports: "compute", or "over data x batch" for collectives over
  /// both axes.
  std::string getShownName(int64_t number) const { return shownNames[number]; }

private:
  llvm::SmallVector<StreamOp> streams;
  llvm::SmallVector<std::string> shownNames;
  /// The numbers, by the name of a stream or communicator.
  llvm::DenseMap<mlir::StringAttr, int64_t> numbers;
};

} // namespace windlass::sched

#endif
