// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

sched.program @program on <[]> {
// An optimizer step of several parameters is one call, with a table of elements and offsets: of the weight, its moments,
// the gradient and the rounded weight. One of one parameter takes views. So does a sum of squares of one gradient; that of
// several has a table too.

// CHECK: constexpr gradient_places g0[] = {
// CHECK-NEXT: {8, {0, 320}},
// CHECK-NEXT: {4, {0, 640}},
// CHECK-NEXT: };
// CHECK: constexpr buffer [[RATE:v[0-9]+]]({0, 0}, element_type::f32, {});
// CHECK: constexpr parameter_places p0[] = {
// CHECK-NEXT: {8, {0, 128}, {0, 192}, {0, 256}, {0, 320}, {0, 384}},
// CHECK-NEXT: {4, {0, 448}, {0, 512}, {0, 576}, {0, 640}, {0, 704}},
// CHECK-NEXT: };
// CHECK: constexpr buffer [[H:v[0-9]+]]({0, 960}, element_type::bf16, {4}); // result 3 of adamw
// CHECK: status update(
// CHECK: WINDLASS_TRY(square_sum(compute, at([[SUM:.*]]), at({{.*}}), false));
// CHECK: WINDLASS_TRY(square_sum_list(compute, at([[SUM]]), gradients_at(at, element_type::f32, g0), true));
// CHECK: WINDLASS_TRY(adamw_list(compute, parameters_at(at, element_type::bf16, element_type::f32, p0), at([[RATE]]), {{.*}}, decay_mode::decoupled));
// CHECK: WINDLASS_TRY(adamw(compute, at({{.*}}), at({{.*}}), at({{.*}}), at([[H]]), at({{.*}}), at([[RATE]]), {{.*}}, decay_mode::none));
// CHECK: WINDLASS_TRY(adamw({{.*}}, decay_mode::coupled));
// CHECK: WINDLASS_TRY(lion(compute, at({{.*}}), at({{.*}}), at({{.*}}), at({{.*}}), at([[RATE]]), {{.*}}, true));
// CHECK: WINDLASS_TRY(lamb(compute, at({{.*}}), at({{.*}}), at({{.*}}), at({{.*}}), at({{.*}}), at([[RATE]]), {{.*}}, true));
// CHECK: WINDLASS_TRY(momentum(compute, at({{.*}}), at({{.*}}), at({{.*}}), at([[RATE]]), at([[RATE]])));
// CHECK: WINDLASS_TRY(descend(compute, at({{.*}}), at({{.*}}), at({{.*}}), at([[RATE]]), at([[RATE]])));
// CHECK: WINDLASS_TRY(ema(compute, at({{.*}}), at({{.*}}), at([[RATE]])));
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[128] : memref<2x4xf32>
  %am = sched.buffer @device_arena[192] : memref<2x4xf32>
  %av = sched.buffer @device_arena[256] : memref<2x4xf32>
  %ag = sched.buffer @device_arena[320] : memref<2x4xf32>
  %ah = sched.buffer @device_arena[384] : memref<2x4xbf16>
  %b = sched.buffer @device_arena[448] : memref<4xf32>
  %bm = sched.buffer @device_arena[512] : memref<4xf32>
  %bv = sched.buffer @device_arena[576] : memref<4xf32>
  %bg = sched.buffer @device_arena[640] : memref<4xf32>
  %bh = sched.buffer @device_arena[704] : memref<4xbf16>
  %h = sched.buffer @device_arena[960] : memref<4xbf16>
  %sum = sched.buffer @device_arena[1024] : memref<f32>
  sched.launch square_sum on @compute ins(%a) outs(%sum) {} : (memref<2x4xf32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%ag, %bg) outs(%sum) {} accumulate : (memref<2x4xf32>, memref<4xf32>) -> memref<f32>
  sched.launch adamw on @compute ins(%a, %am, %av, %ag, %b, %bm, %bv, %bg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %am, %av, %ah, %b, %bm, %bv, %bh) {decays} : (memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32>, memref<2x4xbf16>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xbf16>)
  sched.launch adamw on @compute ins(%b, %bm, %bv, %bg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%b, %bm, %bv, %h) {} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xbf16>)
  sched.launch adamw on @compute ins(%b, %bm, %bv, %bg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%b, %bm, %bv, %h) {coupled, decays} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xbf16>)
  sched.launch lion on @compute ins(%b, %bm, %bg, %s, %s, %s, %s, %s) outs(%b, %bm, %h) {decays} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xbf16>)
  %bd = sched.buffer @device_arena[1024] : memref<4xf32>
  sched.launch lamb on @compute ins(%b, %bm, %bv, %bg, %s, %s, %s, %s, %s, %s, %s) outs(%bd, %bm, %bv) {decays} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>)
  sched.launch momentum on @compute ins(%bm, %bg, %s, %s) outs(%bm, %bd) {} : (memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>)
  sched.launch descend on @compute ins(%b, %bd, %s, %s) outs(%b, %h) {} : (memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xbf16>)
  sched.launch ema on @compute ins(%bm, %b, %s) outs(%bm) {} : (memref<4xf32>, memref<4xf32>, memref<f32>) -> memref<4xf32>
  return
}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
