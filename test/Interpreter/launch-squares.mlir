// One sum of the squares of several buffers, of any type, is that of a sum for each: 95, to which one that accumulates
// adds 29.5. The loss is the square of the difference between both ways.
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --level L5 | FileCheck %s
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --precision f32 | FileCheck %s
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --rounds | FileCheck %s
// CHECK: step 0 loss 0 grad_norm 124.5

// One that does not accumulate is another one.
// RUN: sed 's/outs(%%together) {} accumulate/outs(%%together) {}/' %s > %t.mlir
// RUN: windlass-run %t.mlir --initial %S/Inputs/step.safetensors | FileCheck %s --check-prefix=OTHER
// OTHER: step 0 loss 9025 grad_norm 29.5
#vector = #plan.layout<[<[<2>]>]>
#scalar = #plan.layout<[]>
module attributes {train.settings = {micro_batches = 1 : i64}} {
sched.program @program on <[<"data", 1>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.resource parameter @w : tensor<2xf32> of tensor<2xf32> #vector {logical_name = "w", arena = @device_arena, offset = 0 : i64}
  sched.resource loss @loss : tensor<f32> of tensor<f32> #scalar {arena = @device_arena, offset = 64 : i64}
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> #scalar {arena = @device_arena, offset = 128 : i64}
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<update>]
  func.func private @sub(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.sub %a, %b : f32
    return %c : f32
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %loss = sched.buffer @device_arena[64] : memref<f32>
    %together = sched.buffer @device_arena[128] : memref<f32>
    %apart = sched.buffer @device_arena[192] : memref<f32>
    %difference = sched.buffer @device_arena[256] : memref<f32>
    %a = sched.buffer @device_arena[320] : memref<2x3xf32>
    %row = sched.buffer @device_arena[320] : memref<3xf32>
    %row2 = sched.buffer @device_arena[332] : memref<3xf32>
    %b = sched.buffer @device_arena[384] : memref<1xf32>
    %more = sched.buffer @device_arena[448] : memref<4xf32>
    %half = sched.buffer @device_arena[512] : memref<4xbf16>
    sched.launch iota on @compute ins() outs(%row) {dim = 0 : i64, start = 1.0 : f64, step = 1.0 : f64} : () -> memref<3xf32>
    sched.launch iota on @compute ins() outs(%row2) {dim = 0 : i64, start = 4.0 : f64, step = 1.0 : f64} : () -> memref<3xf32>
    sched.launch fill on @compute ins() outs(%b) {value = -2.0 : f64} : () -> memref<1xf32>
    sched.launch iota on @compute ins() outs(%more) {dim = 0 : i64, start = 1.5 : f64, step = 0.5 : f64} : () -> memref<4xf32>
    sched.launch copy on @compute ins(%more) outs(%half) {} : (memref<4xf32>) -> memref<4xbf16>
    sched.launch square_sum on @compute ins(%a, %b) outs(%together) {} : (memref<2x3xf32>, memref<1xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%half, %b, %b) outs(%together) {} accumulate : (memref<4xbf16>, memref<1xf32>, memref<1xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%a) outs(%apart) {} : (memref<2x3xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%b) outs(%apart) {} accumulate : (memref<1xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%half) outs(%apart) {} accumulate : (memref<4xbf16>) -> memref<f32>
    sched.launch square_sum on @compute ins(%b) outs(%apart) {} accumulate : (memref<1xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%b) outs(%apart) {} accumulate : (memref<1xf32>) -> memref<f32>
    sched.launch_map @sub on @compute ins(%together, %apart) outs(%difference) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%difference) outs(%loss) {} : (memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}
