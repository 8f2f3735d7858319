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
// CHECK: func @block_0(
// CHECK: call_opaque "row_view"({{.*}} #emitc.opaque<"{1, 0}">
// CHECK: func @block_1(
// CHECK: call_opaque "row_view"({{.*}} #emitc.opaque<"{0, 0}">
// CHECK: func @forward(
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
// CHECK: func @update(%[[C:.*]]: !emitc.opaque<"context &">
// CHECK: %[[FLUSH:.*]] = call_opaque "stream_of"(%[[C]]) {args = [0 : index, #emitc.opaque<"1">]
// CHECK: %[[HERE:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{1, 64}">
// CHECK: %[[THERE:.*]] = call_opaque "view_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"{0, 64}">
// CHECK: call_opaque "copy"(%[[FLUSH]], %[[THERE]], %[[HERE]])
// CHECK: %[[HOST:.*]] = call_opaque "stream_of"(%[[C]]) {args = [0 : index, #emitc.opaque<"2">]
// CHECK: call_opaque "map_views"(%[[HOST]], %[[THERE]], %[[THERE]]) {args = [{{.*}}], template_args = [#emitc.opaque<"on_host<fused_0>">]}
// CHECK: %[[P:.*]] = call_opaque "parameters_at"(%[[C]]) {args = [0 : index, #emitc.opaque<"element_type::f32">, #emitc.opaque<"{{[{][{]}}4, {0, 128}, {0, 192}, {0, 256}, {0, 64}, {-1, 0}},\0A {{ *}}{4, {0, 320}, {0, 384}, {0, 448}, {0, 64}, {-1, 0{{[}][}][}]}}">]}
// CHECK: call_opaque "adamw_list"(%[[HOST]], %[[P]]
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
