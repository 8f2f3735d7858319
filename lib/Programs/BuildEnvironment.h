// The inputs of a build by CMake besides its text: the tools, the environment, the processor.
#ifndef WINDLASS_LIB_PROGRAMS_BUILDENVIRONMENT_H
#define WINDLASS_LIB_PROGRAMS_BUILDENVIRONMENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace windlass {

/// Returns the SHA-256 of the parts and of where each ends, in hexadecimal.
std::string hashOf(llvm::ArrayRef<llvm::StringRef> parts);

/// Returns the CMake definitions of all builds.
std::vector<std::string> buildDefinitions();

/// Returns a hash of the compiler and the other tools, their versions, the variables that they read, and the processor;
/// empty where there is no C++ compiler. Builds of one text that agree in it, and in the build type, make the same
/// program.
std::string describeBuildEnvironment();

/// Returns CMAKE_BUILD_TYPE of the environment, which CMake takes for a program; empty where it is not set. The runtime
/// is always a release.
std::string describeBuildType();

} // namespace windlass

#endif
