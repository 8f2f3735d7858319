// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

// Equal offsets into two arenas are two places, by the arenas' numbers. What the host runs is its own form of a fused
// function; its optimizer step is the same call on another stream. Instances of a repeated block that differ by an arena
// are two blocks.

sched.program @program on <[]> {
sched.arena @host_arena host bytes 1024
sched.arena @device_arena device bytes 512
sched.stream @compute compute
sched.stream @flush d2h
sched.stream @host host
func.func private @twice(%x: f32) -> f32 attributes {sched.scalar_function} {
  %0 = train.add %x, %x : f32
  return %0 : f32
}
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
// CHECK: constexpr row_buffer [[DEVICE:r[0-9]+]]({1, 0}, element_type::f32, {4});
// CHECK: constexpr row_buffer [[ON_HOST:r[0-9]+]]({0, 0}, element_type::f32, {4});
// CHECK: constexpr buffer [[HERE:v[0-9]+]]({1, 64}, element_type::f32, {4});
// CHECK: constexpr buffer [[THERE:v[0-9]+]]({0, 64}, element_type::f32, {4});
// CHECK: constexpr parameter_places p0[] = {
// CHECK-NEXT: {4, {0, 128}, {0, 192}, {0, 256}, {0, 64}, {-1, 0}},
// CHECK-NEXT: {4, {0, 320}, {0, 384}, {0, 448}, {0, 64}, {-1, 0}},
// CHECK: static status block_0(
// CHECK: at([[DEVICE]])
// CHECK: static status block_1(
// CHECK: at([[ON_HOST]])
// CHECK: status forward(
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  %b = sched.buffer @device_arena[64] : memref<4xf32>
  %c = sched.buffer @host_arena[0] : memref<4xf32>
  %d = sched.buffer @host_arena[64] : memref<4xf32>
  sched.launch_map @twice on @compute ins(%a) outs(%a) {plan.repeat = #plan.repeat<"a", 0>} : (memref<4xf32>) -> memref<4xf32>
  sched.launch_map @twice on @compute ins(%b) outs(%b) {plan.repeat = #plan.repeat<"a", 1>} : (memref<4xf32>) -> memref<4xf32>
  sched.launch_map @twice on @compute ins(%c) outs(%c) {plan.repeat = #plan.repeat<"a", 2>} : (memref<4xf32>) -> memref<4xf32>
  sched.launch_map @twice on @compute ins(%d) outs(%d) {plan.repeat = #plan.repeat<"a", 3>} : (memref<4xf32>) -> memref<4xf32>
  return
}
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
// CHECK: status update(context &c) {
// CHECK: stream &d2h_1 = stream_of(c, 1);
// CHECK: stream &host_2 = stream_of(c, 2);
// CHECK: WINDLASS_TRY(copy(d2h_1, at([[THERE]]), at([[HERE]])));
// CHECK: WINDLASS_TRY(map_views<on_host<fused_0>>(host_2,
// CHECK: WINDLASS_TRY(adamw_list(host_2, parameters_at(at, element_type::f32, element_type::f32, p0),
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
  %g = sched.buffer @device_arena[64] : memref<4xf32>
  %h = sched.buffer @host_arena[64] : memref<4xf32>
  %s = sched.buffer @host_arena[0] : memref<f32>
  %a = sched.buffer @host_arena[128] : memref<4xf32>
  %am = sched.buffer @host_arena[192] : memref<4xf32>
  %av = sched.buffer @host_arena[256] : memref<4xf32>
  %b = sched.buffer @host_arena[320] : memref<4xf32>
  %bm = sched.buffer @host_arena[384] : memref<4xf32>
  %bv = sched.buffer @host_arena[448] : memref<4xf32>
  sched.launch copy on @flush ins(%g) outs(%h) {} : (memref<4xf32>) -> memref<4xf32>
  sched.launch_map @twice on @host ins(%h) outs(%h) : (memref<4xf32>) -> memref<4xf32>
  sched.launch adamw on @host ins(%a, %am, %av, %h, %b, %bm, %bv, %h, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %am, %av, %b, %bm, %bv) {decays} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>)
  return
}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
