// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

// A collective of several buffers is one call with a table of their names. In a repeated block some of the places are
// columns of its rows; an equal table is written once.

// CHECK: constexpr std::int64_t block_0_rows[][2] = {
// CHECK-NEXT: {0, 128}, // layers.0
// CHECK-NEXT: {64, 192}, // layers.1
// CHECK-DAG: constexpr row_buffer [[PART:r[0-9]+]]({0, 0}, element_type::f32, {4});
// CHECK-DAG: constexpr buffer [[WHOLE:v[0-9]+]]({0, 512}, element_type::f32, {8});
// CHECK-DAG: constexpr row_buffer [[BIAS:r[0-9]+]]({0, 1}, element_type::f32, {2});
// CHECK-DAG: constexpr buffer [[GATHERED:v[0-9]+]]({0, 576}, element_type::f32, {4});
// CHECK: constexpr pair_buffers [[TABLE:c[0-9]+]][] = {
// CHECK-NEXT: {[[WHOLE]], [[PART]]},
// CHECK-NEXT: {[[GATHERED]], [[BIAS]]},
// CHECK-NEXT: };
// CHECK: constexpr pair_buffers [[GRADIENTS:c[0-9]+]][] = {
// CHECK-NOT: pair_buffers
// CHECK: static status block_0(
// CHECK: WINDLASS_TRY(all_gather_list(communicator_1, communicator_of(c, 0), pairs_at(at, [[TABLE]])));
// CHECK: status backward(
// CHECK: WINDLASS_TRY(reduce_scatter_list(communicator_1, communicator_of(c, 0), pairs_at(at, [[GRADIENTS]])));
// CHECK: WINDLASS_TRY(reduce_scatter_list(communicator_1, communicator_of(c, 0), pairs_at(at, [[GRADIENTS]])));

module {
sched.program @program on <[<"data", 2>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %a0 = sched.buffer @device_arena[0] : memref<4xf32>
    %b0 = sched.buffer @device_arena[128] : memref<2xf32>
    %a1 = sched.buffer @device_arena[64] : memref<4xf32>
    %b1 = sched.buffer @device_arena[192] : memref<2xf32>
    %whole = sched.buffer @device_arena[512] : memref<8xf32>
    %bias = sched.buffer @device_arena[576] : memref<4xf32>
    sched.launch_collective all_gather sum @c, %a0, %b0 -> %whole, %bias {plan.repeat = #plan.repeat<"layers", 0>} : memref<4xf32>, memref<2xf32> -> memref<8xf32>, memref<4xf32>
    sched.launch_collective all_gather sum @c, %a1, %b1 -> %whole, %bias {plan.repeat = #plan.repeat<"layers", 1>} : memref<4xf32>, memref<2xf32> -> memref<8xf32>, memref<4xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %whole = sched.buffer @device_arena[512] : memref<8xf32>
    %bias = sched.buffer @device_arena[576] : memref<4xf32>
    %a = sched.buffer @device_arena[0] : memref<4xf32>
    %b = sched.buffer @device_arena[128] : memref<2xf32>
    sched.launch_collective reduce_scatter sum @c, %whole, %bias -> %a, %b : memref<8xf32>, memref<4xf32> -> memref<4xf32>, memref<2xf32>
    sched.launch_collective reduce_scatter sum @c, %whole, %bias -> %a, %b : memref<8xf32>, memref<4xf32> -> memref<4xf32>, memref<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}
