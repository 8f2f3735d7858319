// Files that appear whole or not at all.
#ifndef WINDLASS_SUPPORT_OUTPUTFILE_H
#define WINDLASS_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace windlass {

/// Writes `text` under a temporary name and renames it. Returns a one-line error or nothing.
std::string writeFile(llvm::StringRef path, llvm::StringRef text);

/// Writes out what is left for standard output, and returns a one-line error or nothing. A reader that has closed it
/// wanted no more: that is no error. To be called at the end of a program, whose streams are of no use after it.
std::string finishOutput();

} // namespace windlass

#endif
