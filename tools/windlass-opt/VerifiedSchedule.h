// A module of level L5 in a file, for the subcommands of windlass-opt that take one.
#ifndef WINDLASS_TOOLS_WINDLASS_OPT_VERIFIEDSCHEDULE_H
#define WINDLASS_TOOLS_WINDLASS_OPT_VERIFIEDSCHEDULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

#include "llvm/Support/SourceMgr.h"

#include <string>

namespace windlass {

/// Reads and verifies the module of a file, and reports its diagnostics, those of later passes too, to standard error.
class VerifiedSchedule {
public:
  VerifiedSchedule();
  /// Fails with a diagnostic where the file cannot be read or the module is not valid within `limits`.
  llvm::LogicalResult read(llvm::StringRef file, const sched::VerifyCommandsOptions &limits = {});
  mlir::ModuleOp getModule() { return *module; }
  /// Returns the module's text as it was read, before any pass.
  const std::string &getText() const { return text; }

private:
  mlir::MLIRContext context;
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string text;
};

} // namespace windlass

#endif
