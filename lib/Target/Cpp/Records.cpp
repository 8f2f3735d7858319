#include "windlass/Target/Cpp/Records.h"

#include "windlass/Target/Cpp/ProgramTables.h"

using namespace windlass;
using namespace windlass::cpp;

std::string cpp::quoted(llvm::StringRef text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c >= 0x20 && c < 0x7f && c != '?') {
      out += static_cast<char>(c);
    } else {
      // Three octal digits end by themselves, unlike hexadecimal escapes; '?' could start a trigraph.
      out += '\\';
      out += static_cast<char>('0' + (c >> 6));
      out += static_cast<char>('0' + ((c >> 3) & 7));
      out += static_cast<char>('0' + (c & 7));
    }
  }
  return out + "\"";
}

Expr<const char *> cpp::literal(llvm::StringRef text) { return Expr<const char *>(quoted(text)); }

Expr<const char *> cpp::noText() { return Expr<const char *>(std::string("nullptr")); }

Expr<rt::element_type> cpp::elementType(mlir::Type type) { return Expr<rt::element_type>(elementTypeText(type)); }
