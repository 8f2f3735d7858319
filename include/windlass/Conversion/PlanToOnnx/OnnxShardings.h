// Plans as ONNX sharding annotations, and annotations as pins.
#ifndef WINDLASS_CONVERSION_PLANTOONNX_ONNXSHARDINGS_H
#define WINDLASS_CONVERSION_PLANTOONNX_ONNXSHARDINGS_H

#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Frontend/Onnx/Annotations.h"

namespace windlass {

/// The name of the configuration that a plan is written as.
constexpr char kOnnxConfiguration[] = "windlass";

/// What a plan says of the graph's tensors: of each parameter, its compute copy, at every node that reads it; of each
/// output of a node that is the result of an operator of its own, how it is found. Values that are partial sums have no
/// words there, and are left out. `module` is at L3 or L3b.
llvm::Expected<ModelAnnotations> describeShardings(mlir::ModuleOp module, const plan::PlanFile &plan,
                                                   const GraphOutline &outline);

/// Pins that say the same as annotations, for a module with its mesh; `deviceOrder` has the device of each rank. What
/// is annotated but is no parameter or result of an operator is left free. Fails, with one line, where shards do not
/// fit the tensor or lie on devices as no axes of the mesh do.
llvm::Expected<std::vector<std::string>> makePins(mlir::ModuleOp module, llvm::ArrayRef<int64_t> deviceOrder,
                                                  const GraphOutline &outline, const ModelAnnotations &annotations);

} // namespace windlass

#endif
