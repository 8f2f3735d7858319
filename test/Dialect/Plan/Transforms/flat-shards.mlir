// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=4 strategy=zero1" --plan-verify-layouts=materialized=false | FileCheck %s
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=4 strategy=zero2" --plan-verify-layouts=materialized=false | FileCheck %s --check-prefix=GRADIENTS
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=8 strategy=zero3" --plan-verify-layouts=materialized=false | FileCheck %s --check-prefix=WEIGHTS
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=4 strategy=zero1 pins=step.1=[6];[6]" --plan-materialize-layouts --plan-verify-layouts | FileCheck %s --check-prefix=FOUND
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=4 pins=layer0.bias=master:[6]flat(data),layer0.bias=gradient:[6]flat(data)" --plan-materialize-layouts --plan-verify-layouts --plan-to-sched --sched-verify-async | FileCheck %s --check-prefix=PINNED
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=4 strategy=zero1" --plan-materialize-layouts --plan-to-sched --sched-join-collectives | FileCheck %s --check-prefix=UNIT

// Four ranks divide the rows of the first weight; the other weights are sharded in ranges. Rank does not matter.
// CHECK: weight @w0 {{.*}}plan.master_layout = #plan.layout<[<[<4, ["data"]>]>, <[<6>]>]>
// CHECK: weight @b0 {{.*}}plan.gradient_layout = #plan.layout<[<[<6>]>], unreduced = [<"data", sum>]>
// CHECK-SAME: plan.layout = #plan.layout<[<[<6>]>]>, plan.master_layout = #plan.layout<[<[<6>]>] flat = ["data"]>
// CHECK: weight @w1 {{.*}}plan.master_layout = #plan.layout<[<[<6>]>, <[<3>]>] flat = ["data"]>
// CHECK: state @w1_m {{.*}}plan.layout = #plan.layout<[<[<6>]>, <[<3>]>] flat = ["data"]>
// CHECK-LABEL: @update
// CHECK: train.square_sum %{{.*}} : tensor<6xf32>
// CHECK-SAME: plan.layouts = [#plan.layout<[], unreduced = [<"data", sum>]>], plan.strategy = #plan.strategy<[<"flat", ["data"]>]>
// CHECK: train.accumulate
// CHECK-SAME: plan.layouts = [#plan.layout<[], unreduced = [<"data", sum>]>]
// CHECK: train.sgd
// CHECK-SAME: plan.strategy = #plan.strategy<[<"d0", ["data"]>]>
// CHECK: train.sgd
// CHECK-SAME: plan.layouts = [#plan.layout<[<[<6>]>] flat = ["data"]>, #plan.layout<[<[<6>]>] flat = ["data"]>], plan.strategy = #plan.strategy<[<"flat", ["data"]>]>

// GRADIENTS: weight @b0 {{.*}}plan.gradient_layout = #plan.layout<[<[<6>]>] flat = ["data"]>

// Over all axes, where one factor does not take them all. Operators read weights by dims only.
// WEIGHTS: weight @w0 {{.*}}plan.gradient_layout = #plan.layout<[<[<4>]>, <[<6>]>] flat = ["data", "batch"]>
// WEIGHTS-SAME: plan.layout = #plan.layout<[<[<4, ["data"]>]>, <[<6>]>]>, plan.master_layout = #plan.layout<[<[<4>]>, <[<6>]>] flat = ["data", "batch"]>
// Six elements are too few for eight ranks.
// WEIGHTS: weight @b0 {{.*}}plan.master_layout = #plan.layout<[<[<6, ["batch"]>]>]>

// The values of @update may be brought to any layout.
// FOUND: train.sgd
// FOUND: %[[NEW:.*]], %{{.*}} = train.sgd
// FOUND: plan.reshard %[[NEW]] from <[<[<6>]>] flat = ["data"]> to <[<[<6>]>]>
// FOUND: plan.reshard %{{.*}} from <[<[<6>]>]> to <[<[<6>]>] flat = ["data"]>

// One buffer of the gradient, to which each micro-batch adds its range.
// PINNED: sched.resource gradient @gradient_b0 : tensor<2xf32> of tensor<6xf32> <[<[<6>]>] flat = ["data"]>
// PINNED-NOT: @reduced_b0
// PINNED-LABEL: @backward
// PINNED: %[[PADDED:.*]] = train.pad %{{.*}} low [0] high [2] value 0.000000e+00 : tensor<6xf32> -> tensor<8xf32>
// PINNED: %[[RANGES:.*]] = train.reshape %[[PADDED]] : tensor<8xf32> -> tensor<1x4x2xf32>
// PINNED: %[[RANGE:.*]] = sched.reduce_scatter %[[RANGES]] dim 1 over ["data"]
// PINNED: %[[FLAT:.*]] = train.reshape %[[RANGE]]
// PINNED: sched.add_to @gradient_b0, %[[FLAT]] : tensor<2xf32>
// PINNED-LABEL: @update
// PINNED: %[[GATHERED:.*]] = sched.all_gather %{{.*}} dim 1 over ["data"] : tensor<1x1x2xf32> -> tensor<1x4x2xf32>
// PINNED: %[[RANGE:.*]] = train.reshape %[[GATHERED]] : tensor<1x4x2xf32> -> tensor<8xf32>
// PINNED: %[[KEPT:.*]] = train.slice %[[RANGE]] from [0] sizes [6]
// PINNED: sched.store @parameter_b0, %[[KEPT]]

// One unit gathers what is sharded in rows and what is sharded in ranges.
// UNIT: sched.all_gather %{{.*}}, %{{.*}} dim 1 over ["data"] : tensor<1x1x6xf32>, tensor<1x1x2xf32> -> tensor<1x4x6xf32>, tensor<1x4x2xf32>
