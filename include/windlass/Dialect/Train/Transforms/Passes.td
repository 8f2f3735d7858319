// Passes on the `train` dialect (differentiation is in windlass/Autodiff).
#ifndef WINDLASS_TRAIN_TRANSFORMS_PASSES_TD
#define WINDLASS_TRAIN_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifyGraphPass : Pass<"train-verify-graph", "::mlir::ModuleOp"> {
  let summary = "checks that a module is a training graph (level L1)";
  let description = [{
    The module holds parameters with distinct logical names and the function `@loss` of one block, whose operators are of
    `train`, carry distinct ids (constants need none) and write no parameter. The loss is one floating-point number.
    Every argument names its input. Changes nothing; reports everything that is wrong.
  }];
}

def VerifyFunctionsPass : Pass<"train-verify-functions", "::mlir::ModuleOp"> {
  let summary = "checks that a module holds the functions of a training step (level L2)";
  let description = [{
    `@init`, `@microbatch` and `@evaluate` exist, `@loss` does not; `@update`, where it exists, takes the gradients that
    `@microbatch` returns. Init values fit the arguments that receive them. In `@microbatch` forward operators,
    `train.stash` operators and backward operators (with `train.forward`, the id of a forward operator) follow each
    other, and backward operators use forward values only through stash operators; constants and hyperparameters are
    free. Parameters are written only in `@update`. Changes nothing; reports everything that is wrong.
  }];
}

def FreezeParametersPass : Pass<"train-freeze-parameters", "::mlir::ModuleOp"> {
  let summary = "takes parameters out of training by the patterns of their logical names";
  let description = [{ Afterwards no parameter that a pattern matches is trainable. A pattern must match something. }];
  let options = [ListOption<"patterns", "patterns", "std::string", "globs of logical names">];
}

def AverageTokensPass : Pass<"train-average-tokens", "::mlir::ModuleOp"> {
  let summary = "makes a step's loss the mean over the labels of all its micro-batches";
  let description = [{
    Takes a module of L1 whose loss is the mean of a softmax cross entropy over labels that pads, slices, reshapes and
    casts make of one input. Afterwards `train.counted_labels` says which elements of that input count, so that a run
    knows their number before the first micro-batch of a step. Without it, a step's loss is the mean of the
    micro-batches' losses, each of which is a mean of its own.
  }];
}

def MergeMicroBatchesPass : Pass<"train-merge-micro-batches", "::mlir::ModuleOp"> {
  let summary = "makes the graph of one micro-batch that of several";
  let description = [{
    Takes a module of L1. Inputs have `count` micro-batches one after another in their first dim afterwards, and the loss
    is the mean of their losses. Operators that treat samples apart work on all of them at once. An operator that
    combines samples, such as the mean of a loss over its labels, is copied for each micro-batch, and so are all operators
    that depend on it; each micro-batch then has the loss that it has alone. The copies read slices. A product in front
    of them is copied too where its operand is smaller than its result, so that less is sliced.
    `train.settings` has the number as `merge`. Refuses graphs with running statistics and inputs without dims.
  }];
  let options = [Option<"count", "count", "int64_t", "1", "how many micro-batches become one">];
  let dependentDialects = ["::windlass::train::TrainDialect", "::mlir::func::FuncDialect"];
}

