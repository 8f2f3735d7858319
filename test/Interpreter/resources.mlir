// Collectives and resources on four ranks, two groups (data) of two parts (model). A rank's part of x is worth its index
// in the batch; what each collective makes of the parts can be read off the losses.
// RUN: %python %S/Inputs/make_rows.py %t.batches
// RUN: windlass-run %s --level L4 --ranks 4 --initial %S/Inputs/step.safetensors --batches %t.batches -o %t.f64 | FileCheck %s
// RUN: windlass-run %s --precision f32 --initial %S/Inputs/step.safetensors --batches %t.batches -o %t.f32 | FileCheck %s
// RUN: windlass-run --compare %t.f64 %t.f32 --bound 1e-6
// RUN: sed 's/over \["data"\]/over ["pipe"]/' %s > %t.axis.mlir
// RUN: not windlass-run %t.axis.mlir --initial %S/Inputs/step.safetensors --batches %t.batches 2>&1 | FileCheck %s --check-prefix=AXIS
// AXIS: error: cannot be executed: the mesh #plan.mesh<{{.*}}> has not all of the axes ["pipe"]
// RUN: sed 's/#sched.action<reduce>, //' %s > %t.unreduced.mlir
// RUN: not windlass-run %t.unreduced.mlir --initial %S/Inputs/step.safetensors --batches %t.batches 2>&1 | FileCheck %s --check-prefix=REPLICA
// REPLICA: hold different values where their layout makes them replicas
// RUN: sed 's/repeat x 2 of 2/repeat x 2 of 9/' %s > %t.repeat.mlir
// RUN: not windlass-run %t.repeat.mlir --initial %S/Inputs/step.safetensors --batches %t.batches 2>&1 | FileCheck %s --check-prefix=REPEAT
// REPEAT: error: 'sched.schedule' op repeats 9 actions 2 times, but only 4 follow
// RUN: sed '/LINE: first-store/d' %s > %t.unwritten.mlir
// RUN: not windlass-run %t.unwritten.mlir --initial %S/Inputs/step.safetensors --batches %t.batches 2>&1 | FileCheck %s --check-prefix=UNWRITTEN
// UNWRITTEN: error: reads @one before anything wrote it

// Batch k holds rows k + 1 .. k + 4 in both columns; rank (d, m) of micro-batch k = 2 i + d holds rows 2 m and 2 m + 1.
// The sum over a batch's rows and columns is 8 k + 20; G = 4 of them make 128 in step 0 and 256 in step 1. Each goes through
// every collective, none of which changes what the members hold together.
// CHECK: step 0 loss 128 grad_norm 128
// CHECK-NEXT: step 1 loss 256 grad_norm 256
#rows = #plan.layout<[<[<4, ["model"]>]>, <[<2>]>]>
#whole = #plan.layout<[<[<2>]>]>
#all = #plan.layout<[<[<2>]>], unreduced = [<"data", sum>, <"model", sum>]>
#sum = #plan.layout<[], unreduced = [<"data", sum>, <"model", sum>]>
#scalar = #plan.layout<[]>
module attributes {train.settings = {micro_batches = 4 : i64}} {
sched.program @program on <[<"data", 2, replica>, <"model", 2>]> {
  sched.resource input @x : tensor<2x2xf32> of tensor<4x2xf32> #rows {logical_name = "x"}
  sched.resource parameter @w : tensor<2xf32> of tensor<2xf32> #whole {logical_name = "w"}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> #all {logical_name = "w"}
  sched.resource value @one : tensor<f32> of tensor<f32> #scalar
  sched.resource loss @loss : tensor<f32> of tensor<f32> #sum
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> #scalar
  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
  func.func @scaled(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %two = arith.constant 2.0 : f32
    %0 = train.mul %a, %b : f32
    %1 = train.mul %0, %two : f32
    %2 = train.div %1, %two : f32
    return %2 : f32
  }
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
    %one = train.constant dense<1.0> : tensor<f32>
    sched.store @one, %one : tensor<f32> // LINE: first-store
    return
  }
  func.func @forward() -> tensor<2x2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2x2xf32>
    %one = sched.load @one : tensor<f32>
    %scaled = sched.map @scaled(%x, %one) dims [array<i64: 0, 1>, array<i64>] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
    %exchanged = sched.all_to_all %scaled split 1 concat 0 over ["model"] : tensor<2x2xf32> -> tensor<4x1xf32>
    %gathered = sched.all_gather %exchanged dim 1 over ["model"] : tensor<4x1xf32> -> tensor<4x2xf32>
    %own = sched.own_part %gathered dim 0 over ["model"] : tensor<4x2xf32> -> tensor<2x2xf32>
    %sum = train.reduce sum %own dims [0, 1] : tensor<2x2xf32> -> tensor<f32>
    sched.add_to @loss, %sum : tensor<f32>
    return %own : tensor<2x2xf32>
  }
  func.func @backward(%kept: tensor<2x2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %columns = train.reduce sum %kept dims [0] : tensor<2x2xf32> -> tensor<2xf32>
    // The members' sum, half on each, gathered again: on each of them, so that only one may add it.
    %twice = train.add %columns, %columns : tensor<2xf32>
    %half:2 = sched.reduce_scatter %twice, %columns dim 0 over ["model"] : tensor<2xf32>, tensor<2xf32> -> tensor<1xf32>, tensor<1xf32>
    %back:2 = sched.all_gather %half#0, %half#1 dim 0 over ["model"] : tensor<1xf32>, tensor<1xf32> -> tensor<2xf32>, tensor<2xf32>
    %difference = train.sub %back#0, %back#1 : tensor<2xf32>
    %members = train.constant dense<0.5> : tensor<2xf32>
    %share = train.mul %difference, %members : tensor<2xf32>
    sched.add_to @g, %share : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %g = sched.load @g : tensor<2xf32>
    %loss = sched.load @loss : tensor<f32>
    %0, %1 = sched.all_reduce sum %g, %loss over ["model"] : (tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<f32>)
    %2, %3 = sched.all_reduce sum %0, %1 over ["data"] : (tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<f32>)
    sched.store @g, %2 : tensor<2xf32>
    sched.store @loss, %3 : tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %g = sched.load @g : tensor<2xf32>
    %norm = train.reduce sum %g dims [0] : tensor<2xf32> -> tensor<f32>
    sched.store @norm, %norm : tensor<f32>
    return
  }
}
}
