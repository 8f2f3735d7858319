// RUN: windlass-opt %s -split-input-file -sched-fuse-norms | FileCheck %s

// A norm adds up what it reads: three terms, the brackets as they were, and two; operator and block are the norm's.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @forward
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %p = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 1 : i64}
    %b = sched.buffer @device_arena[128] : memref<4x8xf32, strided<[0, 1]>> {sched.storage = 2 : i64}
    %r = sched.buffer @device_arena[192] : memref<4x8xf32> {sched.storage = 3 : i64}
    %s = sched.buffer @device_arena[320] : memref<8xf32> {sched.storage = 4 : i64}
    %y = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 5 : i64}
    %m = sched.buffer @device_arena[512] : memref<4xf32> {sched.storage = 6 : i64}
    %d = sched.buffer @device_arena[576] : memref<4xf32> {sched.storage = 7 : i64}
    // CHECK: %[[P:.*]] = sched.buffer @device_arena[0]
    // CHECK: %[[B:.*]] = sched.buffer @device_arena[128]
    // CHECK: %[[R:.*]] = sched.buffer @device_arena[192]
    // CHECK: %[[S:.*]] = sched.buffer @device_arena[320]
    // CHECK: %[[Y:.*]] = sched.buffer @device_arena[384]
    // CHECK-NOT: launch_map
    // CHECK: sched.launch add_layer_norm on @compute ins(%[[P]], %[[B]], %[[R]], %[[S]], %[[S]]) outs(%[[P]], %[[Y]], %{{.*}}, %{{.*}}) {epsilon = 1.000000e-05 : f64, terms = 3 : i64} {plan.repeat = #plan.repeat<"h", 1>, train.id = "norm"}
    // CHECK-NEXT: sched.launch add_rms_norm on @compute ins(%[[Y]], %[[P]], %[[S]]) outs(%[[R]], %[[P]], %{{.*}}) {epsilon = 1.000000e-05 : f64, terms = 2 : i64}
    // CHECK-NEXT: return
    sched.launch_map @three on @compute ins(%p, %b, %r) outs(%p) {plan.repeat = #plan.repeat<"h", 0>, train.id = "add"} : (memref<4x8xf32>, memref<4x8xf32, strided<[0, 1]>>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch layer_norm on @compute ins(%p, %s, %s) outs(%y, %m, %d) {epsilon = 1.0e-5 : f64} {plan.repeat = #plan.repeat<"h", 1>, train.id = "norm"} : (memref<4x8xf32>, memref<8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>, memref<4xf32>)
    // The second result takes the place of a term.
    sched.launch_map @two on @compute ins(%y, %p) outs(%r) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch rms_norm on @compute ins(%r, %s) outs(%p, %d) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>)
    return
  }
  // CHECK-NOT: @three
  func.func private @three(%x: f32, %y: f32, %z: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %y : f32
    %1 = train.add %z, %0 : f32
    return %1 : f32
  }
  func.func private @two(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.accumulate %x, %y : f32
    return %0 : f32
  }
}
}

// -----

// What forbids it.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // The function does something else, the sum is read before, another stream may wait for it, or bytes overlap.
  // CHECK-LABEL: func.func @stays
  // CHECK-COUNT-5: launch_map
  // CHECK: return
  func.func @stays() {
    %x = sched.buffer @device_arena[0] : memref<4x8xf32>
    %r = sched.buffer @device_arena[128] : memref<4x8xf32>
    %s = sched.buffer @device_arena[256] : memref<8xf32>
    %y = sched.buffer @device_arena[320] : memref<4x8xf32>
    %d = sched.buffer @device_arena[448] : memref<4xf32>
    %o = sched.buffer @device_arena[512] : memref<4x8xf32>
    %in = sched.buffer @device_arena[144] : memref<4xf32>
    %turned = sched.buffer @device_arena[128] : memref<4x8xf32, strided<[1, 4]>>
    sched.launch_map @product on @compute ins(%x, %r) outs(%x) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch rms_norm on @compute ins(%x, %s) outs(%y, %d) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>)
    sched.launch_map @sum on @compute ins(%x, %r) outs(%x) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch copy on @compute ins(%x) outs(%o) {} : (memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch rms_norm on @compute ins(%x, %s) outs(%y, %d) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>)
    sched.launch_map @sum on @compute ins(%x, %r) outs(%x) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.record 0 on @compute
    sched.launch rms_norm on @compute ins(%x, %s) outs(%y, %d) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>)
    sched.launch_map @sum on @compute ins(%x, %r) outs(%x) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch rms_norm on @compute ins(%x, %s) outs(%y, %in) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>)
    sched.launch_map @sum on @compute ins(%x, %r) outs(%x) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch rms_norm on @compute ins(%x, %s) outs(%turned, %d) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32, strided<[1, 4]>>, memref<4xf32>)
    return
  }
  func.func private @product(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.mul %x, %y : f32
    return %0 : f32
  }
  func.func private @sum(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %y : f32
    return %0 : f32
  }
}
}

