// The actions that the rows of an action table stand for.
#ifndef WINDLASS_RT_SRC_PROGRAM_EXPAND_ACTIONS_H
#define WINDLASS_RT_SRC_PROGRAM_EXPAND_ACTIONS_H

#include "windlass/rt/program.h"

namespace windlass::rt {

/// Returns whether every repeat has turns, and rows within the table.
inline bool repeats_fit(const span<action> &rows) {
  for (std::int64_t i = 0; i < rows.size; ++i)
    if (rows[i].kind == action_kind::repeat &&
        (rows[i].count < 1 || rows[i].length < 1 || rows[i].length >= rows.size - i))
      return false;
  return true;
}

/// Calls `visit(row, turn)` for each action in its order: the rows of a repeat, once in each of its turns from 0 on,
/// and every other row in turn 0. Returns the first error of a visit. The repeats must fit.
template <class Visit> status expand_actions(const span<action> &rows, const Visit &visit) {
  for (std::int64_t i = 0; i < rows.size; ++i) {
    if (rows[i].kind != action_kind::repeat) {
      WINDLASS_TRY(visit(rows[i], 0));
      continue;
    }
    for (std::int32_t turn = 0; turn < rows[i].count; ++turn)
      for (std::int64_t k = i + 1; k <= i + rows[i].length; ++k)
        WINDLASS_TRY(visit(rows[k], turn));
    i += rows[i].length;
  }
  return ok_status();
}

} // namespace windlass::rt

#endif
