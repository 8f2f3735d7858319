// RUN: windlass-opt %s -split-input-file -sched-fuse-elementwise -sched-lower-to-commands -sched-verify-commands | FileCheck %s
// Collectives inside functions: blocks of members come first in memory, layouts are views around that.

module {
sched.program @program on <[#plan.axis<"data", 2>, #plan.axis<"model", 2>]> {
  sched.resource parameter @w : tensor<4x6xf32> of tensor<4x12xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<12, ["model"]>]>]>
  sched.resource value @whole : tensor<4x12xf32> of tensor<4x12xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<12>]>]>
  sched.resource value @part : tensor<2x12xf32> of tensor<4x12xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["model"]>]>, #plan.dim<[#plan.factor<12>]>]>
  sched.resource value @turned : tensor<2x12xf32> of tensor<4x12xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["model"]>]>, #plan.dim<[#plan.factor<12>]>]>
  sched.resource value @own : tensor<4x6xf32> of tensor<4x12xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<12, ["model"]>]>]>

  sched.resource value @swapped : tensor<4x6xf32> of tensor<4x12xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<12, ["model"]>]>]>

  // What sends between pairs says so: libraries keep more memory for that.
  // CHECK: sched.communicator @communicator_0 over ["model"] on @over_model exchanges{{$}}
  // CHECK: sched.communicator @communicator_1 over ["data"] on @over_data{{$}}
  // CHECK-LABEL: func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
    // A gather along the last dim: blocks [2, 4, 6] are copied to their places in [4, 2, 6].
    // CHECK: sched.record [[#E:]] on @compute
    // CHECK-NEXT: sched.wait [[#E]] on @over_model
    // CHECK: sched.launch_collective{{ +}}all_gather{{ +}}sum @communicator_0, %[[W:.*]] -> %[[BLOCKS:[0-9]+]] {train.id = "w"} : memref<4x6xf32> -> memref<2x4x6xf32>
    // CHECK-NEXT: sched.record [[#R:]] on @over_model
    // CHECK: sched.wait [[#R]] on @compute
    // CHECK: sched.launch copy on @compute ins(%[[BLOCKS]]) outs(%{{.*}}) {} {train.id = "w"} : (memref<2x4x6xf32>) -> memref<2x4x6xf32, strided<[6, 12, 1]>>
    %w = sched.load @w : tensor<4x6xf32>
    %g = sched.all_gather %w dim 1 over ["model"] : tensor<4x6xf32> -> tensor<4x12xf32>
    sched.store @whole, %g : tensor<4x12xf32>
    // A scatter along the first dim needs no copy: its blocks are in order, and what it makes is received where it is
    // to stand.
    // CHECK: %[[PART:.*]] = sched.buffer @device_arena[320] : memref<2x12xf32>
    // CHECK: sched.launch_collective{{ +}}reduce_scatter{{ +}}sum @communicator_1, %{{.*}} -> %[[PART]] {{.*}}: memref<2x2x12xf32> -> memref<2x12xf32>
    // CHECK-NOT: outs(%[[PART]])
    %s = sched.reduce_scatter %g dim 0 over ["data"] : tensor<4x12xf32> -> tensor<2x12xf32>
    sched.store @part, %s : tensor<2x12xf32>
    // An exchange: rows are split, columns joined.
    // CHECK: sched.launch_collective{{ +}}all_to_all{{ +}}sum @communicator_0, %{{.*}} : memref<2x2x6xf32> -> memref<2x2x6xf32>
    %t = sched.all_to_all %w split 0 concat 1 over ["model"] : tensor<4x6xf32> -> tensor<2x12xf32>
    sched.store @turned, %t : tensor<2x12xf32>
    // The own part along the columns.
    // CHECK: sched.launch own_part {{.*}} {axes = array<i64: 1>} {train.id = "w"} : (memref<2x4x6xf32, strided<[6, 12, 1]>>) -> memref<4x6xf32>
    %o = sched.own_part %g dim 1 over ["model"] : tensor<4x12xf32> -> tensor<4x6xf32>
    sched.store @own, %o : tensor<4x6xf32>
    // Members change places.
    // CHECK: sched.launch_collective{{ +}}permute{{ +}}sum @communicator_0, %{{.*}} -> %{{.*}} to [1, 0] {train.id = "w"} : memref<4x6xf32> -> memref<4x6xf32>
    // CHECK-NOT: sched.launch
    // CHECK: return
    %p = sched.permute %w to [1, 0] over ["model"] : tensor<4x6xf32> -> tensor<4x6xf32>
    sched.store @swapped, %p : tensor<4x6xf32>
    return
  }
}
}

// -----

// The stream of operators waits for a scattered gradient where that is added, not where it is scattered.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.resource value @x : tensor<4x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<4>]>]>
  sched.resource value @z : tensor<4x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<4>]>]>
  sched.resource value @y : tensor<4x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<4>]>]>
  sched.resource gradient @a.grad : tensor<8xf32> of tensor<16xf32> #plan.layout<[#plan.dim<[#plan.factor<16, ["data"]>]>]>
  // CHECK-LABEL: func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
  // CHECK: sched.launch_collective{{ +}}reduce_scatter{{ +}}sum @communicator_0, %{{.*}} -> %{{.*}} : memref
  // CHECK-NEXT: sched.record [[#E:]] on @over_data
  // CHECK-NOT: sched.wait
  // CHECK: sched.launch matmul
  // CHECK: sched.wait [[#E]] on @compute
  // CHECK: sched.launch_map {{.*}} accumulate_after_first
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.load @x : tensor<4x4xf32>
    %g = train.reshape %x : tensor<4x4xf32> -> tensor<2x8xf32>
    %a = sched.reduce_scatter %g dim 0 over ["data"] : tensor<2x8xf32> -> tensor<1x8xf32>
    %z = sched.load @z : tensor<4x4xf32>
    %y = train.matmul %z, %z batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    sched.store @y, %y : tensor<4x4xf32>
    %v = train.reshape %a : tensor<1x8xf32> -> tensor<8xf32>
    sched.add_to @a.grad, %v : tensor<8xf32>
    return
  }
}
}
