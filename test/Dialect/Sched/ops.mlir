// RUN: windlass-opt %s | windlass-opt | FileCheck %s
// RUN: windlass-opt %s --mlir-print-op-generic | windlass-opt | FileCheck %s
// RUN: windlass-opt %s --emit-bytecode | windlass-opt | FileCheck %s

// sched.async: resources, collectives on local tensors, maps and the schedule of a rank.

// CHECK-LABEL: module @async
module @async {
sched.program @program on <[<"data", 2>, <"model", 2>]> {
  // CHECK: sched.resource input @x : tensor<4x8xf32> of tensor<8x8xf32> <[<[<8, ["data"]>]>, <[<8>]>]> {logical_name = "x"}
  sched.resource input @x : tensor<4x8xf32> of tensor<8x8xf32> <[<[<8, ["data"]>]>, <[<8>]>]> {logical_name = "x"}
  // CHECK: sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {logical_name = "fc.weight"}
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {logical_name = "fc.weight"}
  // CHECK: sched.resource master @m : tensor<3xf32> of tensor<3x2xf32> <[<[<3>]>, <[<2>]>] flat = ["data"]> {of = @w}
  sched.resource master @m : tensor<3xf32> of tensor<3x2xf32> <[<[<3>]>, <[<2>]>] flat = ["data"]> {of = @w}
  // CHECK: sched.resource gradient @g : tensor<8xf32> of tensor<8xf32> <[<[<8>]>], unreduced = [<"data", sum>]> {of = @w}
  sched.resource gradient @g : tensor<8xf32> of tensor<8xf32> <[<[<8>]>], unreduced = [<"data", sum>]> {of = @w}
  // CHECK: sched.resource reduced @r : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {of = @w}
  sched.resource reduced @r : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {of = @w}
  // CHECK: sched.resource state @s : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {logical_name = "fc.weight/exp_avg", of = @w}
  sched.resource state @s : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {logical_name = "fc.weight/exp_avg", of = @w}
  // CHECK: sched.resource value @v : tensor<2xi64> of tensor<2xi64> <[<[<2>]>]>
  sched.resource value @v : tensor<2xi64> of tensor<2xi64> <[<[<2>]>]>
  // CHECK: sched.resource scalar @lr : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter learning_rate>}
  sched.resource scalar @lr : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter learning_rate>}
  // CHECK: sched.resource loss @loss : tensor<f32> of tensor<f32> <[]>
  sched.resource loss @loss : tensor<f32> of tensor<f32> <[]>
  // CHECK: sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
  // CHECK: sched.resource evaluate @e : tensor<f32> of tensor<f32> <[]>
  sched.resource evaluate @e : tensor<f32> of tensor<f32> <[]>

  func.func private @scale(%x: f32, %y: f32) -> (f32, f32) attributes {sched.scalar_function} {
    %0 = train.mul %x, %y : f32
    return %0, %x : f32, f32
  }
  func.func private @half() -> f32 attributes {sched.scalar_function} {
    %0 = arith.constant 5.0e-01 : f32
    return %0 : f32
  }

  // CHECK-LABEL: func.func @forward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    // CHECK: %[[X:.*]] = sched.load @x : tensor<4x8xf32> {train.id = "x"}
    %x = sched.load @x : tensor<4x8xf32> {train.id = "x"}
    // CHECK: %[[W:.*]] = sched.load @w : tensor<8xf32>
    %w = sched.load @w : tensor<8xf32>
    // CHECK: %[[Y:.*]]:2 = sched.map @scale(%[[X]], %[[W]]) dims {{\[}}array<i64: 0, 1>, array<i64: 1>] {plan.repeat = #plan.repeat<"layers", 0>} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    %y:2 = sched.map @scale(%x, %w) dims [array<i64: 0, 1>, array<i64: 1>] {plan.repeat = #plan.repeat<"layers", 0>} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    // CHECK: %[[H:.*]] = sched.map @half() dims [] : () -> tensor<f32>
    %h = sched.map @half() dims [] : () -> tensor<f32>
    // CHECK: sched.all_reduce max %[[H]] over ["model"] : (tensor<f32>) -> tensor<f32>
    %a = sched.all_reduce max %h over ["model"] : (tensor<f32>) -> tensor<f32>
    // CHECK: sched.all_reduce sum %[[W]], %[[H]] over ["data", "model"] : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
    %b:2 = sched.all_reduce sum %w, %h over ["data", "model"] : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
    // CHECK: %[[G:.*]] = sched.all_gather %[[X]] dim 0 over ["data"] : tensor<4x8xf32> -> tensor<8x8xf32>
    %g = sched.all_gather %x dim 0 over ["data"] : tensor<4x8xf32> -> tensor<8x8xf32>
    // CHECK: sched.all_gather %[[X]], %[[G]] dim 0 over ["data"] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>, tensor<16x8xf32>
    %unit:2 = sched.all_gather %x, %g dim 0 over ["data"] : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>, tensor<16x8xf32>
    // CHECK: sched.reduce_scatter %[[G]], %[[G]] dim 0 over ["data"] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>, tensor<4x8xf32>
    %halves:2 = sched.reduce_scatter %g, %g dim 0 over ["data"] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>, tensor<4x8xf32>
    // CHECK: sched.reduce_scatter %[[G]] dim 1 over ["model"] {train.id = "r"} : tensor<8x8xf32> -> tensor<8x4xf32>
    %r = sched.reduce_scatter %g dim 1 over ["model"] {train.id = "r"} : tensor<8x8xf32> -> tensor<8x4xf32>
    // CHECK: sched.all_to_all %[[X]] split 0 concat 1 over ["data"] : tensor<4x8xf32> -> tensor<2x16xf32>
    %t = sched.all_to_all %x split 0 concat 1 over ["data"] : tensor<4x8xf32> -> tensor<2x16xf32>
    // CHECK: sched.permute %[[X]] to [1, 0, 3, 2] over ["data", "model"] : tensor<4x8xf32> -> tensor<4x8xf32>
    %p = sched.permute %x to [1, 0, 3, 2] over ["data", "model"] : tensor<4x8xf32> -> tensor<4x8xf32>
    %choices = train.iota 0 start 0.0 step 1.0 : tensor<8x2xi64>
    // CHECK: %[[ROWS:.*]] = sched.gather_rows %[[X]] for %[[CHOICES:.*]] of 4 over ["data"] : (tensor<4x8xf32>, tensor<8x2xi64>) -> tensor<8x8xf32>
    %rows = sched.gather_rows %x for %choices of 4 over ["data"] : (tensor<4x8xf32>, tensor<8x2xi64>) -> tensor<8x8xf32>
    // CHECK: sched.scatter_rows %[[ROWS]] for %[[CHOICES]] of 4 over ["data"] {train.id = "s"} : (tensor<8x8xf32>, tensor<8x2xi64>) -> tensor<4x8xf32>
    %sums = sched.scatter_rows %rows for %choices of 4 over ["data"] {train.id = "s"} : (tensor<8x8xf32>, tensor<8x2xi64>) -> tensor<4x8xf32>
    // CHECK: sched.own_part %[[G]] dim 0 over ["data"] : tensor<8x8xf32> -> tensor<4x8xf32>
    %o = sched.own_part %g dim 0 over ["data"] : tensor<8x8xf32> -> tensor<4x8xf32>
    // CHECK: %[[M:.*]] = sched.move %[[W]] to host : tensor<8xf32>
    %m = sched.move %w to host : tensor<8xf32>
    // CHECK: sched.move %[[M]] to device {train.id = "m"} : tensor<8xf32>
    %n = sched.move %m to device {train.id = "m"} : tensor<8xf32>
    // CHECK: sched.store @r, %[[W]] : tensor<8xf32>
    sched.store @r, %w : tensor<8xf32>
    // CHECK: sched.add_to @g, %[[W]] : tensor<8xf32> {train.id = "g"}
    sched.add_to @g, %w : tensor<8xf32> {train.id = "g"}
    return
  }

  // CHECK: sched.schedule [#sched.action<repeat x 4 of 2>, #sched.action<forward>, #sched.action<backward chunk 1>, #sched.action<reduce>, #sched.action<update>]
  sched.schedule [#sched.action<repeat x 4 of 2>, #sched.action<forward chunk 0 x 1 of 0>, #sched.action<backward chunk 1>, #sched.action<reduce>, #sched.action<update>]
  // CHECK: sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1 micro_batch 3>, #sched.action<input_gradient chunk 1 micro_batch 0>, #sched.action<send chunk 1 peer 0 micro_batch 0>, #sched.action<weight_gradient chunk 1>]
  sched.schedule [#sched.action<receive chunk 1 peer 0 micro_batch -1>, #sched.action<forward chunk 1 micro_batch 3>, #sched.action<input_gradient chunk 1 peer -1 micro_batch 0>, #sched.action<send chunk 1 peer 0 micro_batch 0>, #sched.action<weight_gradient chunk 1>]
}
}

