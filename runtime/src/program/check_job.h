// Checks of a program's tables before anything is done by them.
#ifndef WINDLASS_RT_SRC_PROGRAM_CHECK_JOB_H
#define WINDLASS_RT_SRC_PROGRAM_CHECK_JOB_H

#include "windlass/rt/program.h"

#include <string>

namespace windlass::rt {

/// Checks all that the runtime takes for granted: sizes and numbers within their tables, places within arenas, one
/// master for each parameter, positions and messages that fit together, and `check_actions`. An internal error with
/// what is wrong.
status check_job(const job &j);

/// Checks that in the step of each position every micro-batch of a chunk has one forward and behind it one backward, in
/// slots that the chunk has, that a chunk is reduced and updated once, and that all positions come to their end where a
/// send waits for its receive.
status check_actions(const job &j);

/// The error of tables that the compiler should not have written.
status wrong_tables(const std::string &what);

} // namespace windlass::rt

#endif
