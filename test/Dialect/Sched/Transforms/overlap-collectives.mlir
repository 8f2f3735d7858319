// RUN: windlass-opt %s -split-input-file -sched-overlap-collectives | FileCheck %s

// Each weight has 64 bytes: two are in flight at once.
module {
sched.program @program on <[#plan.axis<"data", 2>]> attributes {plan.prefetch_bytes = 128 : i64} {
  sched.resource parameter @a : tensor<2x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>, #plan.dim<[#plan.factor<4>]>]>
  sched.resource parameter @b : tensor<2x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>, #plan.dim<[#plan.factor<4>]>]>
  sched.resource parameter @c : tensor<2x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>, #plan.dim<[#plan.factor<4>]>]>
  sched.resource parameter @columns : tensor<4x2xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<4, ["data"]>]>]>
  sched.resource value @x : tensor<4x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<4>]>]>

  // CHECK: module
  // CHECK-NOT: plan.prefetch_bytes
  // CHECK-LABEL: func.func @forward
  // CHECK: sched.load @a : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
  // CHECK: %[[A:.*]] = sched.all_gather {{.*}}{plan.repeat = #plan.repeat<"h", 0>}
  // CHECK: sched.load @b : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
  // CHECK: %[[B:.*]] = sched.all_gather {{.*}}{plan.repeat = #plan.repeat<"h", 0>}
  // CHECK: %[[X:.*]] = sched.load @x
  // CHECK: %[[Y:.*]] = train.matmul %[[X]], %[[A]]
  // The third comes once the first is used: in the block of that use.
  // CHECK-NEXT: sched.load @c : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
  // CHECK-NEXT: %[[C:.*]] = sched.all_gather {{.*}}{plan.repeat = #plan.repeat<"h", 0>}
  // CHECK: %[[Z:.*]] = train.matmul %[[Y]], %[[B]]
  // CHECK: %[[V:.*]] = train.matmul %[[Z]], %[[C]]
  // Its blocks are columns, so a copy has to put them in order: it stays.
  // CHECK-NEXT: sched.load @columns
  // CHECK-NEXT: sched.all_gather
  // CHECK-NEXT: train.matmul
  func.func @forward() -> tensor<4x4xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %ap = sched.load @a : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %a = sched.all_gather %ap dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 0>} : tensor<2x4xf32> -> tensor<4x4xf32>
    %y = train.matmul %x, %a batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %bp = sched.load @b : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %b = sched.all_gather %bp dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<2x4xf32> -> tensor<4x4xf32>
    %z = train.matmul %y, %b batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %cp = sched.load @c : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 2>}
    %c = sched.all_gather %cp dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 2>} : tensor<2x4xf32> -> tensor<4x4xf32>
    %v = train.matmul %z, %c batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 2>}
    %dp = sched.load @columns : tensor<4x2xf32>
    %d = sched.all_gather %dp dim 1 over ["data"] : tensor<4x2xf32> -> tensor<4x4xf32>
    %w = train.matmul %v, %d batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    return %w : tensor<4x4xf32>
  }
}
}

// -----

