// The order of the messages of one transfer.
#ifndef WINDLASS_TRANSPORT_MESSAGE_QUEUE_H
#define WINDLASS_TRANSPORT_MESSAGE_QUEUE_H

#include "windlass/rt/communicator.h"

#include <string>

namespace windlass::rt::detail {

/// The unfinished messages of a transfer. Those of one direction with the same member go one after another, all others
/// at once.
class message_queue {
public:
  message_queue(const message *messages, std::int32_t count) : left_(count) {
    for (std::int32_t i = 0; i < count; ++i) {
      before_[i] = -1;
      for (std::int32_t j = i; j-- > 0 && before_[i] < 0;)
        if (messages[j].way == messages[i].way && messages[j].peer == messages[i].peer)
          before_[i] = j;
    }
    for (std::int32_t i = 0; i < count; ++i)
      pending_[i] = i;
  }

  bool is_empty() const { return left_ == 0; }

  /// Calls `advance(i)` for each message whose turn it is; it returns true when the message is finished.
  template <class F> void visit(F advance) {
    std::int32_t kept = 0;
    for (std::int32_t k = 0; k < left_; ++k) {
      const std::int32_t i = pending_[k];
      const bool has_turn = before_[i] < 0 || is_through_[before_[i]];
      if (has_turn && advance(i))
        is_through_[i] = true;
      else
        pending_[kept++] = i;
    }
    left_ = kept;
  }

private:
  std::int32_t before_[communicator::most_messages], pending_[communicator::most_messages];
  bool is_through_[communicator::most_messages] = {};
  std::int32_t left_;
};

/// Returns the error of a message whose members disagree on its size; `index` is the receiver.
inline status wrong_message(const message &received, std::int32_t index, std::int64_t sent) {
  return internal_error("member " + std::to_string(received.peer) + " sends " + std::to_string(sent) +
                        " bytes, but member " + std::to_string(index) + " receives " + std::to_string(received.bytes));
}

} // namespace windlass::rt::detail

#endif
