// L5 to L6: commands become EmitC calls of the runtime's API.
#ifndef WINDLASS_CONVERSION_SCHEDTOEMITC_SCHEDTOEMITC_H
#define WINDLASS_CONVERSION_SCHEDTOEMITC_SCHEDTOEMITC_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include "windlass/Dialect/Sched/IR/Kernels.h"

namespace windlass {

/// Names of the emitted files, as ids of `emitc.file`; in a job of several positions, those of each are in a folder of
/// its name.
constexpr char kStepFile[] = "step.cpp";
constexpr char kFusedFile[] = "fused.h";
constexpr char kRowsFile[] = "rows.h";
constexpr char kBuffersFile[] = "buffers.h";
constexpr char kConstantsFile[] = "constants.h";
constexpr char kCommandsFile[] = "commands.cpp";

/// Adds to `module` (L5) one `emitc.file` per emitted source of the step program. Repeated blocks become one function
/// over a table with a row per instance. Fails with a diagnostic at a command that has no entry in the runtime.
llvm::LogicalResult convertSchedToEmitC(mlir::ModuleOp module);

/// Adds to `module`, whose functions hold one command of L5 each, an `emitc.file` with a C++ function for each, in
/// their order: `block_<i>`, like the function of a repeated block, with one column for each offset of the command's
/// buffers, in order of first use.
llvm::LogicalResult convertCommandsToEmitC(mlir::ModuleOp module);

/// Returns whether a launch of the kernel becomes a call of the runtime.
bool hasRuntimeCall(sched::KernelKind kind);

} // namespace windlass

#endif