// -----

// The gradient of a norm adds to the gradients of its parameters, and what a map adds to that of its input.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @backward
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %g = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 1 : i64}
    %x = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 3 : i64}
    %m = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 4 : i64}
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 5 : i64}
    %ds = sched.buffer @device_arena[512] : memref<8xf32> {sched.storage = 6 : i64}
    %db = sched.buffer @device_arena[576] : memref<8xf32> {sched.storage = 7 : i64}
    %scale = sched.buffer @device_arena[640] : memref<8xf32> {sched.storage = 8 : i64}
    %bias = sched.buffer @device_arena[704] : memref<8xf32> {sched.storage = 9 : i64}
    %more = sched.buffer @device_arena[768] : memref<4x8xf32> {sched.storage = 10 : i64}
    // CHECK: %[[G:.*]] = sched.buffer @device_arena[0]
    // CHECK: %[[X:.*]] = sched.buffer @device_arena[128]
    // CHECK: %[[SCALE:.*]] = sched.buffer @device_arena[640]
    // CHECK: %[[BIAS:.*]] = sched.buffer @device_arena[704]
    // CHECK: %[[MORE:.*]] = sched.buffer @device_arena[768]
    // CHECK-NEXT: sched.launch layer_norm_grad on @compute ins(%[[G]], %[[X]], %{{.*}}, %{{.*}}, %{{.*}}, %[[MORE]]) outs(%[[MORE]], %[[SCALE]], %[[BIAS]]) {} accumulate_after_first {train.id = "norm"}
    // CHECK-NEXT: return
    sched.launch layer_norm_grad on @compute ins(%g, %x, %s, %m, %m) outs(%dx, %ds, %db) {} {train.id = "norm"} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>, memref<8xf32>)
    sched.launch_map @copy on @compute ins(%ds) outs(%scale) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.launch_map @copy on @compute ins(%db) outs(%bias) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.launch_map @sum on @compute ins(%more, %dx) outs(%more) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    return
  }
  // Only one of the parameters is added to; the gradient of the input is read twice; the sum would take the place of
  // what the command reads.
  // CHECK-LABEL: func.func @stays
  // CHECK: launch layer_norm_grad{{.*}} {} :
  // CHECK-NEXT: launch_map @copy
  // CHECK-NEXT: launch copy
  // CHECK-NEXT: launch_map @sum
  // CHECK-NEXT: launch rms_norm_grad{{.*}} {} accumulate_after_first :
  // CHECK-NEXT: launch_map @sum
  // CHECK-NEXT: return
  func.func @stays() {
    %g = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 101 : i64}
    %x = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 102 : i64}
    %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 103 : i64}
    %m = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 104 : i64}
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 105 : i64}
    %ds = sched.buffer @device_arena[512] : memref<8xf32> {sched.storage = 106 : i64}
    %db = sched.buffer @device_arena[576] : memref<8xf32> {sched.storage = 107 : i64}
    %scale = sched.buffer @device_arena[640] : memref<8xf32> {sched.storage = 108 : i64}
    %more = sched.buffer @device_arena[768] : memref<4x8xf32> {sched.storage = 110 : i64}
    %again = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 111 : i64}
    sched.launch layer_norm_grad on @compute ins(%g, %x, %s, %m, %m) outs(%dx, %ds, %db) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>, memref<8xf32>)
    sched.launch_map @copy on @compute ins(%ds) outs(%scale) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.launch copy on @compute ins(%dx) outs(%x) {} : (memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch_map @sum on @compute ins(%more, %dx) outs(%more) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch rms_norm_grad on @compute ins(%g, %x, %s, %m) outs(%again, %ds) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>)
    sched.launch_map @copy on @compute ins(%ds) outs(%scale) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.launch_map @sum on @compute ins(%more, %again) outs(%g) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @copy(%x: f32) -> f32 attributes {sched.scalar_function} {
    return %x : f32
  }
  func.func private @sum(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %y : f32
    return %0 : f32
  }
}
}

