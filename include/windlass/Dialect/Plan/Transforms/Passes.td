// Passes of level L3.
#ifndef WINDLASS_PLAN_PASSES_TD
#define WINDLASS_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApplyStrategy : Pass<"plan-apply-strategy", "::mlir::ModuleOp"> {
  let summary = "gives every op and parameter its place under a named strategy";
  let description = [{
    Takes the four functions of L2. A strategy (`docs/plans.md` has a table) is for the data, for the model, or a product
    of both. The R ranks for the data run P = gcd(R, G) micro-batches at once on the axis "data", of role replica, and
    split the graph's batch R/P ways on the axis "batch"; an axis of size 1 is left out. Dim 0 of every graph input is the batch; from
    there splits follow the operators' factors, and a factor that may not be split stays whole. The copies of a weight
    that these ranks share out are split on the first factor that the ranks divide; the master and the gradient, where
    none is, in equal ranges. The ranks for the model split operators on the axis "model", and weights as their operators.

    Pins are constraints on the same choices: a pinned operator keeps its strategy, a pinned value is found in its layout,
    a pinned copy of a parameter lies as it says, and from there splits follow as from the batch. Only the named axes of
    the mesh can be pinned.

    Afterwards the module has `plan.mesh`, every op `plan.strategy` and `plan.layouts`, every argument and result of a
    function `plan.layout`, every parameter its three layouts.
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", "\"ddp\"", "NAME[=K][*NAME[=K]], as --strategy of windlass takes it; K: its ranks">,
    Option<"ranks", "ranks", "int64_t", "1", "devices">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "::windlass::plan::kBucketBytes", "bytes of gradients that are reduced together">,
    ListOption<"pins", "pins", "std::string", "PATTERN=VALUE: what is fixed before the strategy chooses">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def ApplyPlanFile : Pass<"plan-apply-file", "::mlir::ModuleOp"> {
  let summary = "gives every op and parameter its place under a plan.json";
  let description = [{
    Takes the four functions of L2, of the model and the micro-batches that the plan was made for. What the file says is
    taken as it stands: `plan-verify-layouts` says whether it is legal.

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
    Takes the four functions of L2. The mesh has one to three axes, any of which may be of replicas; every op splits
    factors that it may split, every value lies anyhow, every parameter has three layouts, and of every block anything may
    be run again. One seed gives one plan.

    Afterwards the module is at L3, as after `plan-apply-strategy`.
  }];
  let options = [
    Option<"seed", "seed", "uint64_t", "0", "number of the plan">,
    Option<"ranks", "ranks", "int64_t", "2", "devices">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def ChooseSegments : Pass<"plan-choose-segments", "::mlir::ModuleOp"> {
  let summary = "chooses which segments are run again in the backward pass";
  let description = [{
    Takes L3 before layouts are materialized. Segments are taken one by one: first the parts of blocks, those before
    others that free more bytes of stash for each FLOP that is run again, ties in program order; then, in the same way,
    blocks whose parts are all taken, each of which is then run again as one, which frees the value between the parts.
    What would free nothing is left out.

    Afterwards `segment` of the strategies says what the first `steps` of these make run again.
  }];
  let options = [
    Option<"steps", "steps", "int64_t", "-1", "how many are taken (-1: all)">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def RerunSegments : Pass<"plan-rerun-segments", "::mlir::ModuleOp"> {
  let summary = "puts what is run again before the backward operators that need it";
  let description = [{
    Takes L3 before layouts are materialized. Of a segment that is run again, copies of those operators that its own
    backward pass needs stand before the first backward operator that reads one of their values; they bear the id of
    their operator with `.rerun` and name it as `train.forward`. The values are no longer stashed; what the copies read
    of other segments is. A value that the backward pass of another segment reads stays stashed.

    Afterwards no strategy names a segment.
  }];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def DecomposeSplitReductions : Pass<"plan-decompose-split-reductions", "::mlir::ModuleOp"> {
  let summary = "takes apart operators that reduce inside, where the plan splits what they reduce";
  let description = [{
    An operator whose strategy splits what it reduces inside (the classes of a cross entropy, the features of a norm, the
    row of a softmax, the keys of attention) becomes operators that work on parts and reductions of what they make, by the
    rule that it declares. They get strategies and layouts that follow from those of its operands; its results are found
    where they were.

    A sum of terms that are partial over different axes (the squares of the global norm, where some weights are split)
    becomes a sum for each set of axes, and a sum of those, so that each set is reduced once.

    Weights that scale normalised rows are marked (`train.norm_scale`), because the norms may be gone afterwards.
  }];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def MaterializeLayouts : Pass<"plan-materialize-layouts", "::mlir::ModuleOp"> {
  let summary = "puts a plan.reshard wherever a value is needed in another layout than it has";
  let description = [{
    An op's own results lie as its strategy leaves them; where `plan.layouts` asks for another layout, a reshard
    follows the op, and consumers start from there. A consumer that needs something else gets a reshard of its own,
    shared by all consumers that need the same. Unreduced values go on unreduced through ops that declare it. Gradients
    enter `@update` in the layout in which they were accumulated and are brought to the master layout first.

    Afterwards (L3b) the layout of every operand is the one that its op takes, and `plan.layouts` are what ops make.
  }];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def VerifyLayouts : Pass<"plan-verify-layouts", "::mlir::ModuleOp"> {
  let summary = "fails at the first op whose strategy or layouts are not legal";
  let description = [{
    Every op has a strategy over existing axes that split its factors evenly, each axis once; every value has a layout
    that fits its shape, names an axis once and is of device
    memory. What is run again are whole segments of blocks. At L3b operands are in the layouts that their ops take and results in
    those that the ops make.
  }];
  let options = [
    Option<"materialized", "materialized", "bool", "true", "the module is at L3b: layouts differ only at plan.reshard">,
  ];
}

#endif
