// RUN: windlass-opt %s -split-input-file -sched-fuse-losses | FileCheck %s

// The loss writes its gradient, behind what reduces the count over ranks. The factor stands where the logarithms did;
// @evaluate stays.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  sched.resource scalar @scale : tensor<f32> of tensor<f32> #plan.layout<[]> {arena = @device_arena, offset = 704 : i64}
  // CHECK-LABEL: func.func @forward
  // CHECK-NEXT: %[[X:.*]] = sched.buffer @device_arena[64]
  // CHECK-NEXT: %[[Y:.*]] = sched.buffer @device_arena[192]
  // CHECK-NEXT: %[[S:.*]] = sched.buffer @device_arena[256]
  // CHECK-NEXT: %[[C:.*]] = sched.buffer @device_arena[320] : memref<f32>
  // CHECK-NEXT: %[[R:.*]] = sched.buffer @device_arena[448]
  // CHECK-NEXT: %[[ALL:.*]] = sched.buffer @device_arena[320] : memref<1xf32>
  // CHECK-NEXT: sched.launch count_labels on @compute ins(%[[Y]]) outs(%[[C]]) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4xi64>) -> memref<f32>
  // CHECK-NEXT: sched.record 0 on @compute
  // CHECK-NEXT: sched.wait 0 on @over_data
  // CHECK-NEXT: sched.launch_collective all_reduce sum @c, %[[ALL]] -> %[[ALL]]
  // CHECK-NEXT: sched.record 0 on @over_data
  // CHECK-NEXT: sched.wait 0 on @compute
  // CHECK-NEXT: %[[D:.*]] = sched.buffer @device_arena[384] : memref<f32> {sched.storage = 5 : i64}
  // CHECK-NEXT: %[[K:.*]] = sched.buffer @device_arena[704] : memref<f32> {sched.storage = 10 : i64}
  // CHECK-NEXT: sched.launch_map @divide on @compute ins(%[[K]], %[[C]]) outs(%[[D]]) {train.id = "dsum"} : (memref<f32>, memref<f32>) -> memref<f32>
  // CHECK-NEXT: sched.launch softmax_cross_entropy_with_grad on @compute ins(%[[D]], %[[X]], %[[Y]]) outs(%[[S]], %[[X]]) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<f32>, memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<4x8xf32>)
  // CHECK-NEXT: sched.launch_map @divide on @compute ins(%[[S]], %[[C]]) outs(%[[R]])
  // CHECK-NEXT: return
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    %ac = sched.buffer @device_arena[320] : memref<1xf32> {sched.storage = 4 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.record 0 on @compute
    sched.wait 0 on @over_data
    sched.launch_collective all_reduce sum @c, %ac -> %ac : memref<1xf32> -> memref<1xf32>
    sched.record 0 on @over_data
    sched.wait 0 on @compute
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  // CHECK-LABEL: func.func @backward()
  // CHECK-NEXT: sched.buffer @device_arena[64]
  // CHECK-NEXT: sched.buffer
  // CHECK-NEXT: sched.launch copy
  // CHECK-NEXT: return
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %z = sched.buffer @device_arena[576] : memref<4x8xf32> {sched.storage = 8 : i64}
    %k = sched.buffer @device_arena[704] : memref<f32> {sched.storage = 10 : i64}
    sched.launch_map @divide on @compute ins(%k, %c) outs(%c) {train.id = "dsum"} : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    sched.launch copy on @compute ins(%x) outs(%z) {} : (memref<4x8xf32>) -> memref<4x8xf32>
    return
  }
  // CHECK-LABEL: func.func @evaluate
  // CHECK: launch softmax_cross_entropy on @compute
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 101 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 102 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 103 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 104 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 105 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 106 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The factor may have had a place of its own.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy_with_grad on @compute
  // CHECK-LABEL: func.func @backward
  // CHECK-NEXT: return
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %own = sched.buffer @device_arena[512] : memref<f32> {sched.storage = 7 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%own) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%own, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The logits are read behind the loss, or before the gradient.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    %z = sched.buffer @device_arena[576] : memref<4x8xf32> {sched.storage = 8 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch copy on @compute ins(%x) outs(%z) {} : (memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %z = sched.buffer @device_arena[576] : memref<4x8xf32> {sched.storage = 8 : i64}
    sched.launch copy on @compute ins(%x) outs(%z) {} : (memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// Another stream may still read the logits.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    %ax = sched.buffer @device_arena[64] : memref<32xf32> {sched.storage = 1 : i64}
    %az = sched.buffer @device_arena[576] : memref<32xf32> {sched.storage = 8 : i64}
    sched.launch_collective permute sum @c, %ax -> %az to [1, 0] : memref<32xf32> -> memref<32xf32>
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// Somebody else reads the logarithms.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %lz = sched.buffer @device_arena[576] : memref<4xf32> {sched.storage = 8 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    sched.launch copy on @compute ins(%l) outs(%lz) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// Somebody else reads the factor.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    sched.launch copy on @compute ins(%c) outs(%r) {} : (memref<f32>) -> memref<f32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The factor depends on what the host does not write.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %k = sched.buffer @device_arena[704] : memref<f32> {sched.storage = 10 : i64}
    sched.launch_map @divide on @compute ins(%k, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The count is no longer there for the factor.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The sum is read before the count is known everywhere.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch copy on @compute ins(%s) outs(%r) {} : (memref<f32>) -> memref<f32>
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// Ranks join their sums first.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    %as = sched.buffer @device_arena[256] : memref<1xf32> {sched.storage = 3 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.record 0 on @compute
    sched.wait 0 on @over_data
    sched.launch_collective all_reduce sum @c, %as -> %as : memref<1xf32> -> memref<1xf32>
    sched.record 0 on @over_data
    sched.wait 0 on @compute
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// Another label is ignored.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -1 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The gradient has a place of its own.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %z = sched.buffer @device_arena[576] : memref<4x8xf32> {sched.storage = 8 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%z) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The logits are computed again.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %z = sched.buffer @device_arena[576] : memref<4x8xf32> {sched.storage = 8 : i64}
    %again = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 9 : i64}
    sched.launch copy on @compute ins(%z) outs(%again) {} : (memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %again, %y, %l) outs(%again) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The loss belongs to a repeated block.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {plan.repeat = #plan.repeat<"h", 0>} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%c) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%c, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The factor is a hyperparameter: it is read as it is, and nothing counts labels that nobody asks for.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.resource scalar @inverse : tensor<f32> of tensor<f32> #plan.layout<[]> {arena = @device_arena, offset = 704 : i64}
  // CHECK-LABEL: func.func @forward
  // CHECK-NEXT: %[[X:.*]] = sched.buffer @device_arena[64]
  // CHECK-NEXT: %[[Y:.*]] = sched.buffer @device_arena[192]
  // CHECK-NEXT: %[[S:.*]] = sched.buffer @device_arena[256]
  // CHECK-NEXT: %[[R:.*]] = sched.buffer @device_arena[448]
  // CHECK-NEXT: %[[K:.*]] = sched.buffer @device_arena[704]
  // CHECK-NEXT: %[[D:.*]] = sched.buffer @device_arena[704]
  // CHECK-NEXT: sched.launch softmax_cross_entropy_with_grad on @compute ins(%[[D]], %[[X]], %[[Y]]) outs(%[[S]], %[[X]])
  // CHECK-NEXT: sched.launch_map @multiply on @compute ins(%[[S]], %[[K]]) outs(%[[R]])
  // CHECK-NEXT: return
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    %k = sched.buffer @device_arena[704] : memref<f32> {sched.storage = 10 : i64}
    sched.launch_map @multiply on @compute ins(%s, %k) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  // CHECK-LABEL: func.func @backward()
  // CHECK-NEXT: sched.buffer @device_arena[64]
  // CHECK-NEXT: sched.buffer @device_arena[576]
  // CHECK-NEXT: sched.launch copy
  // CHECK-NEXT: return
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %z = sched.buffer @device_arena[576] : memref<4x8xf32> {sched.storage = 8 : i64}
    %k = sched.buffer @device_arena[704] : memref<f32> {sched.storage = 10 : i64}
    sched.launch softmax_cross_entropy_grad on @compute ins(%k, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    sched.launch copy on @compute ins(%x) outs(%z) {} : (memref<4x8xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @multiply(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.mul %a, %b : f32
    return %0 : f32
  }
}
}

// -----

// Equal offsets into two arenas are two places: the factor is not the hyperparameter.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.arena @host_arena host bytes 4096
  sched.resource scalar @scale : tensor<f32> of tensor<f32> #plan.layout<[]> {arena = @host_arena, offset = 512 : i64}
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %own = sched.buffer @device_arena[512] : memref<f32> {sched.storage = 7 : i64}
    sched.launch softmax_cross_entropy_grad on @compute ins(%own, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}

// -----

// The logarithms and the factor lie in no resource: that is in the other arena.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.arena @host_arena host bytes 4096
  sched.resource value @kept : tensor<64xf32> of tensor<64xf32> #plan.layout<[#plan.dim<[#plan.factor<64>]>]> {arena = @host_arena, offset = 320 : i64}
  // CHECK-LABEL: func.func @forward
  // CHECK: launch softmax_cross_entropy_with_grad on @compute
  // CHECK-LABEL: func.func @backward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<f32> {sched.storage = 3 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %r = sched.buffer @device_arena[448] : memref<f32> {sched.storage = 6 : i64}
    sched.launch softmax_cross_entropy on @compute ins(%x, %y) outs(%s, %c, %l) {ignore_index = -100 : i64} {train.id = "loss"} : (memref<4x8xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @divide on @compute ins(%s, %c) outs(%r) : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[64] : memref<4x8xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @device_arena[192] : memref<4xi64> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[320] : memref<f32> {sched.storage = 4 : i64}
    %l = sched.buffer @device_arena[384] : memref<4xf32> {sched.storage = 5 : i64}
    %own = sched.buffer @device_arena[512] : memref<f32> {sched.storage = 7 : i64}
    sched.launch_map @divide on @compute ins(%c, %c) outs(%own) : (memref<f32>, memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_grad on @compute ins(%own, %x, %y, %l) outs(%x) {ignore_index = -100 : i64} : (memref<f32>, memref<4x8xf32>, memref<4xi64>, memref<4xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @divide(%a: f32, %b: f32) -> f32 attributes {sched.scalar_function} {
    %c = train.div %a, %b : f32
    return %c : f32
  }
}
}
