// RUN: windlass-opt --sched-to-emitc -split-input-file -verify-diagnostics %s

sched.arena @device_arena bytes 64
func.func @init() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error@+1 {{the runtime has no kernel 'paint'}}
  sched.launch "paint" stream 0 ins() outs(%a) {} : () -> memref<4xf32>
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }

// -----

sched.arena @device_arena bytes 64
func.func @init() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error@+1 {{kernel 'copy' does not take 0 operands and 1 results}}
  sched.launch "copy" stream 0 ins() outs(%a) {} : () -> memref<4xf32>
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }

// -----

// expected-error@+1 {{level L5 needs a function @init}}
module {}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  sched.arena @device_arena bytes 64
  func.func @init() {
    %a = sched.buffer @device_arena[0] : memref<2x4xf32>
    %b = sched.buffer @device_arena[32] : memref<4xf32>
    // expected-error@+1 {{kernel 'own_part' names axis 2, which the mesh of 2 axes lacks or the setting has already}}
    sched.launch "own_part" stream 0 ins(%a) outs(%b) {axes = array<i64: 0, 2>} : (memref<2x4xf32>) -> memref<4xf32>
    return
  }
  func.func @forward() { return }
  func.func @backward() { return }
  func.func @backward_reduce() { return }
  func.func @update() { return }
  func.func @evaluate() { return }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  sched.arena @device_arena bytes 64
  func.func @init() {
    %a = sched.buffer @device_arena[0] : memref<4x4xf32>
    %b = sched.buffer @device_arena[32] : memref<4xf32>
    // expected-error@+1 {{kernel 'own_part' names axis 0, which the mesh of 2 axes lacks or the setting has already}}
    sched.launch "own_part" stream 0 ins(%a) outs(%b) {axes = array<i64: 0, 0>} : (memref<4x4xf32>) -> memref<4xf32>
    return
  }
  func.func @forward() { return }
  func.func @backward() { return }
  func.func @backward_reduce() { return }
  func.func @update() { return }
  func.func @evaluate() { return }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  sched.arena @device_arena bytes 64
  func.func @init() {
    %a = sched.buffer @device_arena[0] : memref<2x4xf32>
    %b = sched.buffer @device_arena[32] : memref<4xf32>
    // expected-error@+1 {{kernel 'own_part' takes one of 4 blocks, but its operand is 'memref<2x4xf32>' and its result 'memref<4xf32>'}}
    sched.launch "own_part" stream 0 ins(%a) outs(%b) {axes = array<i64: 1, 0>} : (memref<2x4xf32>) -> memref<4xf32>
    return
  }
  func.func @forward() { return }
  func.func @backward() { return }
  func.func @backward_reduce() { return }
  func.func @update() { return }
  func.func @evaluate() { return }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  sched.arena @device_arena bytes 64
  func.func @init() {
    %a = sched.buffer @device_arena[0] : memref<2x3xf32>
    %b = sched.buffer @device_arena[32] : memref<4xf32>
    // expected-error@+1 {{kernel 'own_part' takes one of 2 blocks, but its operand is 'memref<2x3xf32>' and its result 'memref<4xf32>'}}
    sched.launch "own_part" stream 0 ins(%a) outs(%b) {axes = array<i64: 1>} : (memref<2x3xf32>) -> memref<4xf32>
    return
  }
  func.func @forward() { return }
  func.func @backward() { return }
  func.func @backward_reduce() { return }
  func.func @update() { return }
  func.func @evaluate() { return }
}

// -----

sched.arena @device_arena bytes 4096
func.func @init() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %m = sched.buffer @device_arena[128] : memref<4xf32>
  %g = sched.buffer @device_arena[192] : memref<4xf32>
  // expected-error@+1 {{the runtime has no step 'sgd' of 2 parameters}}
  sched.launch "sgd" stream 0 ins(%a, %m, %g, %a, %m, %g, %s, %s, %s, %s) outs(%a, %m, %a, %m) {} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>)
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }

// -----

sched.arena @device_arena bytes 4096
func.func @init() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<2x2xf32>
  %m = sched.buffer @device_arena[128] : memref<2x2xf32>
  %v = sched.buffer @device_arena[192] : memref<2x2xf32>
  %g = sched.buffer @device_arena[256] : memref<2x2xf32, strided<[1, 2]>>
  // expected-error@+1 {{of several parameters needs them dense, but one is 'memref<2x2xf32, strided<[1, 2]>>'}}
  sched.launch "adamw" stream 0 ins(%a, %m, %v, %g, %a, %m, %v, %g, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %m, %v, %a, %m, %v) {} : (memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32, strided<[1, 2]>>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32, strided<[1, 2]>>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>)
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }

// -----

sched.arena @device_arena bytes 4096
func.func @init() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %m = sched.buffer @device_arena[128] : memref<4xf32>
  %v = sched.buffer @device_arena[192] : memref<4xf32>
  %g = sched.buffer @device_arena[256] : memref<4xf32>
  %b = sched.buffer @device_arena[320] : memref<4xf32>
  // expected-error@+1 {{kernel 'adamw' updates in place: its results must be its first operands}}
  sched.launch "adamw" stream 0 ins(%a, %m, %v, %g, %a, %m, %v, %g, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %m, %v, %b, %m, %v) {} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>)
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }

// -----

sched.arena @device_arena bytes 4096
func.func @init() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %d = sched.buffer @device_arena[64] : memref<f32>
  %x = sched.buffer @device_arena[128] : memref<2x4xf32>
  %y = sched.buffer @device_arena[192] : memref<2xi64>
  %z = sched.buffer @device_arena[256] : memref<2x4xf32>
  // expected-error@+1 {{kernel 'softmax_cross_entropy_with_grad' writes over its logits: its second result must be those}}
  sched.launch "softmax_cross_entropy_with_grad" stream 0 ins(%d, %x, %y) outs(%s, %z) {ignore_index = -100 : i64} : (memref<f32>, memref<2x4xf32>, memref<2xi64>) -> (memref<f32>, memref<2x4xf32>)
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }

// -----

sched.arena @device_arena bytes 4096
func.func @init() {
  %a = sched.buffer @device_arena[0] : memref<4x8xf32>
  %s = sched.buffer @device_arena[256] : memref<8xf32>
  %r = sched.buffer @device_arena[320] : memref<4xf32>
  %y = sched.buffer @device_arena[384] : memref<4x8xf32>
  // expected-error@+1 {{kernel 'add_rms_norm' of 3 terms does not take 3 operands}}
  sched.launch "add_rms_norm" stream 0 ins(%a, %a, %s) outs(%a, %y, %r) {epsilon = 1.0e-5 : f64, terms = 3 : i64} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>, memref<4xf32>)
  return
}
func.func @forward() { return }
func.func @backward() { return }
func.func @backward_reduce() { return }
func.func @update() { return }
func.func @evaluate() { return }
