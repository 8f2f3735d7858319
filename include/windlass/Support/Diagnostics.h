// The codes of diagnostics: one table, in the runtime because emitted programs use it too.
#ifndef WINDLASS_SUPPORT_DIAGNOSTICS_H
#define WINDLASS_SUPPORT_DIAGNOSTICS_H

#include "windlass/rt/status.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"

#include <string>

namespace windlass {

using Code = rt::diagnostic;

struct DiagnosticInfo {
  Code code;
  int exitCode;
  const char *title, *explanation;
};

/// Returns every code, by number.
llvm::ArrayRef<DiagnosticInfo> getDiagnostics();
/// Returns the row of a code as people write it: WL0305, wl305 or 305. Null for any other text.
const DiagnosticInfo *findDiagnostic(llvm::StringRef text);
/// Returns the exit code of a tool that ends with such a diagnostic.
int exitCodeOf(Code code);

/// Adds to a JSON object what a tool that fails prints under --json: `"error": {"code", "message", "at"}, "exit": N`.
/// `where` may be empty.
void writeJsonError(llvm::json::OStream &json, Code code, llvm::StringRef where, llvm::StringRef message, int exitCode);

/// Gives an MLIR diagnostic a code unless it has one.
inline void setCode(mlir::Diagnostic &diagnostic, Code code) {
  if (diagnostic.getMetadata().empty())
    diagnostic.getMetadata().push_back(mlir::DiagnosticArgument(static_cast<int>(code)));
}
/// Returns the diagnostic's code; `internal` where it has none.
inline Code getCode(mlir::Diagnostic &diagnostic) {
  return diagnostic.getMetadata().empty() ? Code::internal
                                          : static_cast<Code>(diagnostic.getMetadata().front().getAsInteger());
}

inline mlir::InFlightDiagnostic emitError(mlir::Location location, Code code) {
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(location);
  setCode(*diagnostic.getUnderlyingDiagnostic(), code);
  return diagnostic;
}

/// Emits an error that belongs to no operation, such as one of a file.
inline mlir::InFlightDiagnostic emitError(mlir::MLIRContext *context, Code code) {
  return emitError(mlir::UnknownLoc::get(context), code);
}

/// Gives a code to all errors without one that are emitted while it lives. Scopes nest; the innermost wins. Passes that
/// run on several threads must not open one.
class CodeScope : public mlir::ScopedDiagnosticHandler {
public:
  CodeScope(mlir::MLIRContext *context, Code code) : ScopedDiagnosticHandler(context) {
    setHandler([code](mlir::Diagnostic &diagnostic) {
      setCode(diagnostic, code);
      return mlir::failure(); // the next handler prints it
    });
  }
};

} // namespace windlass

#endif
