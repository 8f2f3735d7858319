// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

sched.program @program on <[]> {
// The gradient takes the place of the logits, which are one view.

// CHECK: emitc.file "buffers.h"
// CHECK: constexpr buffer [[Y:v[0-9]+]]({0, 192}, element_type::i64, {2});
// CHECK: constexpr buffer [[N:v[0-9]+]]({0, 256}, element_type::f32, {});
// CHECK: constexpr buffer [[D:v[0-9]+]]({0, 64}, element_type::f32, {});
// CHECK: constexpr buffer [[SUM:v[0-9]+]]({0, 0}, element_type::f32, {});
// CHECK: constexpr buffer [[X:v[0-9]+]]({0, 128}, element_type::f32, {2, 4}); // result 1 of softmax_cross_entropy_with_grad
// CHECK: status forward(
// CHECK: WINDLASS_TRY(count_labels(compute, at([[N]]), at([[Y]]), -100));
// CHECK: WINDLASS_TRY(softmax_cross_entropy_with_grad(compute, at([[SUM]]), at([[X]]), at([[D]]), at([[Y]]), -100));
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %d = sched.buffer @device_arena[64] : memref<f32>
  %x = sched.buffer @device_arena[128] : memref<2x4xf32>
  %y = sched.buffer @device_arena[192] : memref<2xi64>
  %n = sched.buffer @device_arena[256] : memref<f32>
  sched.launch count_labels on @compute ins(%y) outs(%n) {ignore_index = -100 : i64} : (memref<2xi64>) -> memref<f32>
  sched.launch softmax_cross_entropy_with_grad on @compute ins(%d, %x, %y) outs(%s, %x) {ignore_index = -100 : i64} : (memref<f32>, memref<2x4xf32>, memref<2xi64>) -> (memref<f32>, memref<2x4xf32>)
  return
}
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
