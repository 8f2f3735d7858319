// A plan of four replicas: two hosts, on each of which the state of one weight is sharded.
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-file=file=%S/Inputs/mlp-plan.json --plan-verify-layouts=materialized=false | FileCheck %s

// CHECK: plan.bucket_bytes = 4194304 : i64, plan.mesh = #plan.mesh<[<"hosts", 2, replica>, <"inside", 2, replica>]>
// CHECK: train.parameter weight @w1 {{.*}}plan.gradient_layout = #plan.layout<[<[<6>]>, <[<3>]>], unreduced = [<"hosts", sum>, <"inside", sum>]>, plan.layout = #plan.layout<[<[<6>]>, <[<3>]>]>, plan.master_layout = #plan.layout<[<[<6, ["inside"]>]>, <[<3>]>]>
// CHECK: train.parameter state @w1_m {{.*}}plan.master_layout = #plan.layout<[<[<6, ["inside"]>]>, <[<3>]>]>
// CHECK: train.matmul {{.*}}plan.strategy = #plan.strategy<[]>, train.id = "fc0"

// What does not fit is refused at the module.
// RUN: sed 's/"fc1"/"fc7"/' %S/Inputs/mlp-plan.json > %t.json
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-file=file=%t.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=OPERATOR
// OPERATOR: error: operator 'fc1' of @microbatch is not in the plan
// RUN: sed 's/"version": 8/"version": 7/' %S/Inputs/mlp-plan.json > %t.json
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-file=file=%t.json -o /dev/null 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: error: version is 7, of an older windlass, but this one reads version 8: plan again with this one
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-file=file=%t.none -o /dev/null 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: {{.*}}none
