#include "windlass/rt/transport.h"

#include "shared_memory.h"
#include "staging.h"

namespace windlass::rt {

std::int64_t message_bytes(std::int32_t members, bool is_one_host) {
  if (members < 2)
    return 0;
  return is_one_host ? shared_group_bytes(members) : 2 * static_cast<std::int64_t>(staging_bytes(members));
}

} // namespace windlass::rt
