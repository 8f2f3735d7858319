// A product with a bias is rounded once: 1 + 2^-8 and 2^-8 make 1 + 2^-7 in bf16, whereas the product by itself would be
// rounded to 1, and its sum with the bias to 1 too. GELU of the sum is 0.8515625 in bf16; of 1 it would be 0.83984375.
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --steps 1 --rounds | FileCheck %s
// CHECK: step 0 loss 1.01568604 grad_norm 0.8515625
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
  func.func private @widen(%a: bf16) -> f32 attributes {sched.scalar_function} {
    %b = train.cast %a : bf16 -> f32
    return %b : f32
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %loss = sched.buffer @device_arena[64] : memref<f32>
    %norm = sched.buffer @device_arena[128] : memref<f32>
    %a = sched.buffer @device_arena[192] : memref<1x2xbf16>
    %b = sched.buffer @device_arena[256] : memref<2x1xbf16>
    %bias = sched.buffer @device_arena[320] : memref<1x1xbf16, strided<[0, 1]>>
    %dense = sched.buffer @device_arena[320] : memref<1x1xbf16>
    %sum = sched.buffer @device_arena[384] : memref<1x1xbf16>
    %gelu = sched.buffer @device_arena[448] : memref<1x1xbf16>
    %wide = sched.buffer @device_arena[512] : memref<1x1xf32>
    %number = sched.buffer @device_arena[512] : memref<f32>
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<1x2xbf16>
    sched.launch iota on @compute ins() outs(%b) {dim = 0 : i64, start = 1.0 : f64, step = -0.99609375 : f64} : () -> memref<2x1xbf16>
    sched.launch fill on @compute ins() outs(%dense) {value = 0.00390625 : f64} : () -> memref<1x1xbf16>
    sched.launch matmul_bias on @compute ins(%a, %b, %bias) outs(%sum) {contract_rank = 1 : i64} : (memref<1x2xbf16>, memref<2x1xbf16>, memref<1x1xbf16, strided<[0, 1]>>) -> memref<1x1xbf16>
    sched.launch_map @widen on @compute ins(%sum) outs(%wide) : (memref<1x1xbf16>) -> memref<1x1xf32>
    sched.launch square_sum on @compute ins(%wide) outs(%loss) {} : (memref<1x1xf32>) -> memref<f32>
    sched.launch matmul_bias_gelu on @compute ins(%a, %b, %bias) outs(%gelu) {contract_rank = 1 : i64} : (memref<1x2xbf16>, memref<2x1xbf16>, memref<1x1xbf16, strided<[0, 1]>>) -> memref<1x1xbf16>
    sched.launch_map @widen on @compute ins(%gelu) outs(%wide) : (memref<1x1xbf16>) -> memref<1x1xf32>
    sched.launch copy on @compute ins(%number) outs(%norm) {} : (memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}
