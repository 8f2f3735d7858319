// RUN: windlass-opt %s -split-input-file -sched-join-collectives | FileCheck %s

// A unit has 128 bytes: two weights of 64 do not leave room for the bias between them and a third.
#rows = #plan.layout<[<[<4, ["data"]>]>, <[<4>]>]>
#part = #plan.layout<[<[<4, ["data"]>]>]>
#whole = #plan.layout<[<[<4>]>, <[<4>]>]>
module {
sched.program @program on <[<"data", 2>]> attributes {plan.unit_bytes = 128 : i64} {
  sched.resource parameter @a : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource parameter @bias : tensor<2xf32> of tensor<4xf32> #part
  sched.resource parameter @b : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource parameter @c : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource value @x : tensor<4x4xf32> of tensor<4x4xf32> #whole

  // CHECK-LABEL: func.func @forward
  // CHECK-NEXT: %[[X:.*]] = sched.load @x
  // CHECK-NEXT: %[[A:.*]] = sched.load @a
  // CHECK-NEXT: %[[BIAS:.*]] = sched.load @bias
  // CHECK-NEXT: %[[FLAT:.*]] = train.reshape %[[BIAS]]
  // CHECK-NEXT: %[[UNIT:.*]]:2 = sched.all_gather %[[A]], %[[FLAT]] dim 0 over ["data"] {train.id = "read.0 and 1 more"} : tensor<2x4xf32>, tensor<2x1xf32> -> tensor<4x4xf32>, tensor<4x1xf32>
  // CHECK-NEXT: train.matmul %[[X]], %[[UNIT]]#0
  // CHECK-NEXT: train.reshape %[[UNIT]]#1
  // CHECK: %[[B:.*]] = sched.load @b
  // CHECK-NEXT: %[[C:.*]] = sched.load @c
  // CHECK-NEXT: %[[LAST:.*]]:2 = sched.all_gather %[[B]], %[[C]] dim 0 over ["data"] : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<4x4xf32>, tensor<4x4xf32>
  // CHECK-NEXT: train.matmul {{.*}}, %[[LAST]]#0
  // CHECK-NEXT: train.matmul {{.*}}, %[[LAST]]#1
  func.func @forward() -> tensor<4x4xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<4x4xf32>
    %ap = sched.load @a : tensor<2x4xf32>
    %a = sched.all_gather %ap dim 0 over ["data"] {train.id = "read.0"} : tensor<2x4xf32> -> tensor<4x4xf32>
    %y = train.matmul %x, %a batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %biasp = sched.load @bias : tensor<2xf32>
    %flat = train.reshape %biasp : tensor<2xf32> -> tensor<2x1xf32>
    %bias = sched.all_gather %flat dim 0 over ["data"] {train.id = "read.1"} : tensor<2x1xf32> -> tensor<4x1xf32>
    %row = train.reshape %bias : tensor<4x1xf32> -> tensor<4xf32>
    %z = train.broadcast %row dims [1] : tensor<4xf32> -> tensor<4x4xf32>
    %bp = sched.load @b : tensor<2x4xf32>
    %b = sched.all_gather %bp dim 0 over ["data"] : tensor<2x4xf32> -> tensor<4x4xf32>
    %v = train.matmul %y, %b batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %cp = sched.load @c : tensor<2x4xf32>
    %c = sched.all_gather %cp dim 0 over ["data"] : tensor<2x4xf32> -> tensor<4x4xf32>
    %w = train.matmul %v, %c batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %sum = train.add %z, %w : tensor<4x4xf32>
    return %sum : tensor<4x4xf32>
  }
}
}

// -----

