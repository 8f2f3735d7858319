// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

sched.program @program on <[]> {
// Two instances of a block that differ in offsets and events are one function over two rows; what does not
// change is a constant.

// CHECK: emitc.file "fused.h"
// CHECK: struct fused_0 {
// CHECK: using outputs = type_list<float>;
// CHECK: const float v1 = windlass::scalar::relu(a0);
// CHECK: r0 = v1;

// CHECK: emitc.file "rows.h"
// CHECK: constexpr std::int64_t block_0_rows[][4] = {
// CHECK-NEXT: {256, 512, 0, 1},
// CHECK-NEXT: {512, 768, 1, 0},

// CHECK: emitc.file "step.cpp"
// CHECK: func @block_0(%[[C:.*]]: !emitc.opaque<"context &">, %[[ROW:.*]]: !emitc.opaque<"row">, %[[ADDS:.*]]: !emitc.opaque<"bool">)
// CHECK: %[[S:.*]] = call_opaque "stream_of"(%[[C]])
// CHECK: %[[IN:.*]] = call_opaque "row_view"(%[[C]], %[[ROW]]) {args = [0 : index, 1 : index, #emitc.opaque<"{0, 0}">
// CHECK: %[[OUT:.*]] = call_opaque "row_view"(%[[C]], %[[ROW]]) {args = [0 : index, 1 : index, #emitc.opaque<"{0, 1}">
// CHECK: call_opaque "map_views"(%[[S]], %[[OUT]], %[[IN]]) {{.*}}template_args = [#emitc.opaque<"fused_0">]
// CHECK: %[[W:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 0}">
// CHECK: call_opaque "matmul"
// CHECK: %[[RECORDED:.*]] = call_opaque "row_event"(%[[C]], %[[ROW]]) {args = [0 : index, 1 : index, #emitc.opaque<"2">]
// CHECK: call_opaque "record_event"(%[[S]], %[[RECORDED]])
// CHECK: %[[AWAITED:.*]] = call_opaque "row_event"(%[[C]], %[[ROW]]) {args = [0 : index, 1 : index, #emitc.opaque<"3">]
// CHECK: call_opaque "wait_event"(%[[S]], %[[AWAITED]])
// CHECK: %[[SAME:.*]] = call_opaque "event_of"(%[[C]]) {args = [0 : index, #emitc.opaque<"2">]
// CHECK: call_opaque "record_event"(%[[S]], %[[SAME]])
// CHECK: func @forward(%[[C2:.*]]: !emitc.opaque<"context &">, %{{.*}}: !emitc.opaque<"std::int64_t">)
// CHECK: call_opaque "block_0"(%[[C2]], %{{.*}}) {args = [0 : index, #emitc.opaque<"block_0_rows[0]">, 1 : index]
// CHECK: call_opaque "block_0"(%[[C2]], %{{.*}}) {args = [0 : index, #emitc.opaque<"block_0_rows[1]">, 1 : index]
// CHECK: func @backward

sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func private @chain(%x: f32) -> f32 attributes {sched.scalar_function} {
  %y = train.relu %x : f32
  return %y : f32
}
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %w = sched.buffer @device_arena[0] : memref<4x4xf32>
  %a = sched.buffer @device_arena[256] : memref<4x4xf32>
  %b = sched.buffer @device_arena[512] : memref<4x4xf32>
  %c = sched.buffer @device_arena[768] : memref<4x4xf32>
  sched.launch_map @chain on @compute ins(%a) outs(%b) {plan.repeat = #plan.repeat<"layer", 0>} : (memref<4x4xf32>) -> memref<4x4xf32>
  sched.launch matmul on @compute ins(%b, %w) outs(%a) {batch_rank = 0 : i64, contract_rank = 1 : i64} {plan.repeat = #plan.repeat<"layer", 0>} : (memref<4x4xf32>, memref<4x4xf32>) -> memref<4x4xf32>
  sched.record 0 on @compute {plan.repeat = #plan.repeat<"layer", 0>}
  sched.wait 1 on @compute {plan.repeat = #plan.repeat<"layer", 0>}
  sched.record 2 on @compute {plan.repeat = #plan.repeat<"layer", 0>}
  sched.launch_map @chain on @compute ins(%b) outs(%c) {plan.repeat = #plan.repeat<"layer", 1>} : (memref<4x4xf32>) -> memref<4x4xf32>
  sched.launch matmul on @compute ins(%c, %w) outs(%b) {batch_rank = 0 : i64, contract_rank = 1 : i64} {plan.repeat = #plan.repeat<"layer", 1>} : (memref<4x4xf32>, memref<4x4xf32>) -> memref<4x4xf32>
  sched.record 1 on @compute {plan.repeat = #plan.repeat<"layer", 1>}
  sched.wait 0 on @compute {plan.repeat = #plan.repeat<"layer", 1>}
  sched.record 2 on @compute {plan.repeat = #plan.repeat<"layer", 1>}
  return
}
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
