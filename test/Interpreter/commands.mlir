// Two ranks, each with loss 1.5 and gradient w: the reduced loss is 3, the reduced gradient 2 w, which becomes the weight;
// the "norm" is its sum of squares. Every line that orders the streams is needed, and taking one away is found.
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --level L5 --ranks 2 | FileCheck %s
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --precision f32 | FileCheck %s
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --rounds | FileCheck %s
// CHECK: step 0 loss 3 grad_norm 8
// CHECK-NEXT: step 1 loss 3 grad_norm 32

// What a program rounds is known where it has buffers, and rounding doubles needs doubles.
// RUN: not windlass-run %s --initial %S/Inputs/step.safetensors --rounds --precision f32 2>&1 | FileCheck %s --check-prefix=ROUNDS
// ROUNDS: error: can be rounded as programs do at level L5 only, and where floats are doubles

// The gradient in an arena of its own, at the offset that the weight has in the other one; a part that nothing wrote there.
// RUN: sed 's/device_arena, offset = 64/host_arena, offset = 0/; s/device_arena\[64\]/host_arena[0]/; s/^  sched.arena.*/&\n  sched.arena @host_arena host bytes 64/' %s > %t.8.mlir
// RUN: windlass-run %t.8.mlir --initial %S/Inputs/step.safetensors | FileCheck %s
// RUN: sed 's/%%w = sched.buffer @device_arena\[0\]/%%w = sched.buffer @host_arena[8]/' %t.8.mlir > %t.9.mlir
// RUN: not windlass-run %t.9.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=ARENA
// ARENA: error: reads what nothing has written at byte 8

// The collective does not wait for the gradient.
// RUN: sed '/LINE: wait-for-gradient/d' %s > %t.1.mlir
// RUN: not windlass-run %t.1.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: [[#]]:{{.*}} error: reads what an unordered command writes at byte 64
// EARLY: sched.launch_collective
// EARLY: note: this is the other one: no event orders 'sched.launch' and 'sched.launch_collective'
// EARLY: sched.launch copy

// The update does not wait for the collective.
// RUN: sed '/LINE: wait-for-reduction/d' %s > %t.2.mlir
// RUN: not windlass-run %t.2.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: reads what an unordered command writes at byte 64
// LATE: sched.launch square_sum
// LATE: note: this is the other one: no event orders 'sched.launch_collective' and 'sched.launch'

// An event that nothing records.
// RUN: sed '/LINE: gradient-ready/d' %s > %t.3.mlir
// RUN: not windlass-run %t.3.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=EVENT
// EVENT: error: waits for event 0, which nothing has recorded

// A live range that another buffer overlaps: the compute stream fills the gradient while it is reduced.
// RUN: sed 's/device_arena\[200\]/device_arena[68]/' %s > %t.4.mlir
// RUN: not windlass-run %t.4.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: error: writes what an unordered command writes too at byte 68
// OVERLAP: sched.launch fill
// OVERLAP: note: this is the other one: no event orders 'sched.launch_collective' and 'sched.launch'

// Bytes that nothing wrote, a buffer outside of its arena, a kernel that writes what it reads.
// RUN: sed '/LINE: norm/d' %s > %t.5.mlir
// RUN: not windlass-run %t.5.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=UNWRITTEN
// UNWRITTEN: error: reads what nothing has written at byte 192
// RUN: sed 's/device_arena\[200\]/device_arena[253]/' %s > %t.6.mlir
// RUN: not windlass-run %t.6.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: error: cannot be executed: lies outside the 256 bytes of @device_arena
// RUN: sed 's/device_arena\[200\]/device_arena[0]/; s/fill on @compute ins() outs(%%scratch) {value = 7.0 : f64} : ()/square_sum on @compute ins(%%w) outs(%%scratch) {} : (memref<2xf32>)/' %s > %t.7.mlir
// RUN: not windlass-run %t.7.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=INPLACE
// INPLACE: error: writes what it reads, which its kernel does not allow, at byte 0

// The host may not write inputs of a step while the last one runs; here nothing is wrong with that.
#whole = #plan.layout<[<[<2>]>]>
#partial = #plan.layout<[<[<2>]>], unreduced = [<"batch", sum>]>
#sum = #plan.layout<[], unreduced = [<"batch", sum>]>
#scalar = #plan.layout<[]>
module attributes {train.settings = {micro_batches = 1 : i64}} {
sched.program @program on <[<"batch", 2, batch>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_batch communicator
  sched.communicator @communicator over ["batch"] on @over_batch
  sched.resource parameter @w : tensor<2xf32> of tensor<2xf32> #whole {logical_name = "w", arena = @device_arena, offset = 0 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> #partial {logical_name = "w", arena = @device_arena, offset = 64 : i64}
  sched.resource loss @loss : tensor<f32> of tensor<f32> #sum {arena = @device_arena, offset = 128 : i64}
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> #scalar {arena = @device_arena, offset = 192 : i64}
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %loss = sched.buffer @device_arena[128] : memref<f32>
    sched.launch fill on @compute ins() outs(%loss) {value = 1.5 : f64} : () -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %w = sched.buffer @device_arena[0] : memref<2xf32>
    %g = sched.buffer @device_arena[64] : memref<2xf32>
    %loss = sched.buffer @device_arena[128] : memref<f32>
    sched.launch copy on @compute ins(%w) outs(%g) {} : (memref<2xf32>) -> memref<2xf32>
    sched.record 0 on @compute {sched.in_last} // LINE: gradient-ready
    sched.wait 0 on @over_batch {sched.in_last} // LINE: wait-for-gradient
    sched.launch_collective all_reduce sum @communicator, %g -> %g {sched.in_last} : memref<2xf32> -> memref<2xf32>
    sched.launch_collective all_reduce sum @communicator, %loss -> %loss {sched.in_last} : memref<f32> -> memref<f32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %w = sched.buffer @device_arena[0] : memref<2xf32>
    %scratch = sched.buffer @device_arena[200] : memref<f32>
    sched.launch fill on @compute ins() outs(%scratch) {value = 7.0 : f64} : () -> memref<f32>
    sched.record 1 on @over_batch
    sched.wait 1 on @compute // LINE: wait-for-reduction
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.buffer @device_arena[0] : memref<2xf32>
    %g = sched.buffer @device_arena[64] : memref<2xf32>
    %norm = sched.buffer @device_arena[192] : memref<f32>
    sched.launch square_sum on @compute ins(%g) outs(%norm) {} : (memref<2xf32>) -> memref<f32> // LINE: norm
    sched.launch copy on @compute ins(%g) outs(%w) {} : (memref<2xf32>) -> memref<2xf32>
    return
  }
}
}
