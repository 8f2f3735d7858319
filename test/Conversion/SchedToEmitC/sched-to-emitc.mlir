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
// CHECK: emitc.file "step.cpp"

// Functions of a step take the context, those of a micro-batch its index too, which says whether they add.
// CHECK: func @init(%{{.*}}: !emitc.opaque<"context &">) -> !emitc.opaque<"status">
// CHECK: func @forward(%[[C:.*]]: !emitc.opaque<"context &">, %{{.*}}: !emitc.opaque<"std::int64_t">) -> !emitc.opaque<"status">
// CHECK: %[[S:.*]] = call_opaque "stream_of"(%[[C]]) {args = [0 : index, #emitc.opaque<"0">]}
// CHECK: %[[Y:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 512}">, #emitc.opaque<"element_type::f32">, #emitc.opaque<"{8}">]}
// CHECK: call_opaque "fill"(%[[S]], %[[Y]]) {args = [0 : index, 1 : index, #emitc.opaque<"5.0000000000000000e-01">]}
// CHECK: call_opaque "WINDLASS_TRY"
// CHECK: %[[W:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 0}">
// CHECK: %[[B:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 256}">, #emitc.opaque<"element_type::f32">, #emitc.opaque<"{8}">, #emitc.opaque<"{0}">]}
// CHECK: call_opaque "map_views"(%[[S]], %[[Y]], %[[W]], %[[B]]) {{.*}}template_args = [#emitc.opaque<"fused_0">]
// CHECK: call_opaque "ok_status"

// CHECK: func @backward(%{{.*}}: !emitc.opaque<"context &">, %[[INDEX:[a-z0-9]+]]: !emitc.opaque<"std::int64_t">, %{{.*}}: !emitc.opaque<"std::int64_t">, %[[LAST:.*]]: i1)
// CHECK: %[[ADDS:.*]] = call_opaque "adds_to_earlier"(%[[INDEX]])
// CHECK: call_opaque "map_views_adding"(%{{.*}}, %[[ADDS]], %{{.*}}, %{{.*}}, %{{.*}})

// Events order the two streams; the collective runs on its communicator's. The reduction begins in the last run only;
// what is declared there is declared again behind it.
// CHECK: if %[[LAST]] {
// CHECK: call_opaque "record_event"(%{{.*}}, %{{.*}})
// CHECK: %[[OTHER:.*]] = call_opaque "stream_of"(%{{.*}}) {args = [0 : index, #emitc.opaque<"1">]}
// CHECK: call_opaque "wait_event"(%[[OTHER]], %{{.*}})
// CHECK: %[[MEMBERS:.*]] = call_opaque "communicator_of"(%{{.*}}) {args = [0 : index, #emitc.opaque<"0">]}
// CHECK: call_opaque "all_reduce"(%[[OTHER]], %[[MEMBERS]], %{{.*}}) {args = [0 : index, 1 : index, 2 : index, #emitc.opaque<"reduction::sum">]}
// CHECK-NEXT: call_opaque "WINDLASS_TRY"{{.*$}}
// CHECK-NEXT: }
// CHECK-NEXT: call_opaque "view_at"(%{{.*}}) {args = [0 : index, #emitc.opaque<"{0, 2048}">
// CHECK: func @reduce(%{{.*}}: !emitc.opaque<"context &">) -> !emitc.opaque<"status">
// CHECK: %[[BESIDE:.*]] = call_opaque "stream_of"(%{{.*}}) {args = [0 : index, #emitc.opaque<"1">]}
// CHECK: call_opaque "record_event"(%[[BESIDE]], %{{.*}})
// CHECK: func @update(%{{.*}}: !emitc.opaque<"context &">) -> !emitc.opaque<"status">
// CHECK: func @evaluate(%{{.*}}: !emitc.opaque<"context &">) -> !emitc.opaque<"status">

module {
sched.program @program on <[<"data", 2>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c0 over ["data"] on @over_data
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]> {arena = @device_arena, offset = 0 : i64, logical_name = "fc.weight"}
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
    sched.launch_map @chain on @compute ins(%w, %s) outs(%y) : (memref<8xf32>, memref<8xf32, strided<[0]>>) -> memref<8xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %y = sched.buffer @device_arena[512] : memref<8xf32>
    %g = sched.buffer @device_arena[1024] : memref<8xf32>
    %r = sched.buffer @device_arena[2048] : memref<8xf32>
    sched.launch_map @chain on @compute ins(%y, %y) outs(%g) accumulate_after_first : (memref<8xf32>, memref<8xf32>) -> memref<8xf32>
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
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}