def AddOptimizerPass : Pass<"train-add-optimizer", "::mlir::ModuleOp"> {
  let summary = "adds optimizer state and @update, and records the compiled-in settings";
  let description = [{
    Afterwards every trainable parameter has its state parameters (`<weight>.exp_avg` with the logical name
    `<weight>/exp_avg`), says whether it decays (rank of at least 2, and no pattern that says otherwise) and by what its
    learning rate and decay are scaled, and `@update` takes the gradients in their order, returns their global norm and
    writes weights and state. `train.settings` has the optimizer, the number of micro-batches, and whether gradients are
    clipped. Where gradients are of a scaled loss, `@update` takes the scale out, and where their norm is not finite it
    changes nothing.
  }];
  let options = [
    Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw, adafactor, adam, lamb, lion, muon or sgd">,
    Option<"microBatches", "micro-batches", "int64_t", "0", "G; must agree with train-differentiate (0: take its value)">,
    Option<"clip", "clip", "bool", "false", "clip gradients by their global norm">,
    Option<"ema", "ema", "bool", "false", "keep an exponential moving average of each weight">,
    ListOption<"noDecay", "no-decay", "std::string", "globs of logical names without weight decay">,
    ListOption<"decayScales", "decay-scale", "std::string", "GLOB=X: those decay, by X times the weight decay">,
    ListOption<"rateScales", "lr-scale", "std::string", "GLOB=X: those have X times the learning rate">
  ];
  let dependentDialects = ["::windlass::train::TrainDialect", "::mlir::func::FuncDialect"];
}

def LowerPrecisionPass : Pass<"train-lower-precision", "::mlir::ModuleOp"> {
  let summary = "gives values the types of the precision that a step is computed in";
  let description = [{
    With `bf16` or `f16` values of `@init`, `@microbatch` and `@evaluate` that depend on weights or inputs have that
    type afterwards, and weights have it as `compute_type`. These stay in f32: the weights themselves, their gradients
    as `@microbatch` returns them, everything in `@update`, statistics of rows, and the loss from the sum on; also
    values computed from positions and buffers, until they meet a 16-bit value: angles of a rotary embedding are large
    numbers. Where a model chooses by the largest of several numbers, as a router chooses its experts, the values that
    lead to the choice stay in f32 in the forward pass too: the router, the norm before it and the sums that carry
    values past the layers, with the weights that nothing else reads; layers' products do not, and the backward pass
    reads all of these values in 16 bits. Products and sums that compute a gradient return it in f32, as they accumulate
    it. Splat constants that f16 cannot hold become its largest number. f16 needs the gradients of a scaled loss. With
    `tf32` all types stay, and products may round their operands to TF32 where a device has units for it.
    `train.settings` has the precision, and whether gradients travel in bf16, which `plan-to-sched` sees to.
  }];
  let options = [
    Option<"precision", "precision", "std::string", "\"f32\"", "f32, tf32, bf16 or f16">,
    Option<"bf16Gradients", "bf16-gradients", "bool", "false",
           "gradients travel between ranks, and to the host, in bf16">,
  ];
  let dependentDialects = ["::windlass::train::TrainDialect", "::mlir::func::FuncDialect"];
}

def MarkRepeatsPass : Pass<"train-mark-repeats", "::mlir::ModuleOp"> {
  let summary = "marks the operators of repeated blocks";
  let description = [{
    Afterwards operators of structurally equal, consecutive blocks carry `#plan.repeat<class, index>`. Blocks are found
    by the numbered component of their scope path (`transformer.h.3.attn`), and count as equal when their operators,
    attributes, types and wiring are equal up to the number. Adjoint and stash operators are marked like their forward
    operator where their own parts are equal too. Operators of `@update` are marked per kind and shape of parameter.
    Operators that depend on no weight and serve several blocks (masks, rotary tables) belong to none, although they
    have the scope of the first.
  }];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def MarkSegmentsPass : Pass<"train-mark-segments", "::mlir::ModuleOp"> {
  let summary = "marks the parts of the forward pass that can be recomputed together";
  let description = [{
    Afterwards forward operators of `@microbatch` that belong to a repeated block, or else to a numbered scope
    (`layers.3`), carry `#plan.segment<block, part>`. A block is cut in two parts where a single value goes from one to
    the other (the sum of the residual connection), so that the parts are as equal in FLOPs as can be; the part with the
    attention is `"attention"`, the other `"mlp"`; where that does not distinguish them they are `"first"` and
    `"second"`. A block that cannot be cut has one part, `""`. Constants and reads of parameters belong to no segment. A
    model without numbered scopes has none.
  }];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

#endif
