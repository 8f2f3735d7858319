// RUN: windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json bucket-bytes=100" | FileCheck %s --check-prefix=GROUPS
// RUN: windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json candidate=2" --plan-verify-layouts=materialized=false | FileCheck %s --check-prefix=MODEL
// RUN: windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json" --remarks-filter=plan-choose-strategies --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: not windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json memory-limit=500" 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: not windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json candidate=3" 2>&1 | FileCheck %s --check-prefix=CANDIDATE
// RUN: not windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=abacus:2" 2>&1 | FileCheck %s --check-prefix=CLUSTER

// RUN: windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json mesh=1,1,2 threads=2" --plan-verify-layouts=materialized=false | FileCheck %s --check-prefix=MODEL
// RUN: not windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json mesh=2,1" 2>&1 | FileCheck %s --check-prefix=AXES
// RUN: not windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json mesh=3,1,1" 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json pins=fc0=n0:model" --plan-verify-layouts=materialized=false | FileCheck %s --check-prefix=PINNED
// RUN: not windlass-opt %S/../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-choose-strategies="cluster=%S/Inputs/fast-links.json pins=fc0=n0:rows" 2>&1 | FileCheck %s --check-prefix=UNREAD

// Where links cost nothing, micro-batches run side by side and each weight's state is sharded.
// GROUPS: plan.bucket_bytes = 100 : i64, plan.mesh = #plan.mesh<[<"data", 2, replica>]>
// GROUPS: train.parameter weight @w1 {{.*}}plan.layout = #plan.layout<[<[<6>]>, <[<3>]>]>, plan.master_layout = #plan.layout<[<[<6, ["data"]>]>, <[<3>]>]>

// On the mesh of the model's ranks every operator of the forward pass is split.
// MODEL: plan.mesh = #plan.mesh<[<"model", 2>]>
// MODEL-LABEL: @microbatch
// MODEL: train.matmul {{.*}}plan.strategy = #plan.strategy<[<"{{[a-z0-9]+}}", ["model"]>]>
// MODEL: train.relu {{.*}}plan.strategy = #plan.strategy<[<"{{[a-z0-9]+}}", ["model"]>]>
// MODEL: train.matmul {{.*}}plan.strategy = #plan.strategy<[<"{{[a-z0-9]+}}", ["model"]>]>

// REMARK: remark: [Analysis] chosen {{.*}}batch_parts=1, bound_ns=[[COST:[0-9]+]], cost_ns=[[COST]], model_ranks=1, {{.*}}replicas=2
// REMARK-DAG: remark: [Analysis] ddp {{.*}}cost_ns=
// REMARK-DAG: remark: [Analysis] zero3 {{.*}}cost_ns=
// REMARK-DAG: remark: [Analysis] megatron {{.*}}cost_ns=

// MEMORY: error: has plans that fit on 0 of 3 meshes, but the one behind the best 0 is wanted
// CANDIDATE: error: has plans that fit on 3 of 3 meshes, but the one behind the best 3 is wanted
// CLUSTER: error: {{.*}}abacus
// AXES: error: has a mesh of three axes, but 2 are given
// NONE: error: 2 ranks do not fit
// The mesh has the axis of the pin.
// PINNED: plan.mesh = #plan.mesh<[<"model", 2>]>
// PINNED: train.matmul {{.*}}plan.strategy = #plan.strategy<[<"n0", ["model"]>]>, train.id = "fc0"
// UNREAD: error: pin 'fc0=n0:rows': operator 'fc0' is split over axis 'rows', which the mesh does not have
