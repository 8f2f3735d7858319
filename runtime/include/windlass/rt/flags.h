// The flags of emitted programs, for tools that take them and hand them on.
#ifndef WINDLASS_RT_FLAGS_H
#define WINDLASS_RT_FLAGS_H

#include "windlass/rt/status.h"

#include <string>
#include <vector>

namespace windlass::rt {

struct job;

struct program_flag {
  std::string name;     ///< without dashes; one letter: a short flag
  std::string argument; ///< empty: takes none; "[...]": may be left out
  std::string help;
};

/// Returns every flag that a program knows, in the order of its --help.
std::vector<program_flag> program_flags();
/// Checks that the flag `name` (without dashes) can have the value `text`; opens nothing.
status check_flag(const std::string &name, const std::string &text);
/// Checks that a run of `j` with these flags can begin: finds what the program would find wrong with its flags, data,
/// checkpoint, initial values and folder before its first step. Calls no function of the job's programs and does not
/// read their offsets.
status check_run(const job &j, const std::vector<std::string> &flags);
/// Reads the settings of a --config file as flags.
status read_config(const std::string &path, std::vector<std::string> &flags);

} // namespace windlass::rt

#endif
