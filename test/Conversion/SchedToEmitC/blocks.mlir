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
// CHECK-NEXT: {256, 512, 0, 1}, // layer.0
// CHECK-NEXT: {512, 768, 1, 0}, // layer.1

// CHECK: emitc.file "buffers.h"
// CHECK: constexpr row_buffer [[IN:r[0-9]+]]({0, 0}, element_type::f32, {4, 4});
// CHECK: constexpr row_buffer [[OUT:r[0-9]+]]({0, 1}, element_type::f32, {4, 4});
// CHECK: constexpr buffer [[W:v[0-9]+]]({0, 0}, element_type::f32, {4, 4});
// CHECK: constexpr row_buffer [[PRODUCT:r[0-9]+]]({0, 0}, element_type::f32, {4, 4}); // matmul

// CHECK: emitc.file "step.cpp"
// CHECK: // Labels are those of layer.0.
// CHECK-NEXT: static status block_0(context &c, row r, {{.*}}bool adds) {
// CHECK-NEXT: const buffer_views at(c, r);
// CHECK-NEXT: stream &compute = stream_of(c, 0);
// CHECK-NEXT: WINDLASS_TRY(map_views<fused_0>(compute, at([[OUT]]), at([[IN]])));
// CHECK-NEXT: WINDLASS_TRY(matmul(compute, at([[PRODUCT]]), at([[OUT]]), at([[W]]), 0, 1, false));
// CHECK-NEXT: WINDLASS_TRY(record_event(compute, row_event(c, r, 2)));
// CHECK-NEXT: WINDLASS_TRY(wait_event(compute, row_event(c, r, 3)));
// CHECK-NEXT: WINDLASS_TRY(record_event(compute, event_of(c, 2)));
// CHECK-NEXT: return ok_status();
// CHECK-NEXT: }
// CHECK: status forward(context &c, bool adds, {{.*}}std::int64_t slot) {
// CHECK-NEXT: for (int i = 0; i <= 1; ++i) WINDLASS_TRY(block_0(c, block_0_rows[i], adds)); // layer.0 to layer.1
// CHECK-NEXT: return ok_status();
// CHECK: status backward

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
