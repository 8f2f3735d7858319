// Operators of a function of L3b, with local shapes, in a function of L4.
#ifndef WINDLASS_LIB_CONVERSION_PLANTOSCHED_LOCALLOWERING_H
#define WINDLASS_LIB_CONVERSION_PLANTOSCHED_LOCALLOWERING_H

#include "Lowering.h"

namespace windlass::sched {

/// Clones operators of one function of L3b, with local shapes, into functions of L4.
class LocalLowering {
public:
  /// With `keepsLayouts`, operators keep `plan.layouts`: those of what may cross the border of two chunks.
  LocalLowering(Resources &resources, plan::MeshAttr mesh, bool keepsLayouts, mlir::OpBuilder builder)
      : builder(builder), resources(resources), mesh(mesh), keepsLayouts(keepsLayouts) {}

  /// Lowers an op that is neither a stash nor a terminator. Everything it uses is mapped afterwards.
  mlir::LogicalResult lower(mlir::Operation &op);
  /// Maps a value of the old function to one of the new function, if it has none yet: a load of its resource.
  mlir::LogicalResult provide(mlir::Value value, mlir::Operation &user);

  /// Returns the value in the host's memory for one of the old function; null where it is not there.
  mlir::Value lookupOnHost(mlir::Value value) const { return onHost.lookupOrNull(value); }
  void mapOnHost(mlir::Value value, mlir::Value part) { onHost.map(value, part); }

  // The ops that these make carry the labels of `op`.
  mlir::Value move(mlir::Operation &op, mlir::Value value, plan::MemoryKind memory);
  /// Returns the value with elements of type `element`.
  mlir::Value convert(mlir::Operation &op, mlir::Value value, mlir::Type element);
  /// Returns a gradient with elements of type `sent`, in which it travels. A product or sum that nothing else reads
  /// (`isOnlyUse`) rounds itself.
  mlir::Value narrow(mlir::Operation &op, mlir::Value gradient, mlir::Type sent, bool isOnlyUse);
  /// Returns the local slice of a value under another layout.
  mlir::FailureOr<mlir::Value> reshardPart(mlir::Operation &op, mlir::Value part, mlir::RankedTensorType global,
                                           plan::LayoutAttr from, plan::LayoutAttr to);

  /// Values in the device's memory, by those of the old function.
  mlir::IRMapping mapping;
  mlir::OpBuilder builder;

private:
  mlir::LogicalResult load(mlir::Value value, ResourceOp resource, mlir::Operation &op);
  /// Whether an operator runs on the host: an optimizer step whose state is kept there or on the disk, a sum of
  /// squares, or of such sums, where all that it reads is.
  bool runsOnHost(mlir::Operation &op) const;
  /// Maps the operands of an operator that runs on the device to values in its memory.
  void bringToDevice(mlir::Operation &op);
  /// Maps the operands of an operator that runs on the host to values in its memory.
  void bringToHost(mlir::Operation &op);
  mlir::IRMapping &getMappingFor(ResourceOp resource);
  /// Returns the resource with the gradient that `@reduce` has reduced, where `op` is the reshard that asks for it.
  ResourceOp getReducedGradient(mlir::Operation &op);

  mlir::LogicalResult lower(plan::ReshardOp reshard);
  /// Whether only some of the terms of a sum are in the host's memory.
  bool isMixed(train::AccumulateOp sum) const;
  /// Adds up what each memory has by itself, so that one sum is moved to the device, and not each term.
  void lowerMixed(train::AccumulateOp sum);
  /// Stores a new value of the master, and of the compute copy where that is a resource of its own.
  mlir::LogicalResult lower(train::WriteOp write);
  void store(train::WriteOp write, ResourceOp resource, mlir::Value value);
  /// Stores the new value where the master copy, or the state, is kept.
  void storeMaster(train::WriteOp write, ResourceOp master);
  /// Stores the new weight as operators read it, where that is a resource of its own.
  mlir::LogicalResult storeCompute(train::WriteOp write, ResourceOp master, ResourceOp compute);

  /// Values in the host's memory, those from the disk among them, by those of the old function.
  mlir::IRMapping onHost;
  Resources &resources;
  plan::MeshAttr mesh;
  bool keepsLayouts;
  mlir::Operation *lastArgument = nullptr;
};

} // namespace windlass::sched

#endif
