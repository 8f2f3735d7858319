// What passes between two positions.
#ifndef WINDLASS_SCHEDULE_MESSAGE_H
#define WINDLASS_SCHEDULE_MESSAGE_H

#include "windlass/Schedule/Schedule.h"

#include "llvm/ADT/Twine.h"

#include <tuple>

namespace windlass::schedule {

/// A message, however its two ends name it.
struct Message {
  int64_t from, to, microBatch;

  explicit Message(const Action &transfer)
      : from(transfer.kind == ActionKind::Send ? transfer.chunk : transfer.peerChunk),
        to(transfer.kind == ActionKind::Send ? transfer.peerChunk : transfer.chunk), microBatch(transfer.microBatch) {}
  /// Returns whether the message is a gradient: gradients go back along the model.
  bool isGradient() const { return to < from; }
  bool operator==(const Message &other) const {
    return from == other.from && to == other.to && microBatch == other.microBatch;
  }
  bool operator<(const Message &other) const {
    return std::tie(from, to, microBatch) < std::tie(other.from, other.to, other.microBatch);
  }
  std::string print() const {
    return (llvm::Twine("the ") + (isGradient() ? "gradient" : "activation") + " of micro-batch " +
            llvm::Twine(microBatch) + " from chunk " + llvm::Twine(from) + " to chunk " + llvm::Twine(to))
        .str();
  }
};

} // namespace windlass::schedule

#endif
