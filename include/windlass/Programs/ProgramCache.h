// Built training programs, kept between runs.
#ifndef WINDLASS_PROGRAMS_PROGRAMCACHE_H
#define WINDLASS_PROGRAMS_PROGRAMCACHE_H

#include "windlass/Programs/BuildEvents.h"
#include "windlass/Support/FileLock.h"
#include "windlass/Target/Cpp/Project.h"
#include "windlass/rt/status.h"

#include <functional>
#include <string>

namespace windlass {

/// The sources that a program is built from.
struct ProgramSource {
  cpp::ProjectFiles files;
  /// The name of the program that the project makes.
  std::string program;
  /// A key for what `writeData` writes into the program's folder; `writeData` returns an error text or nothing.
  std::string dataKey;
  std::function<std::string(const std::string &folder)> writeData = [](const std::string &) { return std::string(); };
};

/// A built program, which stays for as long as this lives.
struct BuiltProgram {
  /// The emitted project with its build in it.
  std::string folder;
  FileLock use;
};

/// Builds a program in `$XDG_CACHE_HOME/windlass` (default `~/.cache/windlass`, mode 0700), or finds it built there.
/// Programs are keyed by a hash of all text, of `dataKey`, of the tools that build it and of the environment that they
/// read. One that is found has been compared with what was recorded when it was built. All programs link one build of
/// the runtime: that in `../lib/windlass` of the executable, or one in the same folder as the programs.
rt::status buildProgram(const ProgramSource &source, const BuildEvents &events, BuiltProgram &built);

/// Builds the runtime that programs link, where it is not there yet, in `folder` or, if that is empty, where programs
/// are kept. Removes other builds of it in `folder` that nobody uses.
rt::status prepareRuntime(const std::string &folder, const BuildEvents &events);

} // namespace windlass

#endif
