// Passes of the library Autodiff.
#ifndef WINDLASS_AUTODIFF_PASSES_TD
#define WINDLASS_AUTODIFF_PASSES_TD

include "mlir/Pass/PassBase.td"

def DifferentiatePass : Pass<"train-differentiate", "::mlir::ModuleOp"> {
  let summary = "makes @init, @microbatch and @evaluate from @loss";
  let description = [{
    Afterwards the module has no `@loss`, but

    - `@init`: the values of the loss that depend on no input nor parameter, except splat constants and views (a
      broadcast mask stays as small as it is). The other functions receive them as arguments with `train.init_value`.
    - `@microbatch`: the forward operators, `train.stash` operators, then the backward operators, which carry
      `train.forward` and use forward values only through stash operators. Function arguments are used directly;
      constants, reads of parameters and views (reshape, transpose, broadcast, slice) of such values or of stashed ones
      are recomputed in the backward part. Results: the loss divided by the number of micro-batches, and its gradients
      in the order of the trainable parameters. Where the module has `train.counted_labels`, the first result is the sum
      over the labels times the hyperparameter `inverse_label_count`, 1 over the step's labels, instead.
      With `scales-loss` they are gradients of `loss_scale` times that loss, so that f16 holds small ones, and
      `train.settings` says so.
    - `@evaluate`: the forward operators alone, with the loss of the one micro-batch.

    A weight that does not reach the loss is marked as not trainable, with the reason. Errors are collected: every
    operator on a path from a trainable parameter to the loss that has no gradient is reported.
  }];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", "1", "micro-batches per optimizer step (G)">,
    Option<"scalesLoss", "scales-loss", "bool", "false", "gradients are of the loss times `loss_scale`">
  ];
  let dependentDialects = ["::windlass::train::TrainDialect", "::mlir::func::FuncDialect"];
}

#endif
