// Data files of an emitted project that its program reads.
#ifndef WINDLASS_RT_SRC_PROGRAM_PROGRAM_FILES_H
#define WINDLASS_RT_SRC_PROGRAM_PROGRAM_FILES_H

#include "windlass/rt/status.h"

#include <string>

namespace windlass::rt {

/// Finds the path of a file beside the program or one folder up, as in a project whose build is in `build`.
status find_program_file(const std::string &name, std::string &path);

} // namespace windlass::rt

#endif