// sched.cmd: arenas, communicators, buffers and commands.

// CHECK-LABEL: module @cmd
module @cmd {
sched.program @program on <[<"data", 2>]> {
  // CHECK: sched.arena @device_arena device bytes 4096 {sched.largest_live_set = 512 : i64}
  sched.arena @device_arena device bytes 4096 {sched.largest_live_set = 512 : i64}
  // CHECK: sched.arena @host_arena host bytes 64
  sched.arena @host_arena host bytes 64
  // CHECK: sched.slots @slots chunk 1 in @device_arena[512] count 4 bytes 128
  sched.slots @slots chunk 1 in @device_arena[512] count 4 bytes 128
  // CHECK: sched.arena @file disk bytes 0
  sched.arena @file disk bytes 0
  // CHECK: sched.stream @compute compute
  sched.stream @compute compute
  // CHECK: sched.stream @over_data communicator
  sched.stream @over_data communicator
  // CHECK: sched.stream @over_data_again communicator
  sched.stream @over_data_again communicator
  // CHECK: sched.stream @fetch h2d
  sched.stream @fetch h2d
  // CHECK: sched.stream @flush d2h
  sched.stream @flush d2h
  // CHECK: sched.stream @host host {sched.note}
  sched.stream @host host {sched.note}
  // CHECK: sched.communicator @c0 over ["data"] on @over_data{{$}}
  sched.communicator @c0 over ["data"] on @over_data
  // CHECK: sched.communicator @c1 over ["data"] on @over_data_again exchanges
  sched.communicator @c1 over ["data"] on @over_data_again exchanges
  // CHECK: sched.resource value @v : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {arena = @device_arena, offset = 256 : i64}
  sched.resource value @v : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {arena = @device_arena, offset = 256 : i64}
  func.func private @twice(%x: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %x : f32
    return %0 : f32
  }

  // CHECK-LABEL: func.func @forward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    // CHECK: %[[A:.*]] = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 1 : i64}
    %a = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 1 : i64}
    // CHECK: %[[B:.*]] = sched.buffer @device_arena[512] : memref<8xf32, strided<[0]>>
    %b = sched.buffer @device_arena[512] : memref<8xf32, strided<[0]>>
    // CHECK: %[[C:.*]] = sched.buffer @device_arena[1024] : memref<16xf32>
    %c = sched.buffer @device_arena[1024] : memref<16xf32>
    // CHECK: %[[D:.*]] = sched.buffer @device_arena[2048] : memref<4xf32>
    %d = sched.buffer @device_arena[2048] : memref<4xf32>
    // CHECK: sched.launch fill on @compute ins() outs(%[[A]]) {value = 0.000000e+00 : f64} : () -> memref<8xf32>
    sched.launch fill on @compute ins() outs(%a) {value = 0.0 : f64} : () -> memref<8xf32>
    // CHECK: sched.launch reduce on @compute ins(%[[B]]) outs(%[[A]]) {kind = #train<reduction sum>} accumulate {train.id = "e"} : (memref<8xf32, strided<[0]>>) -> memref<8xf32>
    sched.launch reduce on @compute ins(%b) outs(%a) {kind = #train<reduction sum>} accumulate {train.id = "e"} : (memref<8xf32, strided<[0]>>) -> memref<8xf32>
    // CHECK: sched.launch reduce on @compute ins(%[[B]]) outs(%[[A]]) {kind = #train<reduction sum>} accumulate_after_first : (memref<8xf32, strided<[0]>>) -> memref<8xf32>
    sched.launch reduce on @compute ins(%b) outs(%a) {kind = #train<reduction sum>} accumulate_after_first : (memref<8xf32, strided<[0]>>) -> memref<8xf32>
    // CHECK: sched.launch_map @twice on @compute ins(%[[B]]) outs(%[[A]]) : (memref<8xf32, strided<[0]>>) -> memref<8xf32>
    sched.launch_map @twice on @compute ins(%b) outs(%a) : (memref<8xf32, strided<[0]>>) -> memref<8xf32>
    // CHECK: sched.launch_map @twice on @compute ins(%[[B]]) outs(%[[A]]) accumulate_after_first {plan.repeat = #plan.repeat<"layers", 0>} : (memref<8xf32, strided<[0]>>) -> memref<8xf32>
    sched.launch_map @twice on @compute ins(%b) outs(%a) accumulate_after_first {plan.repeat = #plan.repeat<"layers", 0>} : (memref<8xf32, strided<[0]>>) -> memref<8xf32>
    // CHECK: sched.record 0 on @compute
    sched.record 0 on @compute
    // CHECK: sched.wait 0 on @over_data {plan.repeat = #plan.repeat<"layers", 0>}
    sched.wait 0 on @over_data {plan.repeat = #plan.repeat<"layers", 0>}
    // CHECK: sched.launch_collective all_reduce sum @c0, %[[A]] -> %[[A]] : memref<8xf32> -> memref<8xf32>
    sched.launch_collective all_reduce sum @c0, %a -> %a : memref<8xf32> -> memref<8xf32>
    // CHECK: sched.launch_collective all_gather sum @c0, %[[A]] -> %[[C]] : memref<8xf32> -> memref<16xf32>
    sched.launch_collective all_gather sum @c0, %a -> %c : memref<8xf32> -> memref<16xf32>
    // CHECK: sched.launch_collective all_gather sum @c0, %[[A]], %[[D]] -> %[[C]], %[[A]] : memref<8xf32>, memref<4xf32> -> memref<16xf32>, memref<8xf32>
    sched.launch_collective all_gather sum @c0, %a, %d -> %c, %a : memref<8xf32>, memref<4xf32> -> memref<16xf32>, memref<8xf32>
    // CHECK: sched.launch_collective reduce_scatter max @c0, %[[A]] -> %[[D]] {train.id = "s"} : memref<8xf32> -> memref<4xf32>
    sched.launch_collective reduce_scatter max @c0, %a -> %d {train.id = "s"} : memref<8xf32> -> memref<4xf32>
    // CHECK: sched.launch_collective all_to_all sum @c1, %[[A]] -> %[[A]] : memref<8xf32> -> memref<8xf32>
    sched.launch_collective all_to_all sum @c1, %a -> %a : memref<8xf32> -> memref<8xf32>
    %part = sched.buffer @device_arena[0] : memref<2x4xf32>
    %all = sched.buffer @device_arena[0] : memref<4x4xf32>
    %scratch = sched.buffer @device_arena[0] : memref<20xf32>
    %choices = sched.buffer @device_arena[0] : memref<4x1xi64>
    // CHECK: sched.launch_collective gather_rows sum @c1, %[[PART:.*]], %[[CHOICES:.*]] -> %[[ALL:.*]], %[[SCRATCH:.*]] experts 2 : memref<2x4xf32>, memref<4x1xi64> -> memref<4x4xf32>, memref<20xf32>
    sched.launch_collective gather_rows sum @c1, %part, %choices -> %all, %scratch experts 2 : memref<2x4xf32>, memref<4x1xi64> -> memref<4x4xf32>, memref<20xf32>
    // CHECK: sched.launch_collective scatter_rows sum @c1, %[[ALL]], %[[CHOICES]] -> %[[PART]], %[[SCRATCH]], %[[ALL]] experts 2
    sched.launch_collective scatter_rows sum @c1, %all, %choices -> %part, %scratch, %all experts 2 : memref<4x4xf32>, memref<4x1xi64> -> memref<2x4xf32>, memref<20xf32>, memref<4x4xf32>
    // CHECK: sched.launch_collective permute sum @c1, %[[A]] -> %[[A]] to [1, 0] : memref<8xf32> -> memref<8xf32>
    sched.launch_collective permute sum @c1, %a -> %a to [1, 0] : memref<8xf32> -> memref<8xf32>
    return
  }
}
}

// Two positions with a chunk of each of two chains.

// CHECK-LABEL: module @positions attributes {sched.placement = #sched.placement<[0, 1, 0, 1] chains[0, 2]>}
module @positions attributes {sched.placement = #sched.placement<[0, 1, 0, 1] chains [0, 2]>} {
// CHECK: sched.program @first on <[]> {
sched.program @first on <[]> {
  // CHECK: sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {chunk = 2 : i64}
  sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {chunk = 2 : i64}
  // CHECK: sched.resource sent @y : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {peer = 1 : i64}
  sched.resource sent @y : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {peer = 1 : i64}
}
// CHECK: sched.program @second position 1 on <[<"data", 2>]> attributes {plan.prefetch_bytes = 8 : i64} {
sched.program @second position 1 on <[<"data", 2>]> attributes {plan.prefetch_bytes = 8 : i64} {
  // CHECK: sched.resource received @y : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource received @y : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {chunk = 1 : i64, peer = 0 : i64}
}
}
