//===- Tensors.h - ONNX types and tensor values in MLIR ---------*- C++ -*-===//

#ifndef WINDLASS_LIB_FRONTEND_ONNX_TENSORS_H
#define WINDLASS_LIB_FRONTEND_ONNX_TENSORS_H

#include "windlass/Support/TensorBytes.h"

#include "onnx-ml.pb.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"

#include <string>

namespace windlass {

/// Returns the element type of an ONNX data type, or null for those that no operator here computes on (strings, complex
/// numbers, types of 8 bits and fewer that are not integers).
mlir::Type getElementType(int32_t dataType, mlir::MLIRContext *context);

/// Returns the number of elements, or -1 where a dimension is negative or there are more than 2^48.
int64_t countElements(llvm::ArrayRef<int64_t> shape);

/// Returns the values of a tensor that is held in the message, little endian and densely packed, whatever field they
/// are in. Fails when their number is not that of `type`.
llvm::Expected<std::string> decodeValues(const ::onnx::TensorProto &tensor, mlir::RankedTensorType type);

/// Returns the elements attribute over such bytes.
mlir::DenseElementsAttr makeElements(mlir::RankedTensorType type, llvm::StringRef bytes);

} // namespace windlass

#endif // WINDLASS_LIB_FRONTEND_ONNX_TENSORS_H
