// Parameters and what functions do with them.
#ifndef WINDLASS_TRAIN_MODULE_OPS_TD
#define WINDLASS_TRAIN_MODULE_OPS_TD

include "mlir/IR/SymbolInterfaces.td"
include "windlass/Dialect/Train/IR/TrainBase.td"

def ParameterOp : Train_Op<"parameter", [Symbol]> {
  let summary = "a weight, an optimizer state or a buffer";
  let description = [{
    `logical_name` is the name of the ONNX initializer; state is `<weight>/exp_avg` and names its weight in `of`.
    `trainable` weights get a gradient; `decays` says whether weight decay applies to it. `reason` says why the importer
    thinks that it trains or not, where it had to guess. The layout of the bytes is row-major, f32.
    With `compute_type` operators find the parameter rounded to that element type; `@update` works on the parameter
    itself.
    A weight with `momentum` is a running statistic: the average of what `train.track_statistic` finds, of which one
    micro-batch keeps the share `momentum`. `@update` moves it where it is `trainable`; the optimizer and the norm of
    the gradients leave it out.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$logical_name, TypeAttrOf<Train_Tensor>:$type,
                       Train_RoleAttr:$role, Train_SourceAttr:$source, UnitAttr:$trainable, UnitAttr:$decays,
                       OptionalAttr<FlatSymbolRefAttr>:$of, OptionalAttr<StrAttr>:$reason,
                       OptionalAttr<TypeAttrOf<Train_Float>>:$compute_type, OptionalAttr<F64Attr>:$momentum);
  let assemblyFormat = "$role $sym_name $logical_name `:` $type `from` $source attr-dict";
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
    /// Returns the type that operators outside of `@update` find.
    ::mlir::RankedTensorType getComputeTensorType() {
      return getTensorType().clone(getComputeType().value_or(getTensorType().getElementType()));
    }
    /// Whether `@update` averages statistics into it instead of descending along a gradient.
    bool isRunningStatistic() { return getMomentum().has_value(); }
    /// Whether it is the state that averages a weight over the steps.
    bool isMovingAverage() { return getOf() && getLogicalName().rsplit('/').second == kEmaState; }
    /// Whether the optimizer descends along its gradient: it trains, and is no running statistic.
    bool isOptimized() { return getTrainable() && !isRunningStatistic(); }
  }];
  let hasVerifier = 1;
}

def ReadOp : Train_Op<"read", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                               MemoryEffects<[MemRead]>]> {
  let summary = "the value of a parameter at the function's start or after the last write before it";
  let description = [{ Outside of `@update` in the type that operators compute with. }];
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$parameter `:` type($result) attr-dict";
}

def TrackStatisticOp : Train_Op<"track_statistic", [Pure, AllTypesMatch<["statistic", "running", "result"]>,
                                                    Train_Differentiable]> {
  let summary = "a statistic of the batch, which a parameter keeps the running average of";
  let description = [{
    The result is `statistic` where the model trains and `running`, a read of that parameter, where it is evaluated. The
    average is of `statistic` times `correction`. Differentiation replaces the operator: `@microbatch` returns the
    difference `running - correction * statistic` as the parameter's gradient, so that it is summed and sharded like
    one.
  }];
  let arguments = (ins Train_FloatTensor:$statistic, Train_FloatTensor:$running, F64Attr:$correction);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$statistic `,` $running `correction` $correction `:` type($result) attr-dict";
  let hasVerifier = 1;
}

def WriteOp : Train_Op<"write", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemWrite]>]> {
  let summary = "the new value of a parameter (only in `@update`)";
  let arguments = (ins FlatSymbolRefAttr:$parameter, Train_Tensor:$value);
  let assemblyFormat = "$parameter `,` $value `:` type($value) attr-dict";
}

def HyperparameterOp : Train_Op<"hyperparameter", [Pure]> {
  let summary = "a scalar that the user may change without a rebuild";
  let arguments = (ins Train_HyperparameterAttr:$name);
  let results = (outs Train_FloatScalarTensor:$result);
  let assemblyFormat = "$name `:` type($result) attr-dict";
}

def StashOp : Train_Op<"stash", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "a forward value handed to the backward pass";
  let description = [{
    Separates the forward from the backward part of `@microbatch`: the backward part uses forward values only through
    stash ops, which stand together between the two.
  }];
  let arguments = (ins Train_Tensor:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$value `:` type($value) attr-dict";
}

#endif
