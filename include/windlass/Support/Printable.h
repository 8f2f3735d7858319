//===- Printable.h - untrusted text in a diagnostic -------------*- C++ -*-===//

#ifndef WINDLASS_SUPPORT_PRINTABLE_H
#define WINDLASS_SUPPORT_PRINTABLE_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace windlass {

/// Returns `text` in single quotes, on one line, of bounded length: control characters are escaped, and what is beyond
/// `limit` bytes becomes an ellipsis.
inline std::string printable(llvm::StringRef text, size_t limit = 160) {
  std::string result = "'";
  llvm::raw_string_ostream stream(result);
  for (unsigned char c : text.take_front(limit)) {
    if (c >= 0x20 && c != 0x7f)
      stream << static_cast<char>(c);
    else
      stream << "\\x" << llvm::hexdigit(c >> 4, true) << llvm::hexdigit(c & 15, true);
  }
  if (text.size() > limit)
    stream << "...";
  stream << "'";
  return result;
}

/// Returns at most 4000 bytes of `text` without quotes on one line: control characters become spaces, so that a line
/// stays a line and a terminal keeps its state.
inline std::string oneLine(llvm::StringRef text) {
  std::string result;
  for (unsigned char c : text.take_front(4000))
    result += c < 0x20 || c == 0x7f ? ' ' : static_cast<char>(c);
  return result;
}

} // namespace windlass

#endif // WINDLASS_SUPPORT_PRINTABLE_H
