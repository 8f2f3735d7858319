// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

// A rank's own block is found at run time, by its coordinates on the axes in their order; in a repeated block too.

// CHECK: constexpr row_buffer [[ROW_IN:r[0-9]+]]({0, 0}, element_type::f32, {4, 8});
// CHECK: constexpr row_buffer [[ROW_OUT:r[0-9]+]]({0, 1}, element_type::f32, {8});
// CHECK: constexpr buffer [[IN:v[0-9]+]]({0, 0}, element_type::f32, {6, 4, 2}, {2, 12, 1});
// CHECK: constexpr buffer [[OUT:v[0-9]+]]({0, 256}, element_type::f32, {4, 2});
// CHECK: static status block_0(context &c, row r, {{.*}}bool adds) {
// CHECK: WINDLASS_TRY(copy(compute, at([[ROW_OUT]]), own_block(c, at([[ROW_IN]]), {1})));
// CHECK: status forward(
// CHECK: WINDLASS_TRY(copy(compute, at([[OUT]]), own_block(c, at([[IN]]), {2, 0})));

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