// A gather that stands before the one that is used first moves behind, and so does the view of its result.
#rows = #plan.layout<[<[<4, ["data"]>]>, <[<4>]>]>
#part = #plan.layout<[<[<4, ["data"]>]>]>
#whole = #plan.layout<[<[<4>]>, <[<4>]>]>
module {
sched.program @program on <[<"data", 2>]> attributes {plan.unit_bytes = 128 : i64} {
  sched.resource parameter @a : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource parameter @bias : tensor<2xf32> of tensor<4xf32> #part
  sched.resource value @x : tensor<4x4xf32> of tensor<4x4xf32> #whole

  // CHECK-LABEL: func.func @forward
  // CHECK: %[[UNIT:.*]]:2 = sched.all_gather
  // CHECK-NEXT: %[[BIAS:.*]] = train.reshape %[[UNIT]]#1 : tensor<4x1xf32> -> tensor<4xf32>
  // CHECK-NEXT: train.matmul %{{.*}}, %[[UNIT]]#0
  // CHECK-NEXT: train.broadcast %[[BIAS]]
  func.func @forward() -> tensor<4x4xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<4x4xf32>
    %biasp = sched.load @bias : tensor<2xf32>
    %flat = train.reshape %biasp : tensor<2xf32> -> tensor<2x1xf32>
    %bias = sched.all_gather %flat dim 0 over ["data"] : tensor<2x1xf32> -> tensor<4x1xf32>
    %row = train.reshape %bias : tensor<4x1xf32> -> tensor<4xf32>
    %ap = sched.load @a : tensor<2x4xf32>
    %a = sched.all_gather %ap dim 0 over ["data"] : tensor<2x4xf32> -> tensor<4x4xf32>
    %y = train.matmul %x, %a batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %z = train.broadcast %row dims [1] : tensor<4xf32> -> tensor<4x4xf32>
    %sum = train.add %y, %z : tensor<4x4xf32>
    return %sum : tensor<4x4xf32>
  }
}
}

// -----

// Left alone: weights of two instances of a block, one whose blocks a copy puts in order, one over other axes, a value
// that is no weight, and one that the function changes.
#rows = #plan.layout<[<[<4, ["data"]>]>, <[<4>]>]>
#columns = #plan.layout<[<[<4>]>, <[<4, ["data"]>]>]>
#model = #plan.layout<[<[<4, ["model"]>]>, <[<4>]>]>
module {
sched.program @program on <[<"data", 2>, <"model", 2>]> attributes {plan.unit_bytes = 4096 : i64} {
  sched.resource parameter @a : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource parameter @b : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource parameter @columns : tensor<4x2xf32> of tensor<4x4xf32> #columns
  sched.resource parameter @other : tensor<2x4xf32> of tensor<4x4xf32> #model
  sched.resource state @changed : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource value @x : tensor<2x4xf32> of tensor<4x4xf32> #rows

  // CHECK-LABEL: func.func @forward
  // CHECK-NOT: all_gather {{.*}},
  // CHECK-COUNT-6: sched.all_gather %{{[a-z0-9_]+}} dim
  // CHECK-NOT: all_gather
  // CHECK: return
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %ap = sched.load @a : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 0>}
    %a = sched.all_gather %ap dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 0>} : tensor<2x4xf32> -> tensor<4x4xf32>
    %bp = sched.load @b : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %b = sched.all_gather %bp dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<2x4xf32> -> tensor<4x4xf32>
    %cp = sched.load @columns : tensor<4x2xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %c = sched.all_gather %cp dim 1 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<4x2xf32> -> tensor<4x4xf32>
    %op = sched.load @other : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %o = sched.all_gather %op dim 0 over ["model"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<2x4xf32> -> tensor<4x4xf32>
    %x = sched.load @x : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %exp = train.exp %x : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %v = sched.all_gather %exp dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<2x4xf32> -> tensor<4x4xf32>
    %s = sched.load @changed : tensor<2x4xf32> {plan.repeat = #plan.repeat<"h", 1>}
    %t = sched.all_gather %s dim 0 over ["data"] {plan.repeat = #plan.repeat<"h", 1>} : tensor<2x4xf32> -> tensor<4x4xf32>
    sched.store @changed, %x : tensor<2x4xf32>
    %0 = train.add %a, %b : tensor<4x4xf32>
    %1 = train.add %c, %o : tensor<4x4xf32>
    %2 = train.add %v, %t : tensor<4x4xf32>
    return
  }
}
}

// -----

