// Passes of level L3.
#ifndef WINDLASS_PLAN_PASSES_TD
#define WINDLASS_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def ApplyStrategy : Pass<"plan-apply-strategy", "::mlir::ModuleOp"> {
  let summary = "gives every op and parameter its place under a named strategy";
  let description = [{
    Takes the four functions of L2. `ddp` on R ranks runs P = gcd(R, G) micro-batches at once on the axis "data" and
    splits the graph's batch R/P ways on the axis "batch"; an axis of size 1 is left out. Dim 0 of every graph input is
    the batch; from there splits follow the operators' factors, and a factor that may not be split stays whole.

    Afterwards the module has `plan.mesh` (and `plan.data_axis` where P > 1), every op `plan.strategy` and
    `plan.layouts`, every argument and result of a function `plan.layout`, every parameter its three layouts.
  }];
  let options = [
    Option<"strategy", "strategy", "std::string", "\"ddp\"", "name of the strategy: ddp, or auto, which is ddp">,
    Option<"ranks", "ranks", "int64_t", "1", "devices">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "4194304", "bytes of gradients that are reduced together">,
  ];
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
    that fits its shape and names an axis once. At L3b operands are in the layouts that their ops take and results in
    those that the ops make.
  }];
  let options = [
    Option<"materialized", "materialized", "bool", "true", "the module is at L3b: layouts differ only at plan.reshard">,
  ];
}

#endif