// -----

// The gradient of the norm's input is handed to the weight gradient too, so it is written.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @backward
  // CHECK: launch rms_norm_grad{{.*}} {} :
  // CHECK-NEXT: launch_map @sum
  // CHECK-NEXT: return
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %g = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 1 : i64}
    %x = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 3 : i64}
    %m = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 4 : i64}
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 5 : i64}
    %ds = sched.buffer @device_arena[512] : memref<8xf32> {sched.storage = 6 : i64}
    %more = sched.buffer @device_arena[768] : memref<4x8xf32> {sched.storage = 7 : i64}
    sched.launch rms_norm_grad on @compute ins(%g, %x, %s, %m) outs(%dx, %ds) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>)
    sched.launch_map @sum on @compute ins(%more, %dx) outs(%more) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    return
  }
  func.func @weight_gradient() attributes {sched.step = #sched.step<weight_gradient, chunk 0>} {
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 5 : i64}
    %sum = sched.buffer @device_arena[1024] : memref<4x8xf32> {sched.storage = 8 : i64}
    sched.launch_map @sum on @compute ins(%dx, %dx) outs(%sum) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    return
  }
  func.func private @sum(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %y : f32
    return %0 : f32
  }
}
}

// -----

// Equal offsets into two arenas are two places: the sum is not what the norm reads.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.arena @host_arena host bytes 4096
  // CHECK-LABEL: func.func @other_arena
  // CHECK: launch_map @two
  // CHECK-NEXT: launch rms_norm
  func.func @other_arena() {
    %x = sched.buffer @device_arena[0] : memref<4x8xf32>
    %other = sched.buffer @host_arena[0] : memref<4x8xf32>
    %r = sched.buffer @device_arena[128] : memref<4x8xf32>
    %s = sched.buffer @device_arena[256] : memref<8xf32>
    %y = sched.buffer @device_arena[320] : memref<4x8xf32>
    %d = sched.buffer @device_arena[448] : memref<4xf32>
    sched.launch_map @two on @compute ins(%x, %r) outs(%other) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch rms_norm on @compute ins(%x, %s) outs(%y, %d) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>)
    return
  }
  // What is written between them is none of their operands.
  // CHECK-LABEL: func.func @past_another_arena
  // CHECK: launch fill
  // CHECK-NEXT: launch add_rms_norm
  func.func @past_another_arena() {
    %x = sched.buffer @device_arena[0] : memref<4x8xf32>
    %r = sched.buffer @device_arena[128] : memref<4x8xf32>
    %other = sched.buffer @host_arena[128] : memref<4x8xf32>
    %s = sched.buffer @device_arena[256] : memref<8xf32>
    %y = sched.buffer @device_arena[320] : memref<4x8xf32>
    %d = sched.buffer @device_arena[448] : memref<4xf32>
    sched.launch_map @two on @compute ins(%x, %r) outs(%x) : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch fill on @compute ins() outs(%other) {value = 0.0 : f64} : () -> memref<4x8xf32>
    sched.launch rms_norm on @compute ins(%x, %s) outs(%y, %d) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>)
    return
  }
  func.func private @two(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %y : f32
    return %0 : f32
  }
}
}

// -----

