// Checks of a program's tables before anything uses them.
#ifndef WINDLASS_RT_SRC_PROGRAM_CHECK_JOB_H
#define WINDLASS_RT_SRC_PROGRAM_CHECK_JOB_H

#include "windlass/rt/program.h"

#include <string>

namespace windlass::rt {

/// Checks all that the runtime takes for granted: sizes and numbers within their tables, places within arenas, one
/// master for each parameter, positions and messages that fit together, and `check_actions`. Returns an internal error
/// that says what is wrong.
status check_job(const job &j);

/// Checks the actions of all positions. In the step of each position, every micro-batch of a chunk has one forward and
/// after it one backward, in slots that the chunk has, and a chunk is reduced and updated once. All positions come to
/// their end where a send waits for its receive.
status check_actions(const job &j);

/// Returns the error of tables that the compiler should not have written.
status wrong_tables(const std::string &what);

} // namespace windlass::rt

#endif
