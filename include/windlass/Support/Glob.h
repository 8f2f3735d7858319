// Globs with which users choose among names.
#ifndef WINDLASS_SUPPORT_GLOB_H
#define WINDLASS_SUPPORT_GLOB_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace windlass {

/// Returns the names that a glob matches, in their order; a name that is equal to the text is the only match. Fails,
/// with one line that says what was looked for (such as "operator"), for a text that is no glob and for one that
/// matches nothing: most often it is misspelt, and the line has the nearest name.
llvm::Expected<std::vector<std::string>> matchNames(llvm::StringRef glob, llvm::ArrayRef<std::string> names,
                                                    llvm::StringRef what);

/// Returns a name as a glob that matches nothing else.
std::string escapeGlob(llvm::StringRef name);

} // namespace windlass

#endif
