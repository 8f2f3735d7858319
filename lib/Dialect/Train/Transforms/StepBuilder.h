// What optimizer steps of several operators are built with.
#ifndef WINDLASS_DIALECT_TRAIN_TRANSFORMS_STEPBUILDER_H
#define WINDLASS_DIALECT_TRAIN_TRANSFORMS_STEPBUILDER_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

namespace windlass::train {

/// Builds operators whose ids begin with those of a parameter's step.
class StepBuilder {
public:
  StepBuilder(mlir::OpBuilder &builder, mlir::Location loc, std::string prefix)
      : builder(builder), loc(loc), prefix(std::move(prefix)) {}

protected:
  template <class Op, class... Args> Op make(const llvm::Twine &name, Args &&...args) {
    Op op = Op::create(builder, loc, std::forward<Args>(args)...);
    op->setAttr(kIdAttr, builder.getStringAttr(prefix + "/" + name));
    return op;
  }

  mlir::Value makeConstant(mlir::RankedTensorType type, double value) {
    return ConstantOp::create(
        builder, loc, type,
        mlir::DenseElementsAttr::get(type, mlir::Attribute(builder.getFloatAttr(type.getElementType(), value))));
  }

  /// Returns the value with dims added: its own are `dims` of the result.
  mlir::Value broadcast(const llvm::Twine &name, mlir::Value value, llvm::ArrayRef<int64_t> shape,
                        llvm::ArrayRef<int64_t> dims = {}) {
    auto type = llvm::cast<mlir::RankedTensorType>(value.getType()).clone(shape);
    return type == value.getType()
               ? value
               : make<BroadcastOp>(name, type, value, builder.getDenseI64ArrayAttr(dims)).getResult();
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  std::string prefix;
};

} // namespace windlass::train

#endif
