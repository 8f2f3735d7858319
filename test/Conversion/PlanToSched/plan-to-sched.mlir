// RUN: windlass-opt %S/../../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-apply-strategy="ranks=8 bucket-bytes=100" --plan-materialize-layouts --plan-to-sched | FileCheck %s
// RUN: windlass-opt %S/../../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-apply-strategy="ranks=1" --plan-materialize-layouts --plan-to-sched | FileCheck %s --check-prefix=ONE
// RUN: windlass-opt %S/../../Dialect/Plan/Transforms/Inputs/mlp.mlir --plan-apply-strategy="ranks=2" --plan-materialize-layouts --plan-to-sched | FileCheck %s --check-prefix=DATA

// CHECK: module attributes {train.model
// CHECK: train.parameter weight @w0 "layer0.weight"
// CHECK-NOT: plan.layout
// CHECK: sched.program @program on <[<"data", 4, replica>, <"batch", 2, batch>]> {
// CHECK: sched.resource input @[[X:.*]] : tensor<4x4xf32> of tensor<8x4xf32> <[<[<8, ["batch"]>]>, <[<4>]>]> {logical_name = "x"}
// CHECK: sched.resource parameter @[[W0:.*]] : tensor<4x6xf32> of tensor<4x6xf32> {{.*}}of = @w0
// CHECK: sched.resource gradient @[[G0:.*]] : tensor<4x6xf32> of tensor<4x6xf32> <[<[<4>]>, <[<6>]>], unreduced = [<"data", sum>, <"batch", sum>]> {{.*}}of = @w0
// CHECK: sched.resource gradient @[[GB:.*]] : tensor<6xf32>
// CHECK: sched.resource gradient @[[G1:.*]] : tensor<6x3xf32>
// CHECK: sched.resource state @[[M0:.*]] : tensor<4x6xf32> {{.*}}logical_name = "layer0.weight/momentum_buffer", of = @w0_m
// CHECK: sched.resource value @[[VALUE:.*]] : tensor<6xf32>
// CHECK: sched.resource scalar @[[LR:.*]] : tensor<f32> of tensor<f32> <[]> {scalar = {{.*}}learning_rate
// CHECK: sched.resource loss @[[L:.*]] : tensor<f32> of tensor<f32> <[], unreduced = [<"data", sum>, <"batch", sum>]>
// CHECK: sched.resource grad_norm @[[N:.*]] : tensor<f32>
// CHECK: sched.resource evaluate @[[E:.*]] : tensor<f32>

// CHECK-LABEL: func.func @init() attributes {sched.step = #sched.step<init, chunk 0>}
// CHECK: sched.store @[[VALUE]]

// CHECK-LABEL: func.func @forward() -> (tensor<f32>, tensor<4x3xf32>, tensor<4xi64>, tensor<4xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x4xf32>)
// CHECK-SAME: attributes {sched.step = #sched.step<forward, chunk 0>}
// CHECK: %[[IN:.*]] = sched.load @[[X]] : tensor<4x4xf32>
// CHECK: %[[WEIGHT:.*]] = sched.load @[[W0]]
// CHECK: train.matmul %[[IN]], %[[WEIGHT]] {{.*}} -> tensor<4x6xf32> {train.id = "fc0"}
// CHECK: train.broadcast {{.*}} -> tensor<4x6xf32>
// CHECK: %{{.*}}, %[[COUNT:.*]], %{{.*}} = train.softmax_cross_entropy
// CHECK-NEXT: %[[WHOLE:.*]] = sched.all_reduce sum %[[COUNT]] over ["batch"]
// CHECK: sched.add_to @[[L]]
// CHECK: return %[[WHOLE]],

// Weights and init values are loaded again; inputs are kept for the micro-batch; gradients are added where they are made.
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: tensor<f32>, {{.*}}tensor<4x3xf32>, {{.*}}tensor<4xi64>, {{.*}}tensor<4xf32>, {{.*}}tensor<4x6xf32>, {{.*}}tensor<4x6xf32>, %[[KEPT:.*]]: tensor<4x4xf32>)
// CHECK-NOT: sched.load @[[X]]
// CHECK: %[[D1:.*]] = train.matmul {{.*}}train.forward = "fc1", train.id = "fc1.grad.1"
// CHECK-NEXT: sched.add_to @[[G1]], %[[D1]]
// CHECK: %[[DB:.*]] = train.reduce
// CHECK-NEXT: sched.add_to @[[GB]], %[[DB]]
// CHECK: %[[D0:.*]] = train.matmul %[[KEPT]], {{.*}}train.id = "fc0.grad.1"
// CHECK: sched.add_to @[[G0]], %[[D0]]
// CHECK-NOT: plan.

// The loss, then buckets of at most 100 bytes in the order of the backward pass.
// CHECK-LABEL: func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>}
// CHECK: sched.load @[[L]]
// CHECK: sched.all_reduce sum %{{.*}} over ["data", "batch"]
// CHECK: sched.store @[[L]]
// CHECK: %[[A:.*]] = sched.load @[[G1]]
// CHECK: %[[B:.*]] = sched.load @[[GB]]
// CHECK: %[[R:.*]]:2 = sched.all_reduce sum %[[A]], %[[B]] over ["data", "batch"]
// CHECK: sched.store @[[G1]], %[[R]]#0
// CHECK: sched.store @[[GB]], %[[R]]#1
// CHECK: sched.load @[[G0]]
// CHECK: sched.all_reduce
// CHECK: sched.store @[[G0]]

// CHECK-LABEL: func.func @update() attributes {sched.step = #sched.step<update, chunk 0>}
// CHECK: %[[GRAD:.*]] = sched.load @[[G0]]
// CHECK: train.square_sum %[[GRAD]]
// CHECK-NOT: sched.all_reduce
// CHECK: sched.load @[[LR]]
// CHECK: %[[NW:.*]], %[[NM:.*]] = train.sgd
// CHECK: sched.store @[[W0]], %[[NW]]
// CHECK: sched.store @[[M0]], %[[NM]]
// CHECK: sched.store @[[N]]
// CHECK-LABEL: func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>}
// CHECK: train.loss
// CHECK: %[[OUT:.*]] = sched.all_reduce
// CHECK: sched.store @[[E]], %[[OUT]]
// CHECK: sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]

// ONE-NOT: sched.all_reduce
// ONE: sched.schedule [#sched.action<repeat x 4 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]

// DATA-LABEL: func.func @forward
// DATA-NOT: sched.all_reduce
// DATA-LABEL: func.func @reduce
// DATA: sched.all_reduce {{.*}} over ["data"]
// DATA: sched.schedule [#sched.action<repeat x 2 of 2>
