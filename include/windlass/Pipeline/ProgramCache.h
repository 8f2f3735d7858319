// Built training programs, kept between runs.
#ifndef WINDLASS_PIPELINE_PROGRAMCACHE_H
#define WINDLASS_PIPELINE_PROGRAMCACHE_H

#include "windlass/Target/Cpp/Project.h"
#include "windlass/rt/status.h"

#include <functional>
#include <string>

namespace windlass {

/// Builds `files` in `$XDG_CACHE_HOME/windlass` (default `~/.cache/windlass`, mode 0700), or finds them built there.
/// Entries are keyed by a hash of all text, of `dataKey` (what `writeData` writes into the entry's folder), of the
/// compiler and of the options; an entry counts only once its mark is there, so an interrupted build is made again. The
/// runtime is built once for all programs that have its text. `showsProgress` shows on standard error what is being
/// built, where it is not there yet. `folder` becomes the entry's: the emitted project with its build in it.
rt::status buildProgram(const cpp::ProjectFiles &files, llvm::StringRef dataKey,
                        const std::function<std::string(const std::string &folder)> &writeData, bool verbose,
                        bool showsProgress, std::string &folder);

} // namespace windlass

#endif
