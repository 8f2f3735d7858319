// Which rows go between tokens and the members that have the experts of their choice.
#ifndef WINDLASS_RT_DETAIL_ROW_ROUTES_H
#define WINDLASS_RT_DETAIL_ROW_ROUTES_H

#include "windlass/rt/scalar.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

#include <algorithm>
#include <cstdint>

namespace windlass::rt::detail {

/// Members have equally many tokens, and equally many experts in the order of their index. A token's row goes to the
/// members that have an expert of its choice, and once to each of them. Choices that name no expert lead nowhere.
struct row_routes {
  const std::int64_t *choices; ///< [all members' tokens, chosen], dense, the same on all members
  std::int64_t tokens;         ///< of each member
  std::int64_t chosen;
  std::int64_t experts; ///< of each member
  std::int64_t columns;
  element_type type;

  std::int64_t row_bytes() const { return columns * size_of(type); }
  /// Whether a token, by its number among those of all members, chooses an expert of the member.
  WINDLASS_FN bool reaches(std::int64_t token, std::int32_t member) const {
    const std::int64_t first = member * experts;
    for (std::int64_t c = 0; c < chosen; ++c) {
      const std::int64_t expert = choices[token * chosen + c];
      if (expert >= first && expert < first + experts)
        return true;
    }
    return false;
  }
  /// Returns how many tokens of member `from` reach member `to`.
  std::int64_t count(std::int32_t from, std::int32_t to) const {
    std::int64_t rows = 0;
    for (std::int64_t token = from * tokens; token < (from + 1) * tokens; ++token)
      rows += reaches(token, to) ? 1 : 0;
    return rows;
  }
};

/// Returns the bytes of scratch for the rows that one member sends to others, or gets from them: a token has one row
/// for each of its choices at most.
constexpr std::int64_t row_bytes_of_others(std::int64_t members, std::int64_t tokens, std::int64_t chosen,
                                           std::int64_t row_bytes) {
  return (std::min(chosen, members - 1) * tokens * row_bytes + 15) / 16 * 16;
}

/// Returns the elements of scratch, of `width` bytes each: those rows, and then lists, for each member, of the rows
/// that go to it and come from it (i32), with their numbers.
constexpr std::int64_t row_scratch_elements(std::int64_t members, std::int64_t tokens, std::int64_t chosen,
                                            std::int64_t columns, std::int64_t width) {
  const std::int64_t lists = 2 * members * (tokens + 1) * 4;
  return (row_bytes_of_others(members, tokens, chosen, columns * width) + lists + width - 1) / width;
}

/// Adds up rows of one token, in their order; zeros where there is none. For the host's memory.
status sum_rows(std::byte *out, const std::byte *const *rows, std::int32_t count, const row_routes &of);

} // namespace windlass::rt::detail

#endif
