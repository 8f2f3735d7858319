// Text inside of HTML and SVG.
#ifndef WINDLASS_SUPPORT_MARKUP_H
#define WINDLASS_SUPPORT_MARKUP_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace windlass {

/// Returns `text` escaped for HTML and SVG, in elements and in quoted attributes; control characters become spaces.
std::string escapeMarkup(llvm::StringRef text);

} // namespace windlass

#endif
