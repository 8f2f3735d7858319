// The messages of an exchange of rows.
#ifndef WINDLASS_RT_DETAIL_ROW_MESSAGES_H
#define WINDLASS_RT_DETAIL_ROW_MESSAGES_H

#include "windlass/rt/communicator.h"

namespace windlass::rt::detail {

/// Exchanges a message with each other member. `send` and `receive` return the data and bytes of those to and from a
/// member; both know the bytes, so that empty messages are left out. Each call of `transfer` has as many as it takes:
/// the member that is r places ahead gets its message from this one in the same call.
template <class Send, class Receive> status exchange_rows(communicator &c, Send send, Receive receive) {
  const std::int32_t members = c.size(), me = c.index();
  message messages[communicator::most_messages];
  for (std::int32_t ahead = 1; ahead < members;) {
    std::int32_t count = 0;
    for (; ahead < members && count + 2 <= communicator::most_messages; ++ahead) {
      const std::int32_t to = (me + ahead) % members, from = (me + members - ahead) % members;
      for (const message &each : {send(to), receive(from)})
        if (each.bytes > 0)
          messages[count++] = each;
    }
    if (count > 0)
      WINDLASS_TRY(c.transfer(messages, count));
  }
  return {};
}

} // namespace windlass::rt::detail

#endif
