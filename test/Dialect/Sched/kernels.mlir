sched.program @program on <[]> {
// What the row of a kernel says, the verifier of `sched.launch` demands.
// RUN: windlass-opt %s -split-input-file -verify-diagnostics | windlass-opt -split-input-file | FileCheck %s
// RUN: windlass-opt %s -split-input-file -verify-diagnostics -emit-bytecode -o %t.mlirbc

// In place: a result over the operand that its kernel names, both results of a sum of norms over terms, and updates.
// CHECK-LABEL: func.func @forward
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4x8xf32>
  %b = sched.buffer @device_arena[128] : memref<4x8xf32>
  %c = sched.buffer @device_arena[256] : memref<4x8xf32>
  %v = sched.buffer @device_arena[384] : memref<8xf32>
  %m = sched.buffer @device_arena[448] : memref<4xf32>
  %r = sched.buffer @device_arena[512] : memref<4xf32>
  %s = sched.buffer @device_arena[576] : memref<f32>
  %empty = sched.buffer @device_arena[0] : memref<0x8xf32>
  // CHECK: sched.launch softmax on @compute
  sched.launch softmax on @compute ins(%a) outs(%a) {} : (memref<4x8xf32>) -> memref<4x8xf32>
  // CHECK: sched.launch softmax_grad on @compute
  sched.launch softmax_grad on @compute ins(%a, %b) outs(%b) {} : (memref<4x8xf32>, memref<4x8xf32>) -> memref<4x8xf32>
  // CHECK: sched.launch add_layer_norm on @compute
  sched.launch add_layer_norm on @compute ins(%a, %b, %c, %v) outs(%b, %c, %m, %r) {epsilon = 1.0e-5 : f64, terms = 3 : i64} : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>, memref<4xf32>, memref<4xf32>)
  // CHECK: sched.launch sgd on @compute
  sched.launch sgd on @compute ins(%a, %b, %c, %s, %s, %s, %s) outs(%a, %b) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4x8xf32>, memref<4x8xf32>)
  // CHECK: sched.launch square_sum on @compute ins({{.*}}) outs({{.*}}) {} accumulate :
  sched.launch square_sum on @compute ins(%a) outs(%s) {} accumulate : (memref<4x8xf32>) -> memref<f32>
  // What has no elements is over nothing.
  // CHECK: sched.launch rotary
  sched.launch rotary on @compute ins(%empty, %a, %a) outs(%empty) {} : (memref<0x8xf32>, memref<4x8xf32>, memref<4x8xf32>) -> memref<0x8xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{there is no kernel 'paint'}}
  sched.launch paint on @compute ins() outs(%a) {} : () -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{kernel 'copy' does not take 0 operands and 1 results}}
  sched.launch copy on @compute ins() outs(%a) {} : () -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{kernel 'copy' does not take 1 operands and 0 results}}
  sched.launch copy on @compute ins(%a) outs() {} : (memref<4xf32>) -> ()
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4x8xf32>
  %s = sched.buffer @device_arena[256] : memref<8xf32>
  %r = sched.buffer @device_arena[320] : memref<4xf32>
  %y = sched.buffer @device_arena[384] : memref<4x8xf32>
  // expected-error @below {{kernel 'add_rms_norm' of 3 terms does not take 3 operands and 3 results}}
  sched.launch add_rms_norm on @compute ins(%a, %a, %s) outs(%a, %y, %r) {epsilon = 1.0e-5 : f64, terms = 3 : i64} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>, memref<4xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4x8xf32>
  %s = sched.buffer @device_arena[256] : memref<8xf32>
  %r = sched.buffer @device_arena[320] : memref<4xf32>
  %y = sched.buffer @device_arena[384] : memref<4x8xf32>
  // expected-error @below {{kernel 'add_rms_norm' adds 2 or 3 terms up, not 4}}
  sched.launch add_rms_norm on @compute ins(%a, %a, %s) outs(%a, %y, %r) {epsilon = 1.0e-5 : f64, terms = 4 : i64} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>, memref<4xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