// Without a window a scattered gradient is added where it is scattered.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.resource gradient @a.grad : tensor<2x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>, #plan.dim<[#plan.factor<4>]>]>
  sched.resource gradient @bias.grad : tensor<2xf32> of tensor<4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>]>
  sched.resource gradient @b.grad : tensor<2x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>, #plan.dim<[#plan.factor<4>]>]>
  // CHECK-LABEL: func.func @backward
  // CHECK: %[[A:.*]] = sched.reduce_scatter
  // CHECK-NEXT: sched.add_to @a.grad, %[[A]] : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
  // CHECK-NEXT: %[[BIAS:.*]] = sched.reduce_scatter
  // CHECK-NEXT: sched.add_to @bias.grad, %[[BIAS]] : tensor<2xf32> {plan.repeat = #plan.repeat<"h", 1>}
  // CHECK-NEXT: train.matmul
  // CHECK-NEXT: train.matmul
  // CHECK-NEXT: %[[B:.*]] = sched.reduce_scatter
  // CHECK-NEXT: sched.add_to @b.grad, %[[B]] : tensor<2x4xf32>
  // CHECK-NEXT: train.matmul
  // CHECK-NEXT: return
  func.func @backward(%g: tensor<4x4xf32>, %c: tensor<4xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a = sched.reduce_scatter %g dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<4x4xf32> -> tensor<2x4xf32>
    sched.add_to @a.grad, %a : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %bias = sched.reduce_scatter %c dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<4xf32> -> tensor<2xf32>
    sched.add_to @bias.grad, %bias : tensor<2xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %e = train.matmul %g, %g batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %h = train.matmul %g, %g batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %b = sched.reduce_scatter %h dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 0>} : tensor<4x4xf32> -> tensor<2x4xf32>
    sched.add_to @b.grad, %b : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %i = train.matmul %h, %h batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    return
  }
}
}

// -----

// With a window it is added once as many bytes are under way behind it: that of a bias is not enough, so another
// instance of a block adds it. The last ones are added at the end, outside of all blocks.
module {
sched.program @program on <[#plan.axis<"data", 2>]> attributes {plan.prefetch_bytes = 64 : i64} {
  sched.resource gradient @a.grad : tensor<2x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>, #plan.dim<[#plan.factor<4>]>]>
  sched.resource gradient @bias.grad : tensor<2xf32> of tensor<4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>]>
  sched.resource gradient @b.grad : tensor<2x4xf32> of tensor<4x4xf32> #plan.layout<[#plan.dim<[#plan.factor<4, ["data"]>]>, #plan.dim<[#plan.factor<4>]>]>
  // CHECK-LABEL: func.func @backward
  // CHECK: %[[A:.*]] = sched.reduce_scatter
  // CHECK-NEXT: %[[BIAS:.*]] = sched.reduce_scatter
  // CHECK-NEXT: train.matmul
  // CHECK-NEXT: train.matmul
  // CHECK-NEXT: %[[B:.*]] = sched.reduce_scatter
  // CHECK-NEXT: sched.add_to @a.grad, %[[A]] : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
  // CHECK-NEXT: sched.add_to @bias.grad, %[[BIAS]] : tensor<2xf32> {plan.repeat = #plan.repeat<"h", 0>}
  // CHECK-NEXT: train.matmul
  // CHECK-NEXT: sched.add_to @b.grad, %[[B]] : tensor<2x4xf32>{{$}}
  // CHECK-NEXT: return
  func.func @backward(%g: tensor<4x4xf32>, %c: tensor<4xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a = sched.reduce_scatter %g dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<4x4xf32> -> tensor<2x4xf32>
    sched.add_to @a.grad, %a : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %bias = sched.reduce_scatter %c dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<4xf32> -> tensor<2xf32>
    sched.add_to @bias.grad, %bias : tensor<2xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %e = train.matmul %g, %g batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %h = train.matmul %g, %g batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %b = sched.reduce_scatter %h dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 0>} : tensor<4x4xf32> -> tensor<2x4xf32>
    sched.add_to @b.grad, %b : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %i = train.matmul %h, %h batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    return
  }
}
}

// -----

