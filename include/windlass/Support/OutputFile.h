// Files that appear whole or not at all.
#ifndef WINDLASS_SUPPORT_OUTPUTFILE_H
#define WINDLASS_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace windlass {

/// Writes `text` under a temporary name and renames it. Returns a one-line error or nothing.
std::string writeFile(llvm::StringRef path, llvm::StringRef text);

} // namespace windlass

#endif
