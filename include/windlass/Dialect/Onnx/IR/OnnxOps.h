//===- OnnxOps.h - the onnx dialect ---------------------------*- C++ -*-===//

#ifndef WINDLASS_DIALECT_ONNX_IR_ONNXOPS_H
#define WINDLASS_DIALECT_ONNX_IR_ONNXOPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "windlass/Dialect/Onnx/IR/OnnxDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "windlass/Dialect/Onnx/IR/OnnxTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "windlass/Dialect/Onnx/IR/OnnxAttributes.h.inc"

#define GET_OP_CLASSES
#include "windlass/Dialect/Onnx/IR/OnnxOps.h.inc"

namespace windlass::onnx {
/// Whether the initializer's name is one of the module's own: `a.b.scale` of module `a.b`.
inline bool isNamedByModule(llvm::StringRef name, llvm::StringRef module) {
  return name.contains('.') && name.rsplit('.').first == module;
}
} // namespace windlass::onnx

#endif // WINDLASS_DIALECT_ONNX_IR_ONNXOPS_H
