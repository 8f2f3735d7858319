// Level L3b to level L4.
#ifndef WINDLASS_PLANTOSCHED_PASSES_TD
#define WINDLASS_PLANTOSCHED_PASSES_TD

include "mlir/Pass/PassBase.td"

def PlanToSched : Pass<"plan-to-sched", "::mlir::ModuleOp"> {
  let summary = "makes the functions that each rank runs on its parts of the values, and its schedule of a step";
  let description = [{
    Takes a module whose layouts are materialized. A value that outlives a function becomes a `sched.resource`;
    `@microbatch` is cut at its stash into `@forward` and `@backward`; ops get the shapes of a rank's local slices; a
    `plan.reshard` becomes collectives. Gradients are added to their resources as soon as they are computed. `@reduce`
    reduces them over the data axes: after the loss, in buckets of up to `plan.bucket_bytes`, filled in the order in
    which `@backward` computes them. A value that the backward pass reads and a resource still holds (a weight) is
    loaded again, not stashed.

    Afterwards (L4) nothing of `plan` is left but the mesh and `plan.unit_bytes` and `plan.prefetch_bytes` of the program, layouts of
    resources, and `plan.repeat`.
  }];
  let dependentDialects = ["::windlass::sched::SchedDialect"];
}

#endif
