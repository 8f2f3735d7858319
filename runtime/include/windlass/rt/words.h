// Counts as people write them.
#ifndef WINDLASS_RT_WORDS_H
#define WINDLASS_RT_WORDS_H

#include <cstdint>
#include <string>
#include <string_view>

namespace windlass::rt {

/// Returns "1 rank" or "2 ranks". `plural` is given where it is not the noun with an s.
inline std::string count_of(std::int64_t count, std::string_view noun, std::string_view plural = {}) {
  std::string text = std::to_string(count) + " ";
  text += count == 1 || plural.empty() ? noun : plural;
  return count == 1 || !plural.empty() ? text : text + "s";
}

} // namespace windlass::rt

#endif
