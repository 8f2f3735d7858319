// Flags of the emitted program, which `train` hands on.
#ifndef WINDLASS_LIB_PIPELINE_PROGRAMFLAGS_H
#define WINDLASS_LIB_PIPELINE_PROGRAMFLAGS_H

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace windlass {

enum class ProgramValue { None, Needed, Optional };

struct ProgramFlag {
  const char *name;
  ProgramValue value;
};

llvm::ArrayRef<ProgramFlag> getProgramFlags();

/// Moves the program's flags, with their values, from `words` to `handedOn`; the rest stays in order. Returns a
/// one-line error or nothing.
std::string takeProgramFlags(std::vector<std::string> &words, std::vector<std::string> &handedOn);

} // namespace windlass

#endif
