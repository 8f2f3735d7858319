// Plans as ONNX sharding annotations, and annotations as pins.
#ifndef WINDLASS_CONVERSION_PLANTOONNX_ONNXSHARDINGS_H
#define WINDLASS_CONVERSION_PLANTOONNX_ONNXSHARDINGS_H

#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Frontend/Onnx/Annotations.h"

namespace windlass {

/// The name of the ONNX configuration as which a plan is written.
constexpr char kOnnxConfiguration[] = "windlass";

/// Returns the shardings that a plan gives the graph's tensors: for each parameter, the layout of its compute copy, at
/// every node that reads it; for each output of a node that is the result of an operator of its own, the layout in
/// which consumers find it. ONNX cannot describe partial sums; they are left out. `module` is at L3 or L3b.
llvm::Expected<ModelAnnotations> describeShardings(mlir::ModuleOp module, const plan::PlanFile &plan,
                                                   const GraphOutline &outline);

/// Returns pins with the same meaning as the annotations, for a module with its mesh; `deviceOrder` has the device of
/// each rank. Annotated tensors that are neither a parameter nor the result of an operator get no pin. Fails, with one
/// line, where shards do not fit the tensor or are on devices that no axes of the mesh give.
llvm::Expected<std::vector<std::string>> makePins(mlir::ModuleOp module, llvm::ArrayRef<int64_t> deviceOrder,
                                                  const GraphOutline &outline, const ModelAnnotations &annotations);

} // namespace windlass

#endif
