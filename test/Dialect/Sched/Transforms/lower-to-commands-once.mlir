// RUN: windlass-opt %s -sched-lower-to-commands -sched-verify-commands | FileCheck %s --check-prefixes=CHECK,ONCE
// RUN: sed 's/<forward>, #sched.action<backward>/<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>/' %s | windlass-opt -sched-lower-to-commands -sched-verify-commands | FileCheck %s --check-prefixes=CHECK,TWICE

// Where a step has one micro-batch, a scatter brings the gradient to where it is kept; else it is added there. The device
// waits for it there in both cases, so that what was sent is not in use until the end.
#split = #plan.layout<[<[<8, ["data"]>]>]>
module {
sched.program @program on <[<"data", 2>]> {
  sched.resource gradient @g : tensor<4xf32> of tensor<8xf32> #split
  sched.resource gradient @h : tensor<4xf32> of tensor<8xf32> #split
  func.func @forward() -> tensor<8xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = train.constant dense<2.0> : tensor<8xf32>
    return %x : tensor<8xf32>
  }
  // CHECK-LABEL: func.func @backward
  // ONCE: %[[G:.*]] = sched.buffer @device_arena[0] : memref<4xf32>
  // CHECK: sched.launch_collective{{ +}}reduce_scatter {{.*}} -> %[[PART:[0-9]+]] 
  // CHECK-NEXT: sched.record [[DONE:[0-9]+]] on @over_data
  // CHECK-NEXT: sched.wait [[DONE]] on @compute
  // TWICE: sched.launch_map {{.*}} ins(%[[PART]]) {{.*}} accumulate_after_first
  // ONCE-NOT: sched.launch_map
  // CHECK: sched.launch_collective{{ +}}reduce_scatter
  // CHECK: return
  func.func @backward(%x: tensor<8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %part = sched.reduce_scatter %x dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    sched.add_to @g, %part : tensor<4xf32>
    %y = train.constant dense<3.0> : tensor<8xf32>
    %next = sched.reduce_scatter %y dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    sched.add_to @h, %next : tensor<4xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}
