//===- Passes.td - passes on the onnx dialect -----------------------------===//

#ifndef WINDLASS_DIALECT_ONNX_TRANSFORMS_PASSES_TD
#define WINDLASS_DIALECT_ONNX_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def OnnxVerifyGraph : Pass<"onnx-verify-graph", "::mlir::ModuleOp"> {
  let summary = "checks that a module is an imported ONNX model (level L0)";
  let description = [{
    The module holds one `onnx.graph` and nothing else; the graph holds operators of `onnx` only, initializers before
    nodes, each initializer's name once, and every node has a name location. Changes nothing; reports everything that is
    wrong.
  }];
}

#endif // WINDLASS_DIALECT_ONNX_TRANSFORMS_PASSES_TD
