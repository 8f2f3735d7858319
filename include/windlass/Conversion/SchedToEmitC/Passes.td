// Level L5 to level L6.
#ifndef WINDLASS_SCHEDTOEMITC_PASSES_TD
#define WINDLASS_SCHEDTOEMITC_PASSES_TD

include "mlir/Pass/PassBase.td"

def SchedToEmitC : Pass<"sched-to-emitc", "::mlir::ModuleOp"> {
  let summary = "makes the emitted source files out of commands";
  let description = [{
    Adds one `emitc.file` per emitted source: the functions of the step program, the fused scalar functions as functors,
    and the offsets of repeated blocks. Commands that carry the `plan.repeat` of one instance and follow each other are a
    block; blocks that differ only in offsets are one function over a table with a row per instance. Generated names are
    ordinals; names of the model appear in comments only, cleaned.
  }];
  let dependentDialects = ["::mlir::emitc::EmitCDialect"];
}

#endif
