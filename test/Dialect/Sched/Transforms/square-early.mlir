// RUN: windlass-opt %s -sched-square-early | FileCheck %s --check-prefixes=CHECK,ONCE
// RUN: windlass-opt %s -sched-fuse-elementwise -sched-square-early -sched-lower-to-commands -sched-verify-commands | FileCheck %s --check-prefix=L5
// RUN: sed 's/<forward>, #sched.action<backward>/<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>/' %s | windlass-opt -sched-square-early | FileCheck %s --check-prefixes=CHECK,TWICE
// RUN: sed 's/<forward>, #sched.action<backward>/<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>/' %s | windlass-opt -sched-update-early -sched-square-early | FileCheck %s --check-prefixes=CHECK,TWICE,EARLY

// The host holds the gradients of @a and @b, and the device that of @c. Where a step has one micro-batch, the squares of
// @a and @b are summed before they are copied; that of @b, which a scatter brings, behind the next scatter. Else the host
// sums them in @reduce, each in front of the update that reads the same gradient.
#vector = #plan.layout<[<[<8>]>]>
#split = #plan.layout<[<[<8, ["data"]>]>]>
#host = #plan.layout<[<[<8>]>] memory = host>
#split_host = #plan.layout<[<[<8, ["data"]>]>] memory = host>
module {
// CHECK: sched.resource squares @squares : tensor<f32>
sched.program @program on <[<"data", 2>]> {
  sched.resource parameter @weight_a : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource master @master_a : tensor<8xf32> of tensor<8xf32> #host
  sched.resource state @momentum_a : tensor<8xf32> of tensor<8xf32> #host
  sched.resource gradient @gradient_a : tensor<8xf32> of tensor<8xf32> #host
  sched.resource gradient @gradient_b : tensor<4xf32> of tensor<8xf32> #split_host
  sched.resource gradient @gradient_c : tensor<4xf32> of tensor<8xf32> #split
  sched.resource scalar @rate : tensor<f32> of tensor<f32> <[] memory = host> {scalar = #train<hyperparameter learning_rate>}
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
  func.func @forward() -> tensor<8xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %a = sched.load @weight_a : tensor<8xf32>
    return %a : tensor<8xf32>
  }
  // CHECK-LABEL: func.func @backward
  // CHECK: %[[B:.*]] = sched.reduce_scatter
  // CHECK: sched.add_to @gradient_b
  // CHECK: %[[A:.*]] = train.softmax
  // ONCE-NEXT: %[[AS:.*]] = train.square_sum %[[A]] : {{.*}} {train.id = "square.a"}
  // CHECK-NEXT: sched.move %[[A]] to host
  // CHECK: sched.add_to @gradient_a
  // ONCE-NEXT: %[[BS:.*]] = train.square_sum %[[B]] : {{.*}} {train.id = "square.b"}
  // CHECK-NEXT: sched.reduce_scatter
  // CHECK: sched.add_to @gradient_c
  // ONCE-NEXT: %[[SUM:.*]] = train.accumulate %[[AS]], %[[BS]]
  // ONCE-NEXT: sched.store @squares, %[[SUM]]
  // CHECK-NEXT: return
  func.func @backward(%y: tensor<8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %b = sched.reduce_scatter %y dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    %b_there = sched.move %b to host : tensor<4xf32>
    sched.add_to @gradient_b, %b_there : tensor<4xf32>
    %a = train.softmax %y : tensor<8xf32>
    %a_there = sched.move %a to host : tensor<8xf32>
    sched.add_to @gradient_a, %a_there : tensor<8xf32>
    %c = sched.reduce_scatter %a dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    sched.add_to @gradient_c, %c : tensor<4xf32>
    return
  }
  // CHECK-LABEL: func.func @reduce
  // ONCE-NEXT: return
  // TWICE-DAG: %[[GA:.*]] = sched.load @gradient_a
  // TWICE-DAG: %[[AS:.*]] = train.square_sum %[[GA]] : {{.*}} {train.id = "square.a"}
  // EARLY: train.sgd %{{.*}}, %{{.*}}, %[[GA]]
  // TWICE-DAG: %[[GB:.*]] = sched.load @gradient_b
  // TWICE-DAG: %[[BS:.*]] = train.square_sum %[[GB]] : {{.*}} {train.id = "square.b"}
  // TWICE: %[[SUM:.*]] = train.accumulate %[[AS]], %[[BS]]
  // TWICE: %[[HERE:.*]] = sched.move %[[SUM]] to device
  // TWICE: sched.store @squares, %[[HERE]]
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  // CHECK-LABEL: func.func @update
  // CHECK: sched.load @gradient_c
  // CHECK-NEXT: %[[C:.*]] = train.square_sum
  // CHECK-NEXT: %[[AB:.*]] = sched.load @squares
  // CHECK-NEXT: train.accumulate %[[C]], %[[AB]]
  // CHECK-NOT: square_sum
  // L5-LABEL: func.func @backward
  // L5: sched.launch square_sum on @compute
  // L5: sched.launch square_sum on @compute
  // L5-LABEL: func.func @update
  // L5: sched.launch square_sum on @compute
  // L5-NOT: square_sum on @host
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %rate = sched.load @rate : tensor<f32>
    %a = sched.load @gradient_a : tensor<8xf32>
    %b = sched.load @gradient_b : tensor<4xf32>
    %c = sched.load @gradient_c : tensor<4xf32>
    %square_a = train.square_sum %a : tensor<8xf32> -> tensor<f32> {train.id = "square.a"}
    %square_b = train.square_sum %b : tensor<4xf32> -> tensor<f32> {train.id = "square.b"}
    %square_c = train.square_sum %c : tensor<4xf32> -> tensor<f32> {train.id = "square.c"}
    %there = train.accumulate %square_a, %square_b : tensor<f32>
    %here = sched.move %there to device : tensor<f32>
    %sum = train.accumulate %square_c, %here : tensor<f32>
    sched.store @norm, %sum : tensor<f32>
    %weight = sched.load @master_a : tensor<8xf32>
    %momentum = sched.load @momentum_a : tensor<8xf32>
    %new, %next = train.sgd %weight, %momentum, %a, %rate, %rate, %rate, %rate : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    sched.store @master_a, %new : tensor<8xf32>
    sched.store @momentum_a, %next : tensor<8xf32>
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}