// Every parameter has three operands, then there are four scalars.
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %m = sched.buffer @device_arena[128] : memref<4xf32>
  // expected-error @below {{kernel 'sgd' does not take 6 operands and 2 results}}
  sched.launch sgd on @compute ins(%a, %m, %s, %s, %s, %s) outs(%a, %m) {} : (memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
// The runtime has no step of SGD for several parameters.
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %m = sched.buffer @device_arena[128] : memref<4xf32>
  %g = sched.buffer @device_arena[192] : memref<4xf32>
  // expected-error @below {{kernel 'sgd' does not take 10 operands and 4 results}}
  sched.launch sgd on @compute ins(%a, %m, %g, %a, %m, %g, %s, %s, %s, %s) outs(%a, %m, %a, %m) {} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %m = sched.buffer @device_arena[128] : memref<4xf32>
  %v = sched.buffer @device_arena[192] : memref<4xf32>
  %g = sched.buffer @device_arena[256] : memref<4xf32>
  %b = sched.buffer @device_arena[320] : memref<4xf32>
  %n = sched.buffer @device_arena[384] : memref<4xf32>
  %w = sched.buffer @device_arena[448] : memref<4xf32>
  // expected-error @below {{kernel 'adamw' works in place: its result 3 must be its operand 4}}
  sched.launch adamw on @compute ins(%a, %m, %v, %g, %b, %n, %w, %g, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %m, %v, %g, %n, %w) {} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %d = sched.buffer @device_arena[64] : memref<f32>
  %x = sched.buffer @device_arena[128] : memref<2x4xf32>
  %y = sched.buffer @device_arena[192] : memref<2xi64>
  %z = sched.buffer @device_arena[256] : memref<2x4xf32>
  // expected-error @below {{kernel 'softmax_cross_entropy_with_grad' works in place: its result 1 must be its operand 1}}
  sched.launch softmax_cross_entropy_with_grad on @compute ins(%d, %x, %y) outs(%s, %z) {ignore_index = -100 : i64} : (memref<f32>, memref<2x4xf32>, memref<2xi64>) -> (memref<f32>, memref<2x4xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
// A copy onto itself is no command.
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{writes over its operand 0, which it may not do in place}}
  sched.launch copy on @compute ins(%a) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// Of a gradient of a softmax only the gradient that arrives may go, not the softmax.
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
  %y = sched.buffer @device_arena[0] : memref<4xf32>
  %dy = sched.buffer @device_arena[64] : memref<4xf32>
  %same = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{writes over its operand 0, which it may not do in place}}
  sched.launch softmax_grad on @compute ins(%y, %dy) outs(%same) {} : (memref<4xf32>, memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// The place of a term may take the sum or the norm, not the statistics.
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<1x1xf32>
  %y = sched.buffer @device_arena[64] : memref<1x1xf32>
  %s = sched.buffer @device_arena[128] : memref<1xf32>
  // expected-error @below {{writes over its operand 2, which it may not do in place}}
  sched.launch add_rms_norm on @compute ins(%a, %a, %s) outs(%a, %y, %s) {epsilon = 1.0e-5 : f64} : (memref<1x1xf32>, memref<1x1xf32>, memref<1xf32>) -> (memref<1x1xf32>, memref<1x1xf32>, memref<1xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<2x4xf32>
  %s = sched.buffer @device_arena[64] : memref<4xf32>
  %y = sched.buffer @device_arena[128] : memref<2x4xf32>
  %r = sched.buffer @device_arena[192] : memref<2xf32>
  %same = sched.buffer @device_arena[192] : memref<2xf32>
  // expected-error @below {{writes results 1 and 2 to the same bytes}}
  sched.launch layer_norm on @compute ins(%a, %s) outs(%y, %r, %same) {epsilon = 1.0e-5 : f64} : (memref<2x4xf32>, memref<4xf32>) -> (memref<2x4xf32>, memref<2xf32>, memref<2xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  %b = sched.buffer @device_arena[64] : memref<4xf32>
  // expected-error @below {{kernel 'softmax' cannot add to its result}}
  sched.launch softmax on @compute ins(%a) outs(%b) {} accumulate : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// Sums add up, greatest numbers do not.
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  %b = sched.buffer @device_arena[64] : memref<f32>
  sched.launch reduce on @compute ins(%a) outs(%b) {kind = #train<reduction sum>, reduced_rank = 1 : i64} accumulate_after_first : (memref<4xf32>) -> memref<f32>
  // expected-error @below {{kernel 'reduce' cannot add to its result}}
  sched.launch reduce on @compute ins(%a) outs(%b) {kind = #train<reduction max>, reduced_rank = 1 : i64} accumulate_after_first : (memref<4xf32>) -> memref<f32>
  return
}
}
