// Passes of the library Planner.
#ifndef WINDLASS_PLANNER_PASSES_TD
#define WINDLASS_PLANNER_PASSES_TD

include "mlir/Pass/PassBase.td"

def ChooseStrategies : Pass<"plan-choose-strategies", "::mlir::ModuleOp"> {
  let summary = "searches a strategy for every op and layouts for every value and parameter";
  let description = [{
    Takes the functions of L2. On each mesh of the axes "data" (data-parallel replicas), "batch"
    (parts of the graph's batch) and "model" it solves a problem of labels (`docs/solver.md`): an operator of
    `@microbatch` is labelled with the factors that the axes split, a value that is read in several places with the
    layout in which it is found, a parameter with the layout in which operators find it and with which of its copies the
    ranks of the first two axes shard (none, optimizer state, gradients too, weights too). Costs are the time of
    operators, reshards, reductions and updates by the cluster's figures, one after the other but for what GPUs do at
    once; memory has a row for each
    operator that lives between its values' making and last use. Repeats of a block choose alike.

    `candidate` takes the best plan of another mesh than the best one. A plan that does not fit otherwise recomputes
    values in the backward pass: `plan-choose-segments` says which blocks.

    Afterwards the module is at L3, as after `plan-apply-strategy`. A remark says what the plan costs and the bound.
  }];
  let options = [
    Option<"cluster", "cluster", "std::string", "\"cpu:1\"", "the devices: a preset such as h100:8, or a file">,
    Option<"memoryLimit", "memory-limit", "int64_t", "0", "bytes per device (0: no limit)">,
    Option<"candidate", "candidate", "int64_t", "0", "how many better meshes are passed over">,
    Option<"threads", "threads", "int64_t", "1", "of the search; they change nothing of the plan">,
    ListOption<"mesh", "mesh", "int64_t", "replicas, parts of the batch and ranks of the model of the only mesh to search (default: all)">,
    ListOption<"pins", "pins", "std::string", "what is fixed before, as PATTERN=VALUE">,
    Option<"apply", "apply", "bool", "true", "whether the module is planned so; otherwise only the remarks say what was found">,
    Option<"bucketBytes", "bucket-bytes", "int64_t", "::windlass::plan::kBucketBytes", "bytes of gradients that are reduced together">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

def CutModel : Pass<"plan-cut-model", "::mlir::ModuleOp"> {
  let summary = "cuts the model into the chunks of a pipeline";
  let description = [{
    Takes the functions of L2. Sets `plan.pipeline`: the positions, the schedule by which they run, and the operators
    with which the chunks begin. Chunks begin where few bytes cross, such as between two blocks, so that the longest
    chunk takes the least time by the cluster's figures. `plan-to-sched` makes a program for each position of it.
  }];
  let options = [
    Option<"positions", "positions", "int64_t", "2", "of the pipeline, which share the cluster's devices evenly">,
    Option<"schedule", "schedule", "std::string", "\"1f1b\"", "the name of a published schedule (docs/schedules.md)">,
    Option<"chunks", "chunks", "int64_t", "1", "of each position">,
    Option<"cluster", "cluster", "std::string", "\"cpu:2\"", "the devices: a preset such as h100:8, or a file">,
  ];
  let dependentDialects = ["::windlass::plan::PlanDialect"];
}

#endif
