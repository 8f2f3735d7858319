// RUN: windlass-opt %s -sched-fuse-epilogues | FileCheck %s

// Fused commands read and write the bytes that the two did. ChooseEpiloguesTest has the commands that stay as they are.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  func.func private @gelu(%a: bf16, %b: bf16) -> (bf16, bf16) attributes {sched.scalar_function} {
    %c = train.add %a, %b : bf16
    %d = train.gelu_tanh %c : bf16
    return %c, %d : bf16, bf16
  }
  func.func private @gelu_grad(%x: bf16, %dy: bf16) -> bf16 attributes {sched.scalar_function} {
    %dx = train.gelu_tanh_grad %x, %dy : bf16
    return %dx : bf16
  }
  // CHECK-LABEL: func.func @forward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    // CHECK: %[[X:.*]] = sched.buffer @device_arena[0]
    // CHECK: %[[W:.*]] = sched.buffer @device_arena[128]
    // CHECK: %[[B:.*]] = sched.buffer @device_arena[384]
    // CHECK: %[[KEPT:.*]] = sched.buffer @device_arena[512]
    // CHECK: %[[Y:.*]] = sched.buffer @device_arena[768]
    // CHECK-NEXT: sched.launch matmul_bias_gelu on @compute ins(%[[X]], %[[W]], %[[B]]) outs(%[[Y]], %[[KEPT]]) {contract_rank = 1 : i64} {plan.repeat = #plan.repeat<"h", 1>, train.id = "gelu"}
    // CHECK-NEXT: return
    %x = sched.buffer @device_arena[0] : memref<4x8xbf16>
    %w = sched.buffer @device_arena[128] : memref<8x16xbf16>
    %b = sched.buffer @device_arena[384] : memref<4x16xbf16, strided<[0, 1]>>
    %kept = sched.buffer @device_arena[512] : memref<4x16xbf16>
    %y = sched.buffer @device_arena[768] : memref<4x16xbf16>
    sched.launch matmul on @compute ins(%x, %w) outs(%kept) {batch_rank = 0 : i64, contract_rank = 1 : i64} {plan.repeat = #plan.repeat<"h", 0>, train.id = "matmul"} : (memref<4x8xbf16>, memref<8x16xbf16>) -> memref<4x16xbf16>
    sched.launch_map @gelu on @compute ins(%kept, %b) outs(%kept, %y) {plan.repeat = #plan.repeat<"h", 1>, train.id = "gelu"} : (memref<4x16xbf16>, memref<4x16xbf16, strided<[0, 1]>>) -> (memref<4x16xbf16>, memref<4x16xbf16>)
    return
  }
  // CHECK-LABEL: func.func @backward
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    // CHECK: sched.launch matmul_bias_grad on @compute ins(%[[XT:.*]], %[[DY:.*]]) outs(%[[DW:.*]], %[[DB:.*]]) {contract_rank = 1 : i64, sums_b} accumulate_after_first
    // CHECK-NEXT: return
    %xt = sched.buffer @device_arena[0] : memref<8x4xbf16, strided<[1, 8]>>
    %dy = sched.buffer @device_arena[768] : memref<4x16xbf16>
    %dyt = sched.buffer @device_arena[768] : memref<16x4xbf16, strided<[1, 16]>>
    %dw = sched.buffer @device_arena[1024] : memref<8x16xf32>
    %db = sched.buffer @device_arena[1536] : memref<16xf32>
    sched.launch reduce on @compute ins(%dyt) outs(%db) {reduced_rank = 1 : i64} accumulate_after_first : (memref<16x4xbf16, strided<[1, 16]>>) -> memref<16xf32>
    sched.launch matmul on @compute ins(%xt, %dy) outs(%dw) {batch_rank = 0 : i64, contract_rank = 1 : i64} accumulate_after_first : (memref<8x4xbf16, strided<[1, 8]>>, memref<4x16xbf16>) -> memref<8x16xf32>
    return
  }
  // The gradient of GELU moves to the product, with the buffer that it reads.
  // CHECK-LABEL: func.func @evaluate
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    // CHECK: %[[X:.*]] = sched.buffer @device_arena[512]
    // CHECK-NEXT: sched.launch matmul_gelu_grad on @compute ins(%[[DY:.*]], %[[W:.*]], %[[X]]) outs(%[[DX:.*]]) {contract_rank = 1 : i64} {train.id = "matmul"}
    // CHECK-NEXT: sched.launch fill
    // CHECK-NEXT: return
    %dy = sched.buffer @device_arena[0] : memref<4x8xbf16>
    %w = sched.buffer @device_arena[128] : memref<8x16xbf16>
    %dx = sched.buffer @device_arena[768] : memref<4x16xbf16>
    sched.launch matmul on @compute ins(%dy, %w) outs(%dx) {batch_rank = 0 : i64, contract_rank = 1 : i64} {train.id = "matmul"} : (memref<4x8xbf16>, memref<8x16xbf16>) -> memref<4x16xbf16>
    sched.launch fill on @compute ins() outs(%dy) {value = 0.0 : f64} : () -> memref<4x8xbf16>
    %x = sched.buffer @device_arena[512] : memref<4x16xbf16>
    sched.launch_map @gelu_grad on @compute ins(%x, %dx) outs(%dx) {train.id = "gelu"} : (memref<4x16xbf16>, memref<4x16xbf16>) -> memref<4x16xbf16>
    return
  }
}
}
