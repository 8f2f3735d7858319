// The update of a weight outside of the device: its gradient goes there, doubled it becomes the weight, which comes back.
// Every line that orders the streams is needed, the last one by the next step: between steps the interpreter waits.
// RUN: windlass-opt %s -sched-verify-commands | windlass-run - --initial %S/Inputs/step.safetensors | FileCheck %s
// CHECK: step 0 loss 1.5 grad_norm 2
// CHECK-NEXT: step 1 loss 1.5 grad_norm 8

// RUN: sed '/LINE: gradient-ready/d' %s > %t.1.mlir
// RUN: not windlass-run %t.1.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not windlass-opt %t.1.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=FLUSH
// EARLY: error: reads what an unordered command writes at byte 64
// EARLY: sched.launch copy on @flush
// FLUSH: error: 'sched.launch' op reads byte 64 without waiting for its write on stream 0, in @device_arena

// RUN: sed '/LINE: gradient-there/d' %s > %t.2.mlir
// RUN: not windlass-run %t.2.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=HOST
// HOST: error: reads what an unordered command writes at byte 0
// HOST: sched.launch_map @twice on @host

// RUN: sed '/LINE: weight-there/d' %s > %t.3.mlir
// RUN: not windlass-run %t.3.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %s --check-prefix=FETCH
// FETCH: error: reads what an unordered command writes at byte 64
// FETCH: sched.launch copy on @fetch

// RUN: sed '/LINE: weight-here/d' %s > %t.4.mlir
// RUN: not windlass-opt %t.4.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=LATE
// LATE: error: 'sched.launch' op reads byte 0 without waiting for its write on stream 3, in @device_arena
#whole = #plan.layout<[<[<2>]>]>
#scalar = #plan.layout<[]>
module attributes {train.settings = {micro_batches = 1 : i64}} {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 256
  sched.arena @host_arena host bytes 128
  sched.stream @compute compute
  sched.stream @flush d2h
  sched.stream @host host
  sched.stream @fetch h2d
  sched.resource parameter @w : tensor<2xf32> of tensor<2xf32> #whole {logical_name = "w", arena = @device_arena, offset = 0 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> #whole {logical_name = "w", arena = @device_arena, offset = 64 : i64}
  sched.resource loss @loss : tensor<f32> of tensor<f32> #scalar {arena = @device_arena, offset = 128 : i64}
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> #scalar {arena = @device_arena, offset = 192 : i64}
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
  func.func private @twice(%x: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %x : f32
    return %0 : f32
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %loss = sched.buffer @device_arena[128] : memref<f32> {sched.storage = 2 : i64}
    sched.launch fill on @compute ins() outs(%loss) {value = 1.5 : f64} : () -> memref<f32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %w = sched.buffer @device_arena[0] : memref<2xf32> {sched.storage = 0 : i64}
    %g = sched.buffer @device_arena[64] : memref<2xf32> {sched.storage = 1 : i64}
    sched.launch copy on @compute ins(%w) outs(%g) {} : (memref<2xf32>) -> memref<2xf32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.buffer @device_arena[0] : memref<2xf32> {sched.storage = 0 : i64}
    %g = sched.buffer @device_arena[64] : memref<2xf32> {sched.storage = 1 : i64}
    %norm = sched.buffer @device_arena[192] : memref<f32> {sched.storage = 3 : i64}
    %there = sched.buffer @host_arena[0] : memref<2xf32> {sched.storage = 4 : i64}
    %master = sched.buffer @host_arena[64] : memref<2xf32> {sched.storage = 5 : i64}
    sched.record 0 on @compute
    sched.wait 0 on @flush // LINE: gradient-ready
    sched.launch square_sum on @compute ins(%g) outs(%norm) {} : (memref<2xf32>) -> memref<f32>
    sched.launch copy on @flush ins(%g) outs(%there) {} : (memref<2xf32>) -> memref<2xf32>
    sched.record 1 on @flush
    sched.wait 1 on @host // LINE: gradient-there
    sched.launch_map @twice on @host ins(%there) outs(%master) : (memref<2xf32>) -> memref<2xf32>
    sched.record 2 on @host
    sched.wait 2 on @fetch // LINE: weight-there
    sched.launch copy on @fetch ins(%master) outs(%w) {} : (memref<2xf32>) -> memref<2xf32>
    sched.record 3 on @fetch
    sched.wait 3 on @compute // LINE: weight-here
    return
  }
}
}
