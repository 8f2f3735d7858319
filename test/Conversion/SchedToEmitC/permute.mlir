// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

// Members change places: the destinations are the call's last argument.

// CHECK: constexpr buffer [[IN:v[0-9]+]]({0, 0}, element_type::f32, {4, 2});
// CHECK: constexpr buffer [[OUT:v[0-9]+]]({0, 256}, element_type::f32, {4, 2});
// CHECK: status forward(
// CHECK: stream &communicator_1 = stream_of(c, 1); // collectives over a x b
// CHECK: WINDLASS_TRY(permute(communicator_1, communicator_of(c, 0), at([[OUT]]), at([[IN]]), {0, 2, 1, 3}));

module {
sched.program @program on <[<"a", 2>, <"b", 2>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_a_x_b communicator
  sched.communicator @communicator_0 over ["a", "b"] on @over_a_x_b
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %in = sched.buffer @device_arena[0] : memref<4x2xf32>
    %out = sched.buffer @device_arena[256] : memref<4x2xf32>
    sched.launch_collective permute sum @communicator_0, %in -> %out to [0, 2, 1, 3] : memref<4x2xf32> -> memref<4x2xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}
