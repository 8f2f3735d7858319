// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

// Commands stay; beside them stand the sources that are emitted, without a table of constants where there are none.
// CHECK-LABEL: sched.program
// CHECK: func.func @forward()
// CHECK-NOT: emitc.file "constants.h"

// A scalar function is a functor, in the order of its operators.
// CHECK: emitc.file "fused.h"
// CHECK: struct fused_0 {
// CHECK: static constexpr const char *name = \22mul, tanh\22;
// CHECK: using inputs = type_list<float, float>;
// CHECK: const float [[PRODUCT:v[0-9]+]] = windlass::scalar::mul(a0, a1);
// CHECK-NEXT: const float [[TANH:v[0-9]+]] = windlass::scalar::tanh([[PRODUCT]]);
// CHECK-NEXT: r0 = [[TANH]];
// CHECK: emitc.file "rows.h"
// CHECK-NOT: constexpr

// A buffer is named once for each thing that it holds, in all functions.
// CHECK: emitc.file "buffers.h"
// CHECK: constexpr buffer [[FILLED:v[0-9]+]]({0, 512}, element_type::f32, {8}); // fill{{.$}}
// CHECK-NEXT: constexpr buffer [[W:v[0-9]+]]({0, 0}, element_type::f32, {8}); // fc.weight{{.$}}
// CHECK-NEXT: constexpr buffer [[B:v[0-9]+]]({0, 256}, element_type::f32, {8}, {0});{{.$}}
// CHECK-NEXT: constexpr buffer [[Y:v[0-9]+]]({0, 512}, element_type::f32, {8}); // fc.add.0{{.$}}
// CHECK-NEXT: constexpr buffer [[G:v[0-9]+]]({0, 1024}, element_type::f32, {8}); // fc.add.0.grad__{{.$}}
// CHECK-NEXT: constexpr buffer [[R:v[0-9]+]]({0, 2048}, element_type::f32, {8}); // gradient of fc.weight{{.$}}
// CHECK-NEXT: constexpr buffer [[L:v[0-9]+]]({0, 3072}, element_type::f32, {}); // learning_rate{{.$}}
// CHECK-NOT: constexpr buffer
// CHECK: emitc.file "step.cpp"

// Functions of a step take the context, those of a micro-batch whether they add, and its slots. A command is
// a line, with its operator.
// CHECK: status init({{.*}}context &c) {
// CHECK-NEXT: return ok_status();
// CHECK: status forward(context &c, {{.*}}bool adds, {{.*}}std::int64_t slot) {
// CHECK-NEXT: const buffer_views at(c);
// CHECK-NEXT: stream &compute = stream_of(c, 0);{{.$}}
// CHECK-NEXT: WINDLASS_TRY(fill(compute, at([[FILLED]]), 5.0000000000000000e-01));{{.$}}
// CHECK-NEXT: WINDLASS_TRY(map_views<fused_0>(compute, at([[Y]]), at([[W]]), at([[B]]))); // fc.add.0{{.$}}
// CHECK-NEXT: return ok_status();

// Of names stay letters, digits, '_' and '.' only.
// CHECK: status backward(context &c, bool adds, {{.*}}std::int64_t slot, {{.*}}std::int64_t handed_slot, bool is_last) {
// CHECK: WINDLASS_TRY(map_views_adding<fused_0>(compute, adds, at([[G]]), at([[Y]]), at([[Y]]))); // fc.add.0.grad__{{.$}}

// Events order the two streams; the collective runs on its communicator's. The reduction begins in the last run only.
// CHECK-NEXT: if (is_last) {
// CHECK-NEXT: WINDLASS_TRY(record_event(compute, event_of(c, 0)));
// CHECK-NEXT: WINDLASS_TRY(wait_event(communicator_1, event_of(c, 0)));
// CHECK-NEXT: WINDLASS_TRY(all_reduce(communicator_1, communicator_of(c, 0), at([[R]]), reduction::sum));
// CHECK-NEXT: }
// CHECK-NEXT: WINDLASS_TRY(copy(compute, at([[R]]), at([[G]])));
// CHECK: status reduce(context &c) {
// CHECK: stream &communicator_1 = stream_of(c, 1); // collectives over data
// CHECK: WINDLASS_TRY(record_event(communicator_1, event_of(c, 0)));
// CHECK: status update(context &c) {
// CHECK: WINDLASS_TRY(fill(compute, at([[L]]), 1.0000000000000000e+00));
// CHECK: status evaluate({{.*}}context &c) {

module {
sched.program @program on <[<"data", 2>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c0 over ["data"] on @over_data
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {arena = @device_arena, offset = 0 : i64, logical_name = "fc.weight"}
  sched.resource gradient @g : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {arena = @device_arena, offset = 2048 : i64, logical_name = "fc.weight"}
  sched.resource scalar @s : tensor<f32> of tensor<f32> <[]> {arena = @device_arena, offset = 3072 : i64, scalar = #train<hyperparameter learning_rate>}
  func.func private @chain(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.mul %x, %y : f32
    %1 = train.tanh %0 : f32
    return %1 : f32
  }
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %w = sched.buffer @device_arena[0] : memref<8xf32>
    %s = sched.buffer @device_arena[256] : memref<8xf32, strided<[0]>>
    %y = sched.buffer @device_arena[512] : memref<8xf32>
    sched.launch fill on @compute ins() outs(%y) {value = 0.5 : f64} : () -> memref<8xf32>
    sched.launch_map @chain on @compute ins(%w, %s) outs(%y) {train.id = "fc.add.0"} : (memref<8xf32>, memref<8xf32, strided<[0]>>) -> memref<8xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %y = sched.buffer @device_arena[512] : memref<8xf32>
    %g = sched.buffer @device_arena[1024] : memref<8xf32>
    %r = sched.buffer @device_arena[2048] : memref<8xf32>
    sched.launch_map @chain on @compute ins(%y, %y) outs(%g) accumulate_after_first {train.id = "fc.add.0.grad*/"} : (memref<8xf32>, memref<8xf32>) -> memref<8xf32>
    sched.record 0 on @compute {sched.in_last}
    sched.wait 0 on @over_data {sched.in_last}
    sched.launch_collective all_reduce sum @c0, %r -> %r {sched.in_last} : memref<8xf32> -> memref<8xf32>
    sched.launch copy on @compute ins(%g) outs(%r) {} : (memref<8xf32>) -> memref<8xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    sched.record 0 on @over_data
    sched.wait 0 on @compute
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %l = sched.buffer @device_arena[3072] : memref<f32>
    sched.launch fill on @compute ins() outs(%l) {value = 1.0 : f64} : () -> memref<f32>
    return
  }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}
