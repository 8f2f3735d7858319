// RUN: windlass-opt %s -split-input-file -sched-lower-to-commands -sched-verify-commands | FileCheck %s

// Scattered gradients that the host adds up. The compute stream goes on until two of them are on their way; then what
// the first scatter has read and written is free.
#shard = #plan.layout<[<[<2, ["data"]>]>, <[<8>]>] memory = host>
module {
sched.program @program on <[<"data", 2>]> {
  sched.resource gradient @a : tensor<1x8xf32> of tensor<2x8xf32> #shard
  sched.resource gradient @b : tensor<1x8xf32> of tensor<2x8xf32> #shard
  sched.resource gradient @c : tensor<1x8xf32> of tensor<2x8xf32> #shard
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
  func.func @forward() -> tensor<2x8xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %y = train.constant dense<2.0> : tensor<2x8xf32>
    return %y : tensor<2x8xf32>
  }
  // CHECK-LABEL: func.func @backward
  // CHECK: sched.launch_collective {{ *}}reduce_scatter
  // CHECK: sched.record [[SCATTERED:[0-9]+]] on @over_data
  // CHECK: sched.wait [[SCATTERED]] on @d2h
  // CHECK: sched.launch copy on @d2h
  // CHECK: sched.record [[COPIED:[0-9]+]] on @d2h
  // CHECK: sched.wait [[COPIED]] on @host
  // CHECK: sched.launch_map @identity_f32 on @host {{.*}} accumulate_after_first
  // CHECK-NOT: on @compute
  // CHECK: sched.launch softmax on @compute
  // CHECK-NOT: sched.wait {{.*}} on @compute
  // CHECK: sched.launch softmax on @compute
  // CHECK-NOT: sched.wait {{.*}} on @compute
  // CHECK: sched.launch copy on @d2h
  // CHECK: sched.wait [[SCATTERED]] on @compute
  // CHECK-NEXT: sched.wait [[COPIED]] on @compute
  func.func @backward(%y: tensor<2x8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a0 = train.softmax %y : tensor<2x8xf32>
    %a1 = sched.reduce_scatter %a0 dim 0 over ["data"] : tensor<2x8xf32> -> tensor<1x8xf32>
    %a2 = sched.move %a1 to host : tensor<1x8xf32>
    sched.add_to @a, %a2 : tensor<1x8xf32>
    %b0 = train.softmax %y : tensor<2x8xf32>
    %b1 = sched.reduce_scatter %b0 dim 0 over ["data"] : tensor<2x8xf32> -> tensor<1x8xf32>
    %b2 = sched.move %b1 to host : tensor<1x8xf32>
    sched.add_to @b, %b2 : tensor<1x8xf32>
    %c0 = train.softmax %y : tensor<2x8xf32>
    %c1 = sched.reduce_scatter %c0 dim 0 over ["data"] : tensor<2x8xf32> -> tensor<1x8xf32>
    %c2 = sched.move %c1 to host : tensor<1x8xf32>
    sched.add_to @c, %c2 : tensor<1x8xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  // CHECK-LABEL: func.func @update
  // CHECK: sched.launch square_sum on @host
  // CHECK: sched.launch square_sum on @host {{.*}} accumulate
  // CHECK: sched.launch copy on @h2d
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %a = sched.load @a : tensor<1x8xf32>
    %b = sched.load @b : tensor<1x8xf32>
    %sa = train.square_sum %a : tensor<1x8xf32> -> tensor<f32>
    %sb = train.square_sum %b : tensor<1x8xf32> -> tensor<f32>
    %s = train.accumulate %sa, %sb : tensor<f32>
    %there = sched.move %s to device : tensor<f32>
    sched.store @norm, %there : tensor<f32>
    return
  }
  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

// Two gradients come by one collective. The compute stream waits for it where it uses the first, and from then on the
// copy of the second to the host must be ordered behind that wait.
module {
sched.program @program on <[<"data", 2>]> {
  sched.resource gradient @a : tensor<2x8xf32> of tensor<2x8xf32> <[<[<2>]>, <[<8>]>]>
  sched.resource gradient @b : tensor<2x8xf32> of tensor<2x8xf32> <[<[<2>]>, <[<8>]>] memory = host>
  sched.resource gradient @c : tensor<1x8xf32> of tensor<1x8xf32> <[<[<1>]>, <[<8>]>] memory = host>
  func.func @forward() -> tensor<1x8xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %y = train.constant dense<2.0> : tensor<1x8xf32>
    return %y : tensor<1x8xf32>
  }
  // CHECK-LABEL: func.func @backward
  // CHECK: sched.launch_collective {{ *}}all_gather
  // CHECK: sched.record [[GATHERED:[0-9]+]] on @over_data
  // CHECK: sched.wait [[GATHERED]] on @compute
  // CHECK: sched.record [[WAITED:[0-9]+]] on @compute
  // CHECK-NEXT: sched.wait [[WAITED]] on @d2h
  // CHECK: sched.launch copy on @d2h
  func.func @backward(%y: tensor<1x8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a0 = train.softmax %y : tensor<1x8xf32>
    %b0 = train.softmax %a0 : tensor<1x8xf32>
    %c = sched.move %a0 to host : tensor<1x8xf32>
    sched.add_to @c, %c : tensor<1x8xf32>
    %a1, %b1 = sched.all_gather %a0, %b0 dim 0 over ["data"] : tensor<1x8xf32>, tensor<1x8xf32> -> tensor<2x8xf32>, tensor<2x8xf32>
    sched.add_to @a, %a1 : tensor<2x8xf32>
    %b2 = sched.move %b1 to host : tensor<2x8xf32>
    sched.add_to @b, %b2 : tensor<2x8xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

// A sum of squares that the host makes goes to the device. The next copy to the host may have its place, so that it
// waits for the compute stream, which has waited for the sum.
module {
sched.program @program on <[]> {
  sched.resource gradient @a : tensor<2x8xf32> of tensor<2x8xf32> <[<[<2>]>, <[<8>]>] memory = host>
  sched.resource gradient @b : tensor<2x8xf32> of tensor<2x8xf32> <[<[<2>]>, <[<8>]>]>
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %y = train.constant dense<2.0> : tensor<2x8xf32>
    sched.add_to @b, %y : tensor<2x8xf32>
    %there = sched.move %y to host : tensor<2x8xf32>
    sched.add_to @a, %there : tensor<2x8xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  // CHECK-LABEL: func.func @update
  // CHECK: %[[PLACE:.*]] = sched.buffer @host_arena[[[#AT:]]] : memref<f32>
  // CHECK: sched.launch square_sum on @host ins({{.*}}) outs(%[[PLACE]])
  // CHECK: sched.launch copy on @h2d
  // CHECK: sched.record [[THERE:[0-9]+]] on @h2d
  // CHECK: sched.wait [[THERE]] on @compute
  // CHECK: sched.record [[USED:[0-9]+]] on @compute
  // CHECK: sched.wait [[USED]] on @d2h
  // CHECK: sched.buffer @host_arena[[[#AT]]] : memref<2x8xf32>
  // CHECK-NEXT: sched.launch copy on @d2h
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %a = sched.load @a : tensor<2x8xf32>
    %s = train.square_sum %a : tensor<2x8xf32> -> tensor<f32>
    %sd = sched.move %s to device : tensor<f32>
    %row = train.reshape %sd : tensor<f32> -> tensor<1xf32>
    %used = train.softmax %row : tensor<1xf32>
    %n = train.reshape %used : tensor<1xf32> -> tensor<f32>
    sched.store @norm, %n : tensor<f32>
    %b = sched.load @b : tensor<2x8xf32>
    %bh = sched.move %b to host : tensor<2x8xf32>
    sched.add_to @a, %bh : tensor<2x8xf32>
    return
  }
  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}
