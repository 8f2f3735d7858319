// RUN: windlass-opt %s -sched-lower-to-commands -sched-verify-commands | FileCheck %s

// Two results of one gather are read one after another: the first reader waits for both. What is made of them comes
// behind all collectives: the scatters between do not wait for it, and the last backward begins them.
#split = #plan.layout<[<[<8, ["data"]>]>]>
#inner = #plan.layout<[<[<2>, <4, ["data"]>]>]>
#sums = #plan.layout<[<[<8>]>], unreduced = [<"data", sum>]>
module {
sched.program @program on <[<"data", 2>]> {
  sched.resource gradient @a : tensor<4xf32> of tensor<8xf32> #split
  sched.resource gradient @b : tensor<4xf32> of tensor<8xf32> #split
  sched.resource gradient @c : tensor<8xf32> of tensor<8xf32> #sums
  sched.resource gradient @d : tensor<8xf32> of tensor<8xf32> #sums
  sched.resource reduced @ra : tensor<4xf32> of tensor<8xf32> #inner
  sched.resource reduced @rb : tensor<4xf32> of tensor<8xf32> #inner
  sched.resource reduced @rc : tensor<4xf32> of tensor<8xf32> #split
  sched.resource reduced @rd : tensor<4xf32> of tensor<8xf32> #split
  func.func @forward() -> (tensor<4xf32>, tensor<8xf32>) attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = train.constant dense<1.0> : tensor<4xf32>
    %y = train.constant dense<2.0> : tensor<8xf32>
    return %x, %y : tensor<4xf32>, tensor<8xf32>
  }
  // CHECK-LABEL: func.func @backward
  // CHECK: sched.launch_collective{{ +}}reduce_scatter {{.*}}train.id = "c"
  // CHECK: sched.launch_collective{{ +}}all_gather
  // CHECK-NOT: own_part
  // CHECK: return
  func.func @backward(%x: tensor<4xf32>, %y: tensor<8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    sched.add_to @c, %y : tensor<8xf32>
    sched.add_to @a, %x : tensor<4xf32>
    sched.add_to @b, %x : tensor<4xf32>
    sched.add_to @d, %y : tensor<8xf32>
    return
  }
  // CHECK-LABEL: func.func @reduce
  // CHECK: sched.launch_collective{{ +}}reduce_scatter {{.*}}train.id = "d"
  // CHECK: sched.wait {{.*}} on @compute
  // CHECK-NOT: sched.wait
  // CHECK: own_part
  // CHECK: own_part
  // CHECK-NOT: sched.launch
  // CHECK: return
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %a = sched.load @a : tensor<4xf32>
    %b = sched.load @b : tensor<4xf32>
    %all:2 = sched.all_gather %a, %b dim 0 over ["data"] : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>, tensor<8xf32>
    %a2 = train.reshape %all#0 : tensor<8xf32> -> tensor<2x4xf32>
    %oa = sched.own_part %a2 dim 1 over ["data"] : tensor<2x4xf32> -> tensor<2x2xf32>
    %fa = train.reshape %oa : tensor<2x2xf32> -> tensor<4xf32>
    sched.store @ra, %fa : tensor<4xf32>
    %d = sched.load @d : tensor<8xf32>
    %rd = sched.reduce_scatter %d dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    sched.store @rd, %rd : tensor<4xf32>
    %b2 = train.reshape %all#1 : tensor<8xf32> -> tensor<2x4xf32>
    %ob = sched.own_part %b2 dim 1 over ["data"] : tensor<2x4xf32> -> tensor<2x2xf32>
    %fb = train.reshape %ob : tensor<2x2xf32> -> tensor<4xf32>
    sched.store @rb, %fb : tensor<4xf32>
    %c = sched.load @c : tensor<8xf32>
    %rc = sched.reduce_scatter %c dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    sched.store @rc, %rc : tensor<4xf32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}
