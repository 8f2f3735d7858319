// Kernels that are a product and what follows it give what the commands give which they stand for: with a bias and another
// matrix, with GELU of the sum, which may be kept, with the gradient of GELU, and with the sum of one of the operands over
// what is contracted.
// The loss is the sum of squares of all differences; the norm, of the results.
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --level L5 | FileCheck %s
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --precision f32 | FileCheck %s
// RUN: windlass-run %s --initial %S/Inputs/step.safetensors --rounds | FileCheck %s
// CHECK: step 0 loss 0 grad_norm [[NORM:[1-9][0-9.]*]]
// CHECK-NEXT: step 1 loss 0 grad_norm [[NORM]]

// The sum of the other operand is another one.
// RUN: sed 's/, sums_b}/}/' %s > %t.1.mlir
// RUN: windlass-run %t.1.mlir --initial %S/Inputs/step.safetensors | FileCheck %s --check-prefix=OTHER
// OTHER: step 0 loss {{[1-9]}}
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
  func.func private @add(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.add %a, %b : f32
    return %c : f32
  }
  func.func private @add_twice(%a: f32, %b: f32, %c: f32) -> f32 attributes {sched.scalar_function} {
    %d = train.add %a, %b : f32
    %e = train.add %d, %c : f32
    return %e : f32
  }
  func.func private @gelu(%a: f32, %b: f32) -> (f32, f32) attributes {sched.scalar_function} {
    %c = train.add %a, %b : f32
    %d = train.gelu_tanh %c : f32
    return %d, %c : f32, f32
  }
  func.func private @gelu_grad(%x: f32, %dy: f32) -> f32 attributes {sched.scalar_function} {
    %dx = train.gelu_tanh_grad %x, %dy : f32
    return %dx : f32
  }
  func.func private @sub(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.sub %a, %b : f32
    return %c : f32
  }
  func.func private @outer(%a: f32, %b: f32, %c: f32) -> f32 attributes {sched.scalar_function} {
    %d = train.mul %a, %b : f32
    %e = train.add %d, %c : f32
    return %e : f32
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %rows = sched.buffer @device_arena[0] : memref<3x2xf32, strided<[0, 1]>>
    %columns = sched.buffer @device_arena[0] : memref<2x2xf32, strided<[1, 0]>>
    %bias = sched.buffer @device_arena[0] : memref<3x2xf32, strided<[0, 1]>>
    %loss = sched.buffer @device_arena[64] : memref<f32>
    %norm = sched.buffer @device_arena[128] : memref<f32>
    // a has other rows than b has columns, and no two numbers of it are the same.
    %a = sched.buffer @device_arena[192] : memref<3x2xf32>
    %b = sched.buffer @device_arena[256] : memref<2x2xf32>
    %m = sched.buffer @device_arena[320] : memref<3x2xf32>
    sched.launch iota on @compute ins() outs(%m) {dim = 0 : i64, start = -1.0 : f64, step = 0.75 : f64} : () -> memref<3x2xf32>
    sched.launch_map @outer on @compute ins(%rows, %m, %m) outs(%a) : (memref<3x2xf32, strided<[0, 1]>>, memref<3x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch iota on @compute ins() outs(%b) {dim = 1 : i64, start = 0.5 : f64, step = -2.0 : f64} : () -> memref<2x2xf32>
    sched.launch_map @add on @compute ins(%b, %columns) outs(%b) : (memref<2x2xf32>, memref<2x2xf32, strided<[1, 0]>>) -> memref<2x2xf32>

    %p = sched.buffer @device_arena[384] : memref<3x2xf32>
    %q = sched.buffer @device_arena[448] : memref<3x2xf32>
    %kept = sched.buffer @device_arena[512] : memref<3x2xf32>
    %r = sched.buffer @device_arena[576] : memref<3x2xf32>
    sched.launch matmul on @compute ins(%a, %b) outs(%p) {batch_rank = 0 : i64, contract_rank = 1 : i64} : (memref<3x2xf32>, memref<2x2xf32>) -> memref<3x2xf32>
    sched.launch_map @add_twice on @compute ins(%p, %bias, %m) outs(%q) : (memref<3x2xf32>, memref<3x2xf32, strided<[0, 1]>>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch matmul_bias on @compute ins(%a, %b, %bias, %m) outs(%r) {contract_rank = 1 : i64} : (memref<3x2xf32>, memref<2x2xf32>, memref<3x2xf32, strided<[0, 1]>>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch square_sum on @compute ins(%r) outs(%norm) {} : (memref<3x2xf32>) -> memref<f32>
    sched.launch_map @sub on @compute ins(%r, %q) outs(%q) : (memref<3x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch square_sum on @compute ins(%q) outs(%loss) {} : (memref<3x2xf32>) -> memref<f32>

    sched.launch_map @add on @compute ins(%p, %bias) outs(%q) : (memref<3x2xf32>, memref<3x2xf32, strided<[0, 1]>>) -> memref<3x2xf32>
    sched.launch matmul_bias on @compute ins(%a, %b, %bias) outs(%r) {contract_rank = 1 : i64} : (memref<3x2xf32>, memref<2x2xf32>, memref<3x2xf32, strided<[0, 1]>>) -> memref<3x2xf32>
    sched.launch_map @sub on @compute ins(%r, %q) outs(%q) : (memref<3x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch square_sum on @compute ins(%q) outs(%loss) {} accumulate : (memref<3x2xf32>) -> memref<f32>

    %sum = sched.buffer @device_arena[640] : memref<3x2xf32>
    sched.launch_map @gelu on @compute ins(%p, %bias) outs(%q, %sum) : (memref<3x2xf32>, memref<3x2xf32, strided<[0, 1]>>) -> (memref<3x2xf32>, memref<3x2xf32>)
    sched.launch matmul_bias_gelu on @compute ins(%a, %b, %bias) outs(%r, %kept) {contract_rank = 1 : i64} : (memref<3x2xf32>, memref<2x2xf32>, memref<3x2xf32, strided<[0, 1]>>) -> (memref<3x2xf32>, memref<3x2xf32>)
    sched.launch square_sum on @compute ins(%r) outs(%norm) {} accumulate : (memref<3x2xf32>) -> memref<f32>
    sched.launch_map @sub on @compute ins(%kept, %sum) outs(%sum) : (memref<3x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch square_sum on @compute ins(%sum) outs(%loss) {} accumulate : (memref<3x2xf32>) -> memref<f32>
    sched.launch_map @sub on @compute ins(%r, %q) outs(%sum) : (memref<3x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch square_sum on @compute ins(%sum) outs(%loss) {} accumulate : (memref<3x2xf32>) -> memref<f32>
    sched.launch matmul_bias_gelu on @compute ins(%a, %b, %bias) outs(%r) {contract_rank = 1 : i64} : (memref<3x2xf32>, memref<2x2xf32>, memref<3x2xf32, strided<[0, 1]>>) -> memref<3x2xf32>
    sched.launch_map @sub on @compute ins(%r, %q) outs(%sum) : (memref<3x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch square_sum on @compute ins(%sum) outs(%loss) {} accumulate : (memref<3x2xf32>) -> memref<f32>

    sched.launch_map @gelu_grad on @compute ins(%m, %p) outs(%q) : (memref<3x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch matmul_gelu_grad on @compute ins(%a, %b, %m) outs(%r) {contract_rank = 1 : i64} : (memref<3x2xf32>, memref<2x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch square_sum on @compute ins(%r) outs(%norm) {} accumulate : (memref<3x2xf32>) -> memref<f32>
    sched.launch_map @sub on @compute ins(%r, %q) outs(%sum) : (memref<3x2xf32>, memref<3x2xf32>) -> memref<3x2xf32>
    sched.launch square_sum on @compute ins(%sum) outs(%loss) {} accumulate : (memref<3x2xf32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %loss = sched.buffer @device_arena[64] : memref<f32>
    %norm = sched.buffer @device_arena[128] : memref<f32>
    // The gradient of b is the transpose of a times that of the result, here m; over its rows go both sums.
    %at = sched.buffer @device_arena[192] : memref<2x3xf32, strided<[1, 2]>>
    %m = sched.buffer @device_arena[320] : memref<3x2xf32>
    %mt = sched.buffer @device_arena[320] : memref<2x3xf32, strided<[1, 2]>>
    %db = sched.buffer @device_arena[704] : memref<2x2xf32>
    %dbias = sched.buffer @device_arena[768] : memref<2xf32>
    %db2 = sched.buffer @device_arena[832] : memref<2x2xf32>
    %dbias2 = sched.buffer @device_arena[896] : memref<2xf32>
    sched.launch matmul on @compute ins(%at, %m) outs(%db) {batch_rank = 0 : i64, contract_rank = 1 : i64} accumulate_after_first : (memref<2x3xf32, strided<[1, 2]>>, memref<3x2xf32>) -> memref<2x2xf32>
    sched.launch reduce on @compute ins(%mt) outs(%dbias) {kind = #train<reduction sum>, reduced_rank = 1 : i64} accumulate_after_first : (memref<2x3xf32, strided<[1, 2]>>) -> memref<2xf32>
    sched.launch matmul_bias_grad on @compute ins(%at, %m) outs(%db2, %dbias2) {contract_rank = 1 : i64, sums_b} accumulate_after_first : (memref<2x3xf32, strided<[1, 2]>>, memref<3x2xf32>) -> (memref<2x2xf32>, memref<2xf32>)
    sched.launch square_sum on @compute ins(%db2) outs(%norm) {} accumulate : (memref<2x2xf32>) -> memref<f32>
    sched.launch_map @sub on @compute ins(%db2, %db) outs(%db2) : (memref<2x2xf32>, memref<2x2xf32>) -> memref<2x2xf32>
    sched.launch_map @sub on @compute ins(%dbias2, %dbias) outs(%dbias2) : (memref<2xf32>, memref<2xf32>) -> memref<2xf32>
    sched.launch square_sum on @compute ins(%db2) outs(%loss) {} accumulate : (memref<2x2xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%dbias2) outs(%loss) {} accumulate : (memref<2xf32>) -> memref<f32>
    // Of the first operand: as the sum of rows of a.
    sched.launch reduce on @compute ins(%at) outs(%dbias) {kind = #train<reduction sum>, reduced_rank = 1 : i64} : (memref<2x3xf32, strided<[1, 2]>>) -> memref<2xf32>
    sched.launch matmul_bias_grad on @compute ins(%at, %m) outs(%db2, %dbias2) {contract_rank = 1 : i64} : (memref<2x3xf32, strided<[1, 2]>>, memref<3x2xf32>) -> (memref<2x2xf32>, memref<2xf32>)
    sched.launch_map @sub on @compute ins(%dbias2, %dbias) outs(%dbias2) : (memref<2xf32>, memref<2xf32>) -> memref<2xf32>
    sched.launch square_sum on @compute ins(%dbias2) outs(%loss) {} accumulate : (memref<2xf32>) -> memref<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}
