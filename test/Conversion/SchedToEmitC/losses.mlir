// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

sched.program @program on <[]> {
// The gradient takes the place of the logits, which are one view.

// CHECK: func @forward(%[[C:.*]]: !emitc.opaque<"context &">
// CHECK: %[[S:.*]] = call_opaque "stream_of"(%[[C]])
// CHECK: %[[Y:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 192}">
// CHECK: %[[N:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 256}">
// CHECK: call_opaque "count_labels"(%[[S]], %[[N]], %[[Y]]) {args = [0 : index, 1 : index, 2 : index, #emitc.opaque<"-100">]}
// CHECK: %[[D:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 64}">
// CHECK: %[[X:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 128}">
// CHECK: %[[SUM:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 0}">
// CHECK: call_opaque "softmax_cross_entropy_with_grad"(%[[S]], %[[SUM]], %[[X]], %[[D]], %[[Y]]) {args = [0 : index, 1 : index, 2 : index, 3 : index, 4 : index, #emitc.opaque<"-100">]}
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
