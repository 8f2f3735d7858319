// RUN: windlass-opt %s -split-input-file -sched-fuse-updates | FileCheck %s

// A step writes the weight in 16 bits where a map behind it only rounds; operator and block are named as before.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  // CHECK-LABEL: func.func @update
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.buffer @device_arena[0] : memref<4x8xf32>
    %m = sched.buffer @device_arena[128] : memref<4x8xf32>
    %v = sched.buffer @device_arena[256] : memref<4x8xf32>
    %g = sched.buffer @device_arena[384] : memref<4x8xf32>
    %s = sched.buffer @device_arena[512] : memref<f32>
    %h = sched.buffer @device_arena[576] : memref<4x8xbf16>
    // CHECK: %[[W:.*]] = sched.buffer @device_arena[0]
    // CHECK: %[[M:.*]] = sched.buffer @device_arena[128]
    // CHECK: %[[V:.*]] = sched.buffer @device_arena[256]
    // CHECK: %[[G:.*]] = sched.buffer @device_arena[384]
    // CHECK: %[[S:.*]] = sched.buffer @device_arena[512]
    // CHECK: %[[H:.*]] = sched.buffer @device_arena[576]
    // CHECK-NEXT: sched.launch adamw on @compute ins(%[[W]], %[[M]], %[[V]], %[[G]], %[[S]], {{.*}}) outs(%[[W]], %[[M]], %[[V]], %[[H]]) {decays} {plan.repeat = #plan.repeat<"u", 1>, train.id = "adamw.w"}
    // CHECK-NEXT: return
    sched.launch adamw on @compute ins(%w, %m, %v, %g, %s, %s, %s, %s, %s, %s, %s, %s) outs(%w, %m, %v) {decays} {plan.repeat = #plan.repeat<"u", 1>, train.id = "adamw.w"} : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>)
    sched.launch_map @round on @compute ins(%w) outs(%h) {plan.repeat = #plan.repeat<"u", 1>, train.id = "cast.w"} : (memref<4x8xf32>) -> memref<4x8xbf16>
    return
  }
  // Nothing applies it any more.
  // CHECK-NOT: @round
  func.func private @round(%x: f32) -> bf16 attributes {sched.scalar_function} {
    %y = train.cast %x : f32 -> bf16
    return %y : bf16
  }
}
}

// -----