// Gradients are scattered where the last of a unit is there, and added behind that. One that an operator reads is
// scattered by itself.
#rows = #plan.layout<[<[<4, ["data"]>]>, <[<4>]>]>
module {
sched.program @program on <[<"data", 2>]> attributes {plan.unit_bytes = 128 : i64} {
  sched.resource gradient @a.grad : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource gradient @b.grad : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource gradient @c.grad : tensor<2x4xf32> of tensor<4x4xf32> #rows
  sched.resource gradient @d.grad : tensor<2x4xf32> of tensor<4x4xf32> #rows

  // CHECK-LABEL: func.func @backward
  // CHECK-SAME: %[[G:.*]]: tensor<4x4xf32>)
  // CHECK-NEXT: %[[B:.*]] = train.matmul
  // CHECK-NEXT: %[[UNIT:.*]]:2 = sched.reduce_scatter %[[G]], %[[B]] dim 0 over ["data"] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>, tensor<2x4xf32>
  // CHECK-NEXT: %[[T:.*]] = train.transpose %[[UNIT]]#0
  // CHECK-NEXT: %[[U:.*]] = train.transpose %[[T]]
  // CHECK-NEXT: sched.add_to @a.grad, %[[U]]
  // CHECK-NEXT: sched.add_to @b.grad, %[[UNIT]]#1
  // CHECK-NEXT: %[[C:.*]] = sched.reduce_scatter %[[B]] dim
  // CHECK-NEXT: sched.add_to @c.grad, %[[C]]
  // CHECK-NEXT: %[[D:.*]] = sched.reduce_scatter %[[G]] dim
  // CHECK-NEXT: train.exp %[[D]]
  // CHECK-NEXT: sched.add_to @d.grad, %[[D]]
  func.func @backward(%g: tensor<4x4xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a = sched.reduce_scatter %g dim 0 over ["data"] : tensor<4x4xf32> -> tensor<2x4xf32>
    %t = train.transpose %a [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32>
    %u = train.transpose %t [1, 0] : tensor<4x2xf32> -> tensor<2x4xf32>
    sched.add_to @a.grad, %u : tensor<2x4xf32>
    %h = train.matmul %g, %g batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %b = sched.reduce_scatter %h dim 0 over ["data"] : tensor<4x4xf32> -> tensor<2x4xf32>
    sched.add_to @b.grad, %b : tensor<2x4xf32>
    %c = sched.reduce_scatter %h dim 0 over ["data"] : tensor<4x4xf32> -> tensor<2x4xf32>
    sched.add_to @c.grad, %c : tensor<2x4xf32>
    %d = sched.reduce_scatter %g dim 0 over ["data"] : tensor<4x4xf32> -> tensor<2x4xf32>
    %read = train.exp %d : tensor<2x4xf32>
    sched.add_to @d.grad, %d : tensor<2x4xf32>
    return
  }
}
}

// -----

// An update gathers its new weights together; what is cut off a flat copy follows. A weight that it reads again is
// gathered by itself.
#part = #plan.layout<[<[<4, ["data"]>]>]>
#whole = #plan.layout<[<[<4>]>]>
#flat = #plan.layout<[<[<3>]>] flat = ["data"]>
#three = #plan.layout<[<[<3>]>]>
module {
sched.program @program on <[<"data", 2>]> attributes {plan.unit_bytes = 128 : i64} {
  sched.resource master @a.master : tensor<2xf32> of tensor<4xf32> #part
  sched.resource master @b.master : tensor<2xf32> of tensor<3xf32> #flat
  sched.resource master @c.master : tensor<2xf32> of tensor<4xf32> #part
  sched.resource parameter @a : tensor<4xf32> of tensor<4xf32> #whole
  sched.resource parameter @b : tensor<3xf32> of tensor<3xf32> #three
  sched.resource parameter @c : tensor<4xf32> of tensor<4xf32> #whole

  // CHECK-LABEL: func.func @update
  // CHECK: sched.store @b.master
  // CHECK-NEXT: %[[B:.*]] = sched.load @b.master
  // CHECK-NEXT: %[[UNIT:.*]]:2 = sched.all_gather %{{.*}}, %[[B]] dim 0
  // CHECK-NEXT: sched.store @a, %[[UNIT]]#0
  // CHECK-NEXT: %[[CUT:.*]] = train.slice %[[UNIT]]#1
  // CHECK-NEXT: sched.store @b, %[[CUT]]
  // CHECK: sched.all_gather %{{[a-z0-9_]+}} dim 0
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %0 = sched.load @a.master : tensor<2xf32>
    %1 = train.exp %0 : tensor<2xf32>
    sched.store @a.master, %1 : tensor<2xf32>
    %2 = sched.load @a.master : tensor<2xf32>
    %3 = sched.all_gather %2 dim 0 over ["data"] : tensor<2xf32> -> tensor<4xf32>
    sched.store @a, %3 : tensor<4xf32>
    %4 = sched.load @b.master : tensor<2xf32>
    %5 = train.exp %4 : tensor<2xf32>
    sched.store @b.master, %5 : tensor<2xf32>
    %6 = sched.load @b.master : tensor<2xf32>
    %7 = sched.all_gather %6 dim 0 over ["data"] : tensor<2xf32> -> tensor<4xf32>
    %8 = train.slice %7 from [0] sizes [3] : tensor<4xf32> -> tensor<3xf32>
    sched.store @b, %8 : tensor<3xf32>
    %9 = sched.load @c.master : tensor<2xf32>
    %10 = sched.all_gather %9 dim 0 over ["data"] : tensor<2xf32> -> tensor<4xf32>
    sched.store @c, %10 : tensor<4xf32>
    %11 = sched.load @c : tensor<4xf32>
    return
  }
}
}

