// The progress of a build, as its log tells it.
#ifndef WINDLASS_LIB_PROGRAMS_BUILDPROGRESS_H
#define WINDLASS_LIB_PROGRAMS_BUILDPROGRESS_H

#include "windlass/Programs/BuildEvents.h"
#include "windlass/rt/status.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"

namespace windlass {

/// Returns how far a build is, as the end of CMake's log says: "12 of 61" (Ninja), "12 %" (make), or nothing.
std::string findBuildCount(llvm::StringRef log);

/// Tells `events` the progress of `phase`, which fills `log`, while `work` runs; returns what `work` returns.
rt::status tellProgress(const BuildEvents &events, const std::string &phase, const std::string &log,
                        llvm::function_ref<rt::status()> work);

} // namespace windlass

#endif
