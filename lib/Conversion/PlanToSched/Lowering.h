// The steps of plan-to-sched.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_LOWERING_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_LOWERING_H

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "mlir/IR/IRMapping.h"

namespace windlass::sched {

/// Builds the collectives that bring a rank's local slice from one layout to another; `global` is the type of the whole
/// value. Fails with a diagnostic at `loc` for changes that need parts of several dims at once.
mlir::FailureOr<mlir::Value> lowerReshard(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value part,
                                          mlir::RankedTensorType global, plan::LayoutAttr from, plan::LayoutAttr to,
                                          plan::MeshAttr mesh);

/// Whether ranks send each other parts of a value of type `global` to bring it from one layout to another.
bool isSent(mlir::RankedTensorType global, plan::LayoutAttr from, plan::LayoutAttr to, plan::MeshAttr mesh);

/// Returns the value with elements of type `element`, converted where it has others.
mlir::Value convertTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, mlir::Type element);

/// Clones a compute op onto its parts: operands from `mapping`, result types by `plan.layouts`, attributes that hold
/// sizes made local, attributes of the plan dropped.
mlir::FailureOr<mlir::Operation *> cloneLocal(mlir::OpBuilder &builder, mlir::Operation &op, mlir::IRMapping &mapping,
                                              plan::MeshAttr mesh);

/// The resources of a program, by what they stand for.
class Resources {
public:
  /// Declares in the empty program resources of everything that the module's functions of L3b read, write, take and
  /// return.
  static mlir::FailureOr<Resources> create(mlir::ModuleOp module, ProgramOp program);

  ResourceOp ofArgument(mlir::BlockArgument argument);
  /// Returns the resource of the compute copy, or of the state.
  ResourceOp ofParameter(mlir::StringRef parameter) { return parameters.lookup(parameter); }
  /// Returns the resource that `@update` reads and writes: the compute copy where it is the master too.
  ResourceOp ofMaster(mlir::StringRef parameter) {
    ResourceOp master = masters.lookup(parameter);
    return master ? master : ofParameter(parameter);
  }
  /// Returns the resource of the accumulated gradient.
  ResourceOp ofGradient(mlir::StringRef parameter) { return gradients.lookup(parameter); }
  /// Returns the resource of the gradient that `@update` reads: the accumulated gradient where that has no other
  /// layout.
  ResourceOp ofReduced(mlir::StringRef parameter) {
    ResourceOp reduced = reducedGradients.lookup(parameter);
    return reduced ? reduced : ofGradient(parameter);
  }
  /// Returns the element type in which what a resource holds is sent between ranks and copied to the host.
  mlir::Type getSentElement(ResourceOp resource) const;
  ResourceOp ofValue(int64_t index) { return values.lookup(index); }
  /// Returns the resource of a hyperparameter in the device's memory, or in the host's; there is one where an op of
  /// `@update` reads it there.
  ResourceOp ofScalar(train::Hyperparameter name, plan::MemoryKind memory) {
    return scalars.lookup({static_cast<int64_t>(name), static_cast<int64_t>(memory)});
  }
  /// Returns the memory in which an op of `@update` runs: the host's for an optimizer step whose master copy and state
  /// are there, in the layouts in which it reads and makes them.
  plan::MemoryKind getUpdateMemory(mlir::Operation *op) const;
  ResourceOp getLoss() { return loss; }
  ResourceOp getGradientNorm() { return gradientNorm; }
  ResourceOp getEvaluation() { return evaluation; }

private:
  Resources(mlir::ModuleOp module, ProgramOp program);
  mlir::LogicalResult declareInputs();
  mlir::LogicalResult declareParameters();
  mlir::LogicalResult declareOthers();
  void declareScalars();
  /// Returns the type that a gradient has between the backward pass and the update. A gradient that travels keeps the
  /// type in which it does so, unless several micro-batches are added up. `made` is the layout in which `@microbatch`
  /// makes it, `layout` that of the accumulated gradient, and `master` that of the master copy.
  mlir::RankedTensorType getHeldGradientType(train::ParameterOp parameter, plan::LayoutAttr made,
                                             plan::LayoutAttr layout, plan::LayoutAttr master) const;
  ResourceOp declare(mlir::Location loc, ResourceKind kind, const llvm::Twine &name, mlir::RankedTensorType global,
                     plan::LayoutAttr layout);

  mlir::ModuleOp module;
  /// The parameters and functions of `module`.
  mlir::SymbolTable symbols;
  plan::MeshAttr mesh;
  mlir::OpBuilder builder;
  llvm::StringMap<ResourceOp> inputs, parameters, masters, gradients, reducedGradients;
  llvm::DenseMap<int64_t, ResourceOp> values;
  /// By hyperparameter and kind of memory.
  llvm::DenseMap<std::pair<int64_t, int64_t>, ResourceOp> scalars;
  ResourceOp loss, gradientNorm, evaluation;
};

} // namespace windlass::sched

#endif
