//===- Passes.h - passes on the onnx dialect --------------------*- C++ -*-===//

#ifndef WINDLASS_DIALECT_ONNX_TRANSFORMS_PASSES_H
#define WINDLASS_DIALECT_ONNX_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace windlass::onnx {

#define GEN_PASS_DECL
#include "windlass/Dialect/Onnx/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "windlass/Dialect/Onnx/Transforms/Passes.h.inc"

} // namespace windlass::onnx

#endif // WINDLASS_DIALECT_ONNX_TRANSFORMS_PASSES_H