// -----

// In a reduction, units have whole blocks: the gradients of two of three are one unit, those of the third do not fit.
#part = #plan.layout<[<[<4, ["data"]>]>]>
#long = #plan.layout<[<[<65536, ["data"]>]>]>
module {
sched.program @program on <[<"data", 2>]> attributes {plan.unit_bytes = 524288 : i64} {
  sched.resource gradient @a.grad : tensor<32768xf32> of tensor<65536xf32> #long
  sched.resource gradient @b.grad : tensor<32768xf32> of tensor<65536xf32> #long
  sched.resource gradient @c.grad : tensor<32768xf32> of tensor<65536xf32> #long
  sched.resource gradient @d.grad : tensor<2xf32> of tensor<4xf32> #part
  // CHECK-LABEL: func.func @reduce
  // CHECK: sched.reduce_scatter %[[A:.*]], %[[B:.*]] dim 0 over ["data"] {train.id = "a and 1 more"}
  // CHECK: sched.reduce_scatter %{{.*}}, %{{.*}} dim 0 over ["data"] {plan.repeat = #plan.repeat<"blocks", 2>, train.id = "c and 1 more"}
  func.func @reduce(%g: tensor<65536xf32>, %h: tensor<4xf32>) attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %a = sched.reduce_scatter %g dim 0 over ["data"] {plan.repeat = #plan.repeat<"blocks", 0>, train.id = "a"} : tensor<65536xf32> -> tensor<32768xf32>
    sched.store @a.grad, %a : tensor<32768xf32>
    %b = sched.reduce_scatter %g dim 0 over ["data"] {plan.repeat = #plan.repeat<"blocks", 1>, train.id = "b"} : tensor<65536xf32> -> tensor<32768xf32>
    sched.store @b.grad, %b : tensor<32768xf32>
    %c = sched.reduce_scatter %g dim 0 over ["data"] {plan.repeat = #plan.repeat<"blocks", 2>, train.id = "c"} : tensor<65536xf32> -> tensor<32768xf32>
    sched.store @c.grad, %c : tensor<32768xf32>
    %d = sched.reduce_scatter %h dim 0 over ["data"] {plan.repeat = #plan.repeat<"blocks", 2>, train.id = "d"} : tensor<4xf32> -> tensor<2xf32>
    sched.store @d.grad, %d : tensor<2xf32>
    return
  }
}
}

// -----

// Without the attribute each is moved by itself.
#part = #plan.layout<[<[<4, ["data"]>]>]>
module {
sched.program @program on <[<"data", 2>]> {
  sched.resource gradient @a.grad : tensor<2xf32> of tensor<4xf32> #part
  sched.resource gradient @b.grad : tensor<2xf32> of tensor<4xf32> #part
  // CHECK-LABEL: func.func @backward
  // CHECK-COUNT-2: sched.reduce_scatter %{{[a-z0-9_]+}} dim 0
  func.func @backward(%g: tensor<4xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a = sched.reduce_scatter %g dim 0 over ["data"] : tensor<4xf32> -> tensor<2xf32>
    sched.add_to @a.grad, %a : tensor<2xf32>
    %b = sched.reduce_scatter %g dim 0 over ["data"] : tensor<4xf32> -> tensor<2xf32>
    sched.add_to @b.grad, %b : tensor<2xf32>
    return
  }
}
}