// Sums of the parameters' gradients pass what begins the reduction of another one, as they move up.
module {
sched.program @program on <[<"data", 2>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @all over ["data"] on @over_data
  // What waits for the record waits for both sums then.
  // CHECK-LABEL: func.func @backward
  // CHECK: %[[SCALE:.*]] = sched.buffer @device_arena[576]
  // CHECK: %[[BIAS:.*]] = sched.buffer @device_arena[608]
  // CHECK-NEXT: sched.launch layer_norm_grad on @compute {{.*}} outs(%{{.*}}, %[[SCALE]], %[[BIAS]]) {} accumulate_after_first
  // CHECK-NEXT: sched.record 0 on @compute {sched.in_last}
  // CHECK-NEXT: sched.wait 0 on @over_data {sched.in_last}
  // CHECK-NEXT: sched.launch_collective all_reduce sum @all, %[[SCALE]] -> %[[SCALE]] {sched.in_last}
  // CHECK-NEXT: return
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %g = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 1 : i64}
    %x = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 2 : i64}
    %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 3 : i64}
    %m = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 4 : i64}
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 5 : i64}
    %ds = sched.buffer @device_arena[512] : memref<8xf32> {sched.storage = 6 : i64}
    %db = sched.buffer @device_arena[544] : memref<8xf32> {sched.storage = 7 : i64}
    %scale = sched.buffer @device_arena[576] : memref<8xf32> {sched.storage = 8 : i64}
    sched.launch layer_norm_grad on @compute ins(%g, %x, %s, %m, %m) outs(%dx, %ds, %db) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>, memref<8xf32>)
    sched.launch_map @copy on @compute ins(%ds) outs(%scale) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.record 0 on @compute {sched.in_last}
    sched.wait 0 on @over_data {sched.in_last}
    sched.launch_collective all_reduce sum @all, %scale -> %scale {sched.in_last} : memref<8xf32> -> memref<8xf32>
    %bias = sched.buffer @device_arena[608] : memref<8xf32> {sched.storage = 9 : i64}
    sched.launch_map @copy on @compute ins(%db) outs(%bias) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    return
  }
  // The second sum waits for another stream, for whatever that does to its bytes.
  // CHECK-LABEL: func.func @waits
  // CHECK: launch layer_norm_grad{{.*}} {} :
  // CHECK-COUNT-2: launch_map @copy
  // CHECK: return
  func.func @waits() {
    %g = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 101 : i64}
    %x = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 102 : i64}
    %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 103 : i64}
    %m = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 104 : i64}
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 105 : i64}
    %ds = sched.buffer @device_arena[512] : memref<8xf32> {sched.storage = 106 : i64}
    %db = sched.buffer @device_arena[544] : memref<8xf32> {sched.storage = 107 : i64}
    %scale = sched.buffer @device_arena[576] : memref<8xf32> {sched.storage = 108 : i64}
    %bias = sched.buffer @device_arena[608] : memref<8xf32> {sched.storage = 109 : i64}
    sched.launch_collective all_reduce sum @all, %bias -> %bias {sched.in_last} : memref<8xf32> -> memref<8xf32>
    sched.launch layer_norm_grad on @compute ins(%g, %x, %s, %m, %m) outs(%dx, %ds, %db) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>, memref<8xf32>)
    sched.launch_map @copy on @compute ins(%ds) outs(%scale) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.record 0 on @compute {sched.in_last}
    sched.wait 0 on @over_data {sched.in_last}
    sched.record 1 on @over_data {sched.in_last}
    sched.wait 1 on @compute {sched.in_last}
    sched.launch_map @copy on @compute ins(%db) outs(%bias) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    return
  }
  // What stands between writes over the second sum.
  // CHECK-LABEL: func.func @reduced
  // CHECK: launch layer_norm_grad{{.*}} {} :
  // CHECK-COUNT-2: launch_map @copy
  // CHECK: return
  func.func @reduced() {
    %g = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 201 : i64}
    %x = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 202 : i64}
    %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 203 : i64}
    %m = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 204 : i64}
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 205 : i64}
    %ds = sched.buffer @device_arena[512] : memref<8xf32> {sched.storage = 206 : i64}
    %db = sched.buffer @device_arena[544] : memref<8xf32> {sched.storage = 207 : i64}
    %scale = sched.buffer @device_arena[576] : memref<8xf32> {sched.storage = 208 : i64}
    %bias = sched.buffer @device_arena[608] : memref<8xf32> {sched.storage = 209 : i64}
    sched.launch layer_norm_grad on @compute ins(%g, %x, %s, %m, %m) outs(%dx, %ds, %db) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>, memref<8xf32>)
    sched.launch_map @copy on @compute ins(%ds) outs(%scale) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.record 0 on @compute {sched.in_last}
    sched.wait 0 on @over_data {sched.in_last}
    sched.launch_collective all_reduce sum @all, %bias -> %bias {sched.in_last} : memref<8xf32> -> memref<8xf32>
    sched.launch_map @copy on @compute ins(%db) outs(%bias) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    return
  }
  // It writes over what the second sum adds.
  // CHECK-LABEL: func.func @overwritten
  // CHECK: launch layer_norm_grad{{.*}} {} :
  // CHECK-COUNT-2: launch_map @copy
  // CHECK: return
  func.func @overwritten() {
    %g = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 301 : i64}
    %x = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 302 : i64}
    %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 303 : i64}
    %m = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 304 : i64}
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 305 : i64}
    %ds = sched.buffer @device_arena[512] : memref<8xf32> {sched.storage = 306 : i64}
    %db = sched.buffer @device_arena[544] : memref<8xf32> {sched.storage = 307 : i64}
    %scale = sched.buffer @device_arena[576] : memref<8xf32> {sched.storage = 308 : i64}
    %bias = sched.buffer @device_arena[608] : memref<8xf32> {sched.storage = 309 : i64}
    sched.launch layer_norm_grad on @compute ins(%g, %x, %s, %m, %m) outs(%dx, %ds, %db) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>, memref<8xf32>)
    sched.launch_map @copy on @compute ins(%ds) outs(%scale) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.record 0 on @compute {sched.in_last}
    sched.wait 0 on @over_data {sched.in_last}
    sched.launch_collective all_reduce sum @all, %db -> %db {sched.in_last} : memref<8xf32> -> memref<8xf32>
    sched.launch_map @copy on @compute ins(%db) outs(%bias) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    return
  }
  // The second sum runs in the last backward only.
  // CHECK-LABEL: func.func @in_last
  // CHECK: launch layer_norm_grad{{.*}} {} :
  // CHECK-COUNT-2: launch_map @copy
  // CHECK: return
  func.func @in_last() {
    %g = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 401 : i64}
    %x = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 402 : i64}
    %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 403 : i64}
    %m = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 404 : i64}
    %dx = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 405 : i64}
    %ds = sched.buffer @device_arena[512] : memref<8xf32> {sched.storage = 406 : i64}
    %db = sched.buffer @device_arena[544] : memref<8xf32> {sched.storage = 407 : i64}
    %scale = sched.buffer @device_arena[576] : memref<8xf32> {sched.storage = 408 : i64}
    %bias = sched.buffer @device_arena[608] : memref<8xf32> {sched.storage = 409 : i64}
    sched.launch layer_norm_grad on @compute ins(%g, %x, %s, %m, %m) outs(%dx, %ds, %db) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>, memref<8xf32>)
    sched.launch_map @copy on @compute ins(%ds) outs(%scale) accumulate_after_first : (memref<8xf32>) -> memref<8xf32>
    sched.launch_map @copy on @compute ins(%db) outs(%bias) accumulate_after_first {sched.in_last} : (memref<8xf32>) -> memref<8xf32>
    return
  }
  func.func private @copy(%x: f32) -> f32 attributes {sched.scalar_function} {
    return %x : f32
  }
}
}

// -----

// A sum of four terms stays.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @four_terms
  // CHECK: launch_map @four
  // CHECK-NEXT: sched.launch rms_norm
  func.func @four_terms() {
    %a = sched.buffer @device_arena[0] : memref<4x8xf32>
    %b = sched.buffer @device_arena[128] : memref<4x8xf32>
    %c = sched.buffer @device_arena[256] : memref<4x8xf32>
    %s = sched.buffer @device_arena[384] : memref<8xf32>
    %y = sched.buffer @device_arena[512] : memref<4x8xf32>
    %d = sched.buffer @device_arena[640] : memref<4xf32>
    sched.launch_map @four on @compute ins(%a, %b, %c, %y) outs(%a) : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
    sched.launch rms_norm on @compute ins(%a, %s) outs(%b, %d) {epsilon = 1.0e-5 : f64} : (memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4xf32>)
    return
  }
  func.func private @four(%x: f32, %y: f32, %z: f32, %w: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %y : f32
    %1 = train.add %0, %z : f32
    %2 = train.add %1, %w : f32
    return %2 : f32
  }
}
}