// A sum that kernels add up and its reduction stand behind the last term, before the work that stood between.
module {
sched.program @program on <[#plan.axis<"model", 2>]> {
  // CHECK-LABEL: func.func @backward
  // CHECK: %[[A:.*]] = train.matmul %[[G:.*]], %[[W:.*]] batch
  // CHECK-NEXT: %[[B:.*]] = train.matmul %[[W]], %[[W]] batch
  // CHECK-NEXT: %[[SUM:.*]] = train.accumulate %[[A]], %[[B]]
  // CHECK-NEXT: %[[ALL:.*]] = sched.all_reduce sum %[[SUM]] {{.*}}plan.repeat = #plan.repeat<"h", 1>
  // CHECK-NEXT: %[[GRADIENT:.*]] = train.matmul %[[G]], %[[G]] batch
  // CHECK-NEXT: train.matmul %[[ALL]], %[[GRADIENT]] batch
  func.func @backward(%g: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a = train.matmul %g, %w batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %b = train.matmul %w, %w batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %gradient = train.matmul %g, %g batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %sum = train.accumulate %a, %b : tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %all = sched.all_reduce sum %sum over ["model"] {plan.repeat = #plan.repeat<"h", 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = train.matmul %all, %gradient batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    return %y : tensor<4x4xf32>
  }
}
}

// -----

// Weights on the host are copied to the device ahead of their use, alone or before their gather. A weight that the
// function changes stays where it is.
module {
sched.program @program on <[#plan.axis<"data", 2>]> attributes {plan.prefetch_bytes = 128 : i64} {
  sched.resource parameter @a : tensor<4x4xf32> of tensor<4x4xf32> <[<[<4>]>, <[<4>]>] memory = host>
  sched.resource parameter @b : tensor<2x4xf32> of tensor<4x4xf32> <[<[<4, ["data"]>]>, <[<4>]>] memory = host>
  sched.resource parameter @c : tensor<4x4xf32> of tensor<4x4xf32> <[<[<4>]>, <[<4>]>] memory = host>
  sched.resource master @d : tensor<4x4xf32> of tensor<4x4xf32> <[<[<4>]>, <[<4>]>] memory = host>
  sched.resource value @x : tensor<4x4xf32> of tensor<4x4xf32> <[<[<4>]>, <[<4>]>]>
  // CHECK-LABEL: func.func @forward
  // CHECK-NEXT: %[[AP:.*]] = sched.load @a
  // CHECK-NEXT: %[[A:.*]] = sched.move %[[AP]] to device
  // CHECK-NEXT: %[[BP:.*]] = sched.load @b
  // CHECK-NEXT: %[[BM:.*]] = sched.move %[[BP]] to device
  // CHECK-NEXT: %[[B:.*]] = sched.all_gather %[[BM]]
  // CHECK-NEXT: %[[X:.*]] = sched.load @x
  // CHECK-NEXT: %[[Y:.*]] = train.matmul %[[X]], %[[A]]
  // CHECK-NEXT: %[[CP:.*]] = sched.load @c
  // CHECK-NEXT: %[[C:.*]] = sched.move %[[CP]] to device
  // CHECK-NEXT: %[[Z:.*]] = train.matmul %[[Y]], %[[B]]
  // CHECK-NEXT: %[[V:.*]] = train.matmul %[[Z]], %[[C]]
  // CHECK-NEXT: %[[DP:.*]] = sched.load @d
  // CHECK-NEXT: %[[D:.*]] = sched.move %[[DP]] to device
  // CHECK-NEXT: train.matmul %[[V]], %[[D]]
  func.func @forward() -> tensor<4x4xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<4x4xf32>
    %ap = sched.load @a : tensor<4x4xf32>
    %a = sched.move %ap to device : tensor<4x4xf32>
    %y = train.matmul %x, %a batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %bp = sched.load @b : tensor<2x4xf32>
    %bm = sched.move %bp to device : tensor<2x4xf32>
    %b = sched.all_gather %bm dim 0 over ["data"] : tensor<2x4xf32> -> tensor<4x4xf32>
    %z = train.matmul %y, %b batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %cp = sched.load @c : tensor<4x4xf32>
    %c = sched.move %cp to device : tensor<4x4xf32>
    %v = train.matmul %z, %c batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %dp = sched.load @d : tensor<4x4xf32>
    %d = sched.move %dp to device : tensor<4x4xf32>
    %w = train.matmul %v, %d batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %there = sched.move %v to host : tensor<4x4xf32>
    sched.store @d, %there : tensor<4x4xf32>
    return %w : tensor<4x4xf32>
  }
}
}
