#include "windlass/Support/Diagnostics.h"

#include "llvm/ADT/STLExtras.h"

using namespace windlass;

llvm::ArrayRef<DiagnosticInfo> windlass::getDiagnostics() {
  static constexpr DiagnosticInfo table[] = {
#define WINDLASS_DIAGNOSTIC(name, number, exit_code, title, explanation) {Code::name, exit_code, title, explanation},
#include "windlass/rt/diagnostics.def"
#undef WINDLASS_DIAGNOSTIC
  };
  return table;
}

const DiagnosticInfo *windlass::findDiagnostic(llvm::StringRef text) {
  if (text.size() > 2 && text.take_front(2).equals_insensitive("WL"))
    text = text.drop_front(2);
  int number;
  if (text.size() > 4 || text.getAsInteger(10, number))
    return nullptr;
  auto found = llvm::find_if(getDiagnostics(), [&](const DiagnosticInfo &row) { return int(row.code) == number; });
  return found == getDiagnostics().end() ? nullptr : &*found;
}

int windlass::exitCodeOf(Code code) {
  for (const DiagnosticInfo &row : getDiagnostics())
    if (row.code == code)
      return row.exitCode;
  return exitCodeOf(Code::internal);
}

void windlass::writeJsonError(llvm::json::OStream &json, Code code, llvm::StringRef where, llvm::StringRef message,
                              int exitCode) {
  json.attributeObject("error", [&] {
    json.attribute("code", rt::diagnostic_code(code));
    json.attribute("message", llvm::json::fixUTF8(message));
    json.attribute("at", where.empty() ? llvm::json::Value(nullptr) : llvm::json::Value(llvm::json::fixUTF8(where)));
  });
  json.attribute("exit", exitCode);
}
