// What every operator of `train` answers about itself.
#ifndef WINDLASS_TRAIN_INTERFACES_TD
#define WINDLASS_TRAIN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::windlass::train";
  let description = [{ An operator with a gradient. Operators without one stop differentiation. }];
  let methods = [
    InterfaceMethod<[{
      Builds the adjoint. `resultGradients` has one value per result, null where no gradient reaches it. For every
      operand with `active[i]` set, `operandGradients[i]` receives a value of the operand's type, or stays null where the
      derivative is zero. The builder may read the operator's operands and results; whatever of them the built ops use
      becomes the stash. Fails, with a diagnostic at the op, where an active operand cannot be differentiated.
    }], "::mlir::LogicalResult", "buildAdjoint",
    (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$resultGradients,
         "::llvm::ArrayRef<bool>":$active, "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>,
  ];
}

def TrainOpInterface : OpInterface<"TrainOpInterface"> {
  let cppNamespace = "::windlass::train";
  let description = [{ Factors, cost and precision of an operator: all that planning and scheduling need. }];
  let methods = [
    InterfaceMethod<[{ The iteration dimensions, how operands and results use them, and what may be unreduced. }],
      "::windlass::train::OpFactors", "getFactors", (ins)>,
    InterfaceMethod<[{ FLOPs and bytes of one execution at the op's own (local) shapes. }],
      "::windlass::train::OpCost", "getCost", (ins)>,
    InterfaceMethod<[{ In which precision the operator may run when `--precision` is not f32. }],
      "::windlass::train::PrecisionClass", "getPrecisionClass", (ins)>,
  ];
}

def InnerReductionOpInterface : OpInterface<"InnerReductionOpInterface"> {
  let cppNamespace = "::windlass::train";
  let description = [{
    An operator that reduces one of its factors inside, looks up along it, or moves windows along it: the rule by which
    that factor is split.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the same results from operators that may be split in `parts`, which divides the factor that is taken apart:
      none of them reduces along the parts inside. Results of the parts are combined by operators that a split leaves
      unreduced. `results` receives one value of its own per result. Fails, with a diagnostic at the op, where its
      attributes have no such form.
    }], "::mlir::LogicalResult", "buildSplit",
    (ins "::mlir::OpBuilder &":$builder, "int64_t":$parts, "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>,
  ];
}

def ScalarOpInterface : OpInterface<"ScalarOpInterface"> {
  let cppNamespace = "::windlass::train";
  let description = [{
    An element-wise operator. It applies to tensors of one shape or to scalars; its definition is the function of that
    name in `windlass/rt/scalar.h`, shared by the interpreter, the host code and the device code.
  }];
  let methods = [
    InterfaceMethod<[{ Name of the function in namespace windlass::rt::scalar. }],
      "::llvm::StringRef", "getScalarFunction", (ins)>,
  ];
}

#endif
