// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

// A rank's own block is found at run time, by its coordinates on the axes in their order; in a repeated block too.

// CHECK: func @block_0(%[[C:.*]]: !emitc.opaque<"context &">, %[[ROW:.*]]: !emitc.opaque<"row">
// CHECK: %[[IN:.*]] = call_opaque "row_view"(%[[C]], %[[ROW]])
// CHECK: %[[OUT:.*]] = call_opaque "row_view"(%[[C]], %[[ROW]])
// CHECK: %[[OWN:.*]] = call_opaque "own_block"(%[[C]], %[[IN]]) {args = [0 : index, 1 : index, #emitc.opaque<"{1}">]}
// CHECK: call_opaque "copy"(%{{.*}}, %[[OUT]], %[[OWN]])
// CHECK: func @forward(%[[C:.*]]: !emitc.opaque<"context &">
// CHECK: %[[S:.*]] = call_opaque "stream_of"(%[[C]])
// CHECK: %[[IN:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 0}">
// CHECK: %[[OUT:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 256}">
// CHECK: %[[OWN:.*]] = call_opaque "own_block"(%[[C]], %[[IN]]) {args = [0 : index, 1 : index, #emitc.opaque<"{2, 0}">]} : {{.*}} -> !emitc.opaque<"view">
// CHECK: call_opaque "copy"(%[[S]], %[[OUT]], %[[OWN]])

module {
sched.program @program on <[<"a", 2>, <"b", 4>, <"c", 3>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %blocks = sched.buffer @device_arena[0] : memref<6x4x2xf32, strided<[2, 12, 1]>>
    %part = sched.buffer @device_arena[256] : memref<4x2xf32>
    sched.launch own_part on @compute ins(%blocks) outs(%part) {axes = array<i64: 2, 0>} : (memref<6x4x2xf32, strided<[2, 12, 1]>>) -> memref<4x2xf32>
    %a = sched.buffer @device_arena[512] : memref<4x8xf32>
    %b = sched.buffer @device_arena[640] : memref<8xf32>
    %c = sched.buffer @device_arena[768] : memref<4x8xf32>
    %d = sched.buffer @device_arena[896] : memref<8xf32>
    sched.launch own_part on @compute ins(%a) outs(%b) {axes = array<i64: 1>} {plan.repeat = #plan.repeat<"layer", 0>} : (memref<4x8xf32>) -> memref<8xf32>
    sched.launch own_part on @compute ins(%c) outs(%d) {axes = array<i64: 1>} {plan.repeat = #plan.repeat<"layer", 1>} : (memref<4x8xf32>) -> memref<8xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}
