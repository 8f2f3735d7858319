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

/// Every flag that a program knows, in the order of its --help.
std::vector<program_flag> program_flags();
/// Whether the flag `name` (without dashes) can have the value `text`; nothing is opened.
status check_flag(const std::string &name, const std::string &text);
/// Whether a run of `j` with these flags can begin: what the program finds wrong with its flags, data, checkpoint,
/// initial values and folder before its first step, found without it. Nothing of `p` is called, and its offsets are not
/// read.
status check_run(const job &j, const std::vector<std::string> &flags);
/// The settings of a --config file as flags.
status read_config(const std::string &path, std::vector<std::string> &flags);

} // namespace windlass::rt

#endif
