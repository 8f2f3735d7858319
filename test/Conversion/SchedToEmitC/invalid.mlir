// RUN: windlass-opt --sched-to-emitc -split-input-file -verify-diagnostics %s

// expected-error@+1 {{has no functions of a step}}
sched.program @program on <[]> {}

// -----

// expected-error@+1 {{needs, at level L5, a function with the role backward of chunk 0}}
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 64
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
}

// -----

// expected-error@+1 {{has no sched.program}}
module {}

// -----

// expected-error@+1 {{has no placement of its 2 programs: has 2 schedules for 1 positions}}
module {
sched.program @first on <[]> {}
sched.program @second on <[]> {}
}

// -----

module {
sched.program @program on <[<"a", 2>, <"b", 2>]> {
  sched.arena @device_arena device bytes 64
  sched.stream @compute compute
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<2x4xf32>
    %b = sched.buffer @device_arena[32] : memref<4xf32>
    // expected-error@+1 {{kernel 'own_part' names axis 2, which the mesh of 2 axes lacks or the setting has already}}
    sched.launch own_part on @compute ins(%a) outs(%b) {axes = array<i64: 0, 2>} : (memref<2x4xf32>) -> memref<4xf32>
    return
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>, <"b", 2>]> {
  sched.arena @device_arena device bytes 64
  sched.stream @compute compute
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4x4xf32>
    %b = sched.buffer @device_arena[32] : memref<4xf32>
    // expected-error@+1 {{kernel 'own_part' names axis 0, which the mesh of 2 axes lacks or the setting has already}}
    sched.launch own_part on @compute ins(%a) outs(%b) {axes = array<i64: 0, 0>} : (memref<4x4xf32>) -> memref<4xf32>
    return
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>, <"b", 2>]> {
  sched.arena @device_arena device bytes 64
  sched.stream @compute compute
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<2x4xf32>
    %b = sched.buffer @device_arena[32] : memref<4xf32>
    // expected-error@+1 {{kernel 'own_part' takes one of 4 blocks, but its operand is 'memref<2x4xf32>' and its result 'memref<4xf32>'}}
    sched.launch own_part on @compute ins(%a) outs(%b) {axes = array<i64: 1, 0>} : (memref<2x4xf32>) -> memref<4xf32>
    return
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>, <"b", 2>]> {
  sched.arena @device_arena device bytes 64
  sched.stream @compute compute
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<2x3xf32>
    %b = sched.buffer @device_arena[32] : memref<4xf32>
    // expected-error@+1 {{kernel 'own_part' takes one of 2 blocks, but its operand is 'memref<2x3xf32>' and its result 'memref<4xf32>'}}
    sched.launch own_part on @compute ins(%a) outs(%b) {axes = array<i64: 1>} : (memref<2x3xf32>) -> memref<4xf32>
    return
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<2x2xf32>
  %m = sched.buffer @device_arena[128] : memref<2x2xf32>
  %v = sched.buffer @device_arena[192] : memref<2x2xf32>
  %b = sched.buffer @device_arena[512] : memref<2x2xf32>
  %n = sched.buffer @device_arena[576] : memref<2x2xf32>
  %w = sched.buffer @device_arena[640] : memref<2x2xf32>
  %g = sched.buffer @device_arena[256] : memref<2x2xf32, strided<[1, 2]>>
  // expected-error@+1 {{of several parameters needs them dense, but one is 'memref<2x2xf32, strided<[1, 2]>>'}}
  sched.launch adamw on @compute ins(%a, %m, %v, %g, %b, %n, %w, %g, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %m, %v, %b, %n, %w) {} : (memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32, strided<[1, 2]>>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32, strided<[1, 2]>>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>, memref<2x2xf32>)
  return
}
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<2x2xf32>
  %g = sched.buffer @device_arena[256] : memref<2x2xf32, strided<[1, 2]>>
  // expected-error@+1 {{of several gradients needs them dense, but one is 'memref<2x2xf32, strided<[1, 2]>>'}}
  sched.launch square_sum on @compute ins(%a, %g) outs(%s) {} : (memref<2x2xf32>, memref<2x2xf32, strided<[1, 2]>>) -> memref<f32>
  return
}
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<2x2xf32>
  %g = sched.buffer @device_arena[256] : memref<4xbf16>
  // expected-error@+1 {{of several gradients needs them in 'f32', but one is 'memref<4xbf16>'}}
  sched.launch square_sum on @compute ins(%a, %g) outs(%s) {} : (memref<2x2xf32>, memref<4xbf16>) -> memref<f32>
  return
}
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<2x2xf16>
  %g = sched.buffer @device_arena[256] : memref<4xf16>
  // expected-error@+1 {{of several gradients takes gradients in f32 or bf16, not in 'f16'}}
  sched.launch square_sum on @compute ins(%a, %g) outs(%s) {} : (memref<2x2xf16>, memref<4xf16>) -> memref<f32>
  return
}
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