module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @host host
  // The step moves over what touches none of its bytes, and over waits, to the map.
  // CHECK-LABEL: func.func @moves
  // CHECK-NOT: launch
  // CHECK: sched.launch sgd{{.*}} {train.id = "w"}
  // CHECK-NEXT: sched.wait 0 on @compute
  // CHECK-NEXT: sched.launch sgd{{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}}) {} {train.id = "u"}
  // CHECK-NEXT: sched.launch_map @other
  // CHECK-NEXT: return
  func.func @moves() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    %w2 = sched.buffer @device_arena[320] : memref<8xf32>
    %m2 = sched.buffer @device_arena[384] : memref<8xf32>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} {train.id = "u"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch sgd on @compute ins(%w2, %m2, %g, %s, %s, %s, %s) outs(%w2, %m2) {} {train.id = "w"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.wait 0 on @compute
    sched.launch_map @round on @compute ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    sched.launch_map @other on @compute ins(%w2) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  // Another stream may wait for the step, so that the map moves to it.
  // CHECK-LABEL: func.func @recorded
  // CHECK: launch sgd{{.*}} -> (memref<8xf32>, memref<8xf32>, memref<8xf16>)
  // CHECK-NEXT: sched.record 0
  // CHECK-NEXT: return
  func.func @recorded() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.record 0 on @compute
    sched.launch_map @round on @compute ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  // The map waits for what another stream does to its bytes.
  // CHECK-LABEL: func.func @awaited
  // CHECK: launch sgd
  // CHECK: launch_map @round
  func.func @awaited() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.record 0 on @compute
    sched.wait 1 on @compute
    sched.launch_map @round on @compute ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  // The weight is written between them.
  // CHECK-LABEL: func.func @written
  // CHECK: launch sgd
  // CHECK: launch_map @round
  func.func @written() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch fill on @compute ins() outs(%w) {value = 0.0 : f64} : () -> memref<8xf32>
    sched.launch_map @round on @compute ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  // It is read between them, so that the step cannot move, but the map can.
  // CHECK-LABEL: func.func @read
  // CHECK: launch sgd{{.*}} -> (memref<8xf32>, memref<8xf32>, memref<8xf16>)
  // CHECK-NEXT: sched.launch copy
  // CHECK-NEXT: return
  func.func @read() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    %o = sched.buffer @device_arena[320] : memref<8xf32>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch copy on @compute ins(%w) outs(%o) {} : (memref<8xf32>) -> memref<8xf32>
    sched.launch_map @round on @compute ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  // The rounded weight would take the place of the gradient, which the step reads.
  // CHECK-LABEL: func.func @over
  // CHECK: launch sgd
  // CHECK: launch_map @round
  func.func @over() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[144] : memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch_map @round on @compute ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  // A part of the weight; before the step.
  // CHECK-LABEL: func.func @part
  // CHECK: launch_map @round
  // CHECK: launch sgd
  // CHECK: launch_map @round
  func.func @part() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %part = sched.buffer @device_arena[0] : memref<4xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    %hpart = sched.buffer @device_arena[256] : memref<4xf16>
    sched.launch_map @round on @compute ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch_map @round on @compute ins(%part) outs(%hpart) : (memref<4xf32>) -> memref<4xf16>
    return
  }
  // The state; on another stream.
  // CHECK-LABEL: func.func @others
  // CHECK: launch sgd
  // CHECK: launch_map @round
  // CHECK: launch_map @round on @host
  func.func @others() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch_map @round on @compute ins(%m) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    sched.launch_map @round on @host ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  // Added to what is there.
  // CHECK-LABEL: func.func @added
  // CHECK: launch sgd
  // CHECK: launch_map @round
  func.func @added() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch_map @round on @compute ins(%w) outs(%h) accumulate_after_first : (memref<8xf32>) -> memref<8xf16>
    return
  }
  func.func private @round(%x: f32) -> f16 attributes {sched.scalar_function} {
    %y = train.cast %x : f32 -> f16
    return %y : f16
  }
  func.func private @other(%x: f32) -> f16 attributes {sched.scalar_function} {
    %n = train.neg %x : f32
    %y = train.cast %n : f32 -> f16
    return %y : f16
  }
}
}

// -----

// Equal offsets into two arenas are two places.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.arena @host_arena host bytes 4096
  // What is rounded is no weight of the step.
  // CHECK-LABEL: func.func @other_arena
  // CHECK: launch sgd{{.*}} outs(%{{[^,]*}}, %{{[^,]*}}) {}
  // CHECK-NEXT: launch_map @round
  func.func @other_arena() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %other = sched.buffer @host_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @device_arena[256] : memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch_map @round on @compute ins(%other) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  // What is written between them and where the result goes touch no byte of the step.
  // CHECK-LABEL: func.func @past_another_arena
  // CHECK: launch fill
  // CHECK-NEXT: launch sgd{{.*}} outs(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}) {}
  // CHECK-NEXT: return
  func.func @past_another_arena() {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %other = sched.buffer @host_arena[0] : memref<8xf32>
    %m = sched.buffer @device_arena[64] : memref<8xf32>
    %g = sched.buffer @device_arena[128] : memref<8xf32>
    %s = sched.buffer @device_arena[192] : memref<f32>
    %h = sched.buffer @host_arena[128] : memref<8xf16>
    sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m) {} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>)
    sched.launch fill on @compute ins() outs(%other) {value = 0.0 : f64} : () -> memref<8xf32>
    sched.launch_map @round on @compute ins(%w) outs(%h) : (memref<8xf32>) -> memref<8xf16>
    return
  }
  func.func private @round(%x: f32) -> f16 attributes {sched.scalar_function} {
    %y = train.cast %x : f32 -> f16
    return %y : f16
  }
}
}
