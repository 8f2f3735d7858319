// What a person sees while a program is built.
#ifndef WINDLASS_LIB_PROGRAMS_BUILDPROGRESS_H
#define WINDLASS_LIB_PROGRAMS_BUILDPROGRESS_H

#include "windlass/rt/status.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace windlass {

/// Shows the phases of a build on standard error: on a terminal as one line that renews itself, elsewhere as a line at
/// the beginning of each phase and every few seconds.
class BuildProgress {
public:
  explicit BuildProgress(bool isShown);
  /// Runs `work`, a phase such as "compiling the program", whose tool writes how far it is into the file `log`.
  rt::status during(const std::string &phase, const std::string &log, llvm::function_ref<rt::status()> work) const;

private:
  bool isShown, isRenewed;
};

/// How far a build is, as the end of CMake's log says: "12 of 61" (Ninja), "12 %" (make), or nothing.
std::string findBuildCount(llvm::StringRef log);

} // namespace windlass

#endif
