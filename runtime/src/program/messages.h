// Messages between positions while a step runs.
#ifndef WINDLASS_RT_SRC_PROGRAM_MESSAGES_H
#define WINDLASS_RT_SRC_PROGRAM_MESSAGES_H

#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "box.h"
#include "rank_state.h"

#include <vector>

namespace windlass::rt {

/// Issues the sends and receives of a rank on the streams of its peers, each in the order of the table, and keeps a
/// slot from being read or written by both its chunk and a message: a message waits for the last forward or backward of
/// its chunk in its slot, and those wait for the slot's last messages. A weight gradient, which reads and writes
/// nothing that moves, is waited for but does not wait.
class position_messages {
public:
  void open(const member &its, context &c);
  /// Issues an action of kind send or receive.
  status move(const action &what);
  /// Called before a forward or backward; `end` is called after it, and after a weight gradient.
  status begin(const action &what);
  status end(const action &what);

private:
  /// A row of the program's messages for this rank.
  struct part {
    const message_entry *of;
    std::int64_t bytes;
  };
  /// Returns the chunk and slot of an action as one number, counted over all chunks.
  std::size_t slot_of(const action &what) const;

  context *context_ = nullptr;
  const program *p_ = nullptr;
  std::vector<part> parts_;
  std::vector<std::size_t> first_slot_; ///< for each of the program's chunks
  std::vector<event> computed_;         ///< by slot
  std::vector<event> moved_;            ///< by slot, then by peer
};

} // namespace windlass::rt

#endif
