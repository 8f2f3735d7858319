// Passes of level L3.
#ifndef WINDLASS_PLAN_PASSES_TD
#define WINDLASS_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApplyStrategy : Pass<"plan-apply-strategy", "::mlir::ModuleOp"> {
  let summary = "gives every op and parameter its place under a named strategy";
  let description = [{
    Takes the four functions of L2. A strategy (`docs/plans.md` has a table) is for the data, for the model, or a
    product of both. The R ranks for the data run P = gcd(R, G) micro-batches at once on the axis "data", of role
    replica, and split the graph's batch R/P ways on the axis "batch"; an axis of size 1 is left out. Dim 0 of every
    graph input is the batch; from there splits follow the operators' factors, and a factor that may not be split stays
    whole. The copies of a weight that are sharded among these ranks are split on the first factor that the number of
    ranks divides; where there is no such factor, the master and the gradient are split in equal ranges. The ranks for
    the model split operators on the axis "model", and weights as their operators are split.

    Pins are constraints on the same choices: a pinned operator keeps its strategy, a pinned value is found in its
    layout, a pinned copy of a parameter has its layout, and splits follow from these as they do from the batch. Only
    the named axes of the mesh can be pinned.

    Afterwards the module has `plan.mesh`, every op `plan.strategy` and `plan.layouts`, every argument and result of a
    function `plan.layout`, every parameter its three layouts.
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", "\"ddp\"", "NAME[=K][*NAME[=K]], as --strategy of windlass takes it; K: its ranks">,
    Option<"ranks", "ranks", "int64_t", "1", "devices">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "::windlass::plan::kBucketBytes", "bytes of gradients that are reduced together">,
    ListOption<"pins", "pins", "std::string", "PATTERN=VALUE: what is fixed before the strategy chooses">,
    Option<"offload", "offload", "std::string", "\"none\"", "what the host holds from step to step, as --offload of windlass takes it">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def ApplyPlanFile : Pass<"plan-apply-file", "::mlir::ModuleOp"> {
  let summary = "gives every op and parameter its place under a plan.json";
  let description = [{
    Takes the four functions of L2, of the model and the micro-batches that the plan was made for. The file is applied
    without a check of its choices: `plan-verify-layouts` says whether they are legal.

    Afterwards the module is at L3, as after `plan-apply-strategy`.
  }];
  let options = [
    Option<"file", "file", "std::string", "\"plan.json\"", "the plan">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def ApplyRandomPlan : Pass<"plan-apply-random", "::mlir::ModuleOp"> {
  let summary = "gives every op and parameter a random legal place, for tests";
  let description = [{
    Takes the four functions of L2. The mesh has one to three axes, any of which may have the role of replicas; every op
    splits some factors that it may split, every value has some layout, every parameter has three, and any part of a
    block may be recomputed. One seed gives one plan.

    Afterwards the module is at L3, as after `plan-apply-strategy`.
  }];
  let options = [
    Option<"seed", "seed", "uint64_t", "0", "number of the plan">,
    Option<"ranks", "ranks", "int64_t", "2", "devices">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def ChooseSegments : Pass<"plan-choose-segments", "::mlir::ModuleOp"> {
  let summary = "chooses which segments are recomputed in the backward pass";
  let description = [{
    Takes L3 before layouts are materialized. Segments are taken one by one: first the parts of blocks, in descending
    order of the bytes of stash that they free for each recomputed FLOP, ties in program order; then, in the same order,
    blocks whose parts are all taken, each of which is then recomputed at once, which frees the value between the parts.
    Steps that would free nothing are left out.

    Afterwards `segment` of the strategies names the segments that the first `steps` of these steps recompute.
  }];
  let options = [
    Option<"steps", "steps", "int64_t", "-1", "how many are taken (-1: all)">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def RecomputeSegments : Pass<"plan-recompute-segments", "::mlir::ModuleOp"> {
  let summary = "puts recomputed operators before the backward operators that need them";
  let description = [{
    Takes L3 before layouts are materialized. For each segment that is recomputed, copies of the operators that its own
    backward pass needs are put before the first backward operator that reads one of their values; they have the id of
    their operator with `.recompute` and name it as `train.forward`. Their values are no longer stashed, but values of other
    segments that the copies read are. A value that the backward pass of another segment reads stays stashed.

    Afterwards no strategy names a segment.
  }];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def DecomposeSplitReductions : Pass<"plan-decompose-split-reductions", "::mlir::ModuleOp"> {
  let summary = "takes apart operators that reduce inside, where the plan splits what they reduce";
  let description = [{
    An operator whose strategy splits what it reduces inside (the classes of a cross entropy, the features of a norm,
    the row of a softmax, the keys of attention) becomes, by the rule that it declares, operators that work on parts and
    reductions of their results. They get strategies and layouts that follow from those of its operands; its results are
    found where they were.

    A sum of terms that are partial over different axes (the squares of the global norm, where some weights are split)
    becomes a sum for each set of axes, and a sum of those, so that each set is reduced once.

    Weights that scale normalised rows are marked (`train.norm_scale`), because the norms may be gone afterwards.
  }];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def KeepGathers : Pass<"plan-keep-gathers", "::mlir::ModuleOp"> {
  let summary = "keeps weights that the forward pass gathers for the backward pass, where the plan says so";
  let description = [{
    Works on a module with `plan.keeps_gathers`, at L3b; other modules stay as they are. Afterwards a weight that was
    gathered in both passes of a micro-batch is gathered in the forward pass and stashed. The attribute is dropped.
  }];
  let dependentDialects = ["::windlass::train::TrainDialect"];
}

def MaterializeLayouts : Pass<"plan-materialize-layouts", "::mlir::ModuleOp"> {
  let summary = "puts a plan.reshard wherever a value is needed in another layout than it has";
  let description = [{
    An op's own results have the layouts in which its strategy leaves them; where `plan.layouts` asks for another
    layout, a reshard follows the op, and consumers start from its result. A consumer that needs yet another layout gets
    a further reshard, shared by all consumers that need the same layout. Unreduced values stay unreduced through ops
    that declare that they allow it. Gradients enter `@update` in the layout in which they were accumulated and are
    brought to the master layout first.

    Afterwards (L3b) the layout of every operand is the one that its op takes, and `plan.layouts` are the layouts that
    ops make.
  }];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def VerifyLayouts : Pass<"plan-verify-layouts", "::mlir::ModuleOp"> {
  let summary = "fails at the first op whose strategy or layouts are not legal";
  let description = [{
    Every op has a strategy over existing axes that split its factors evenly, each axis once; every value has a layout
    that fits its shape, names an axis once and is in device memory. Only whole segments of blocks are recomputed. At
    L3b operands are in the layouts that their ops take and results in the layouts that the ops make.
  }];
  let options = [
    Option<"materialized", "materialized", "bool", "true", "the module is at L3b: layouts differ only at plan.reshard">,
  ];
}

#endif
