// RUN: windlass-opt %s -sched-join-updates | FileCheck %s

sched.program @program on <[]> {
// Steps of equal settings and scalars are one, at the place of the last; those with decay are another. What the scalars
// of a step are, that it rounds, or a stride makes it none of them.
sched.arena @device_arena device bytes 4096
sched.stream @compute compute
// CHECK-LABEL: func.func @update
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %t = sched.buffer @device_arena[64] : memref<f32>
  %a = sched.buffer @device_arena[128] : memref<8xf32>
  %am = sched.buffer @device_arena[192] : memref<8xf32>
  %av = sched.buffer @device_arena[256] : memref<8xf32>
  %ag = sched.buffer @device_arena[320] : memref<8xf32>
  %b = sched.buffer @device_arena[384] : memref<2x4xf32>
  %bm = sched.buffer @device_arena[448] : memref<2x4xf32>
  %bv = sched.buffer @device_arena[512] : memref<2x4xf32>
  %bg = sched.buffer @device_arena[576] : memref<2x4xf32>
  %bt = sched.buffer @device_arena[576] : memref<2x4xf32, strided<[1, 2]>>
  %c = sched.buffer @device_arena[640] : memref<4xf32>
  %cm = sched.buffer @device_arena[704] : memref<4xf32>
  %cv = sched.buffer @device_arena[768] : memref<4xf32>
  %cg = sched.buffer @device_arena[832] : memref<4xf32>
  %ch = sched.buffer @device_arena[896] : memref<4xbf16>
  %d = sched.buffer @device_arena[960] : memref<4xf32>
  %dm = sched.buffer @device_arena[1024] : memref<4xf32>
  %dv = sched.buffer @device_arena[1088] : memref<4xf32>
  %dg = sched.buffer @device_arena[1152] : memref<4xf32>
  %dh = sched.buffer @device_arena[1216] : memref<4xbf16>
  // CHECK-DAG: %[[S:.*]] = sched.buffer @device_arena[0] :
  // CHECK-DAG: %[[A:.*]] = sched.buffer @device_arena[128]
  // CHECK-DAG: %[[AM:.*]] = sched.buffer @device_arena[192]
  // CHECK-DAG: %[[AV:.*]] = sched.buffer @device_arena[256]
  // CHECK-DAG: %[[AG:.*]] = sched.buffer @device_arena[320]
  // CHECK-DAG: %[[B:.*]] = sched.buffer @device_arena[384]
  // CHECK-DAG: %[[BM:.*]] = sched.buffer @device_arena[448]
  // CHECK-DAG: %[[BV:.*]] = sched.buffer @device_arena[512]
  // CHECK-DAG: %[[BG:.*]] = sched.buffer @device_arena[576] : memref<2x4xf32>
  // CHECK-DAG: %[[CH:.*]] = sched.buffer @device_arena[896]
  // CHECK-DAG: %[[DH:.*]] = sched.buffer @device_arena[1216]
  sched.launch adamw on @compute ins(%a, %am, %av, %ag, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %am, %av) {} {plan.repeat = #plan.repeat<"u", 0>, train.id = "a"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>, memref<8xf32>)
  sched.launch adamw on @compute ins(%c, %cm, %cv, %cg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%c, %cm, %cv, %ch) {decays} {train.id = "c"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xbf16>)
  // CHECK: sched.launch adamw on @compute ins(%[[A]], %[[AM]], %[[AV]], %[[AG]], %[[B]], %[[BM]], %[[BV]], %[[BG]], %[[S]], %[[S]], %[[S]], %[[S]], %[[S]], %[[S]], %[[S]], %[[S]]) outs(%[[A]], %[[AM]], %[[AV]], %[[B]], %[[BM]], %[[BV]]) {} {train.id = "a and 1 more"}
  sched.launch adamw on @compute ins(%b, %bm, %bv, %bg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%b, %bm, %bv) {} {plan.repeat = #plan.repeat<"u", 1>, train.id = "b"} : (memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32>)
  // CHECK-NEXT: sched.launch adamw on @compute ins({{.*}}) outs(%{{.*}}, %{{.*}}, %{{.*}}, %[[CH]], %{{.*}}, %{{.*}}, %{{.*}}, %[[DH]]) {decays} {train.id = "c and 1 more"}
  sched.launch adamw on @compute ins(%d, %dm, %dv, %dg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%d, %dm, %dv, %dh) {decays} {train.id = "d"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xbf16>)
  // CHECK-NEXT: return
  return
}

// CHECK-LABEL: func.func @apart
// CHECK: sched.launch adamw{{.*}} {train.id = "first"}
// CHECK: sched.launch adamw{{.*}} {train.id = "other scalar"}
// CHECK: sched.launch adamw{{.*}} {train.id = "strided"}
// CHECK: sched.launch adamw{{.*}} {train.id = "rounds"}
// CHECK-NEXT: return
func.func @apart() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %t = sched.buffer @device_arena[64] : memref<f32>
  %a = sched.buffer @device_arena[128] : memref<8xf32>
  %am = sched.buffer @device_arena[192] : memref<8xf32>
  %av = sched.buffer @device_arena[256] : memref<8xf32>
  %ag = sched.buffer @device_arena[320] : memref<8xf32>
  %b = sched.buffer @device_arena[384] : memref<2x4xf32>
  %bm = sched.buffer @device_arena[448] : memref<2x4xf32>
  %bv = sched.buffer @device_arena[512] : memref<2x4xf32>
  %bt = sched.buffer @device_arena[576] : memref<2x4xf32, strided<[1, 2]>>
  %c = sched.buffer @device_arena[640] : memref<4xf32>
  %cm = sched.buffer @device_arena[704] : memref<4xf32>
  %cv = sched.buffer @device_arena[768] : memref<4xf32>
  %cg = sched.buffer @device_arena[832] : memref<4xf32>
  %d = sched.buffer @device_arena[960] : memref<4xf32>
  %dm = sched.buffer @device_arena[1024] : memref<4xf32>
  %dv = sched.buffer @device_arena[1088] : memref<4xf32>
  %dg = sched.buffer @device_arena[1152] : memref<4xf32>
  %dh = sched.buffer @device_arena[1216] : memref<4xbf16>
  sched.launch adamw on @compute ins(%a, %am, %av, %ag, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %am, %av) {} {train.id = "first"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>, memref<8xf32>)
  sched.launch adamw on @compute ins(%c, %cm, %cv, %cg, %t, %s, %s, %s, %s, %s, %s, %s) outs(%c, %cm, %cv) {} {train.id = "other scalar"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>)
  sched.launch adamw on @compute ins(%b, %bm, %bv, %bt, %s, %s, %s, %s, %s, %s, %s, %s) outs(%b, %bm, %bv) {} {train.id = "strided"} : (memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32, strided<[1, 2]>>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<2x4xf32>, memref<2x4xf32>, memref<2x4xf32>)
  sched.launch adamw on @compute ins(%d, %dm, %dv, %dg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%d, %dm, %dv, %dh) {} {train.id = "rounds"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xbf16>)
  return
}

// An event, or a command that reads what a step writes, is between.
// CHECK-LABEL: func.func @between
// CHECK: sched.launch adamw{{.*}} {train.id = "a"}
// CHECK-NEXT: sched.record 0 on @compute
// CHECK-NEXT: sched.launch adamw{{.*}} {train.id = "c"}
// CHECK-NEXT: sched.launch copy
// CHECK-NEXT: sched.launch adamw{{.*}} {train.id = "d"}
// CHECK-NEXT: return
func.func @between() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[128] : memref<8xf32>
  %am = sched.buffer @device_arena[192] : memref<8xf32>
  %av = sched.buffer @device_arena[256] : memref<8xf32>
  %ag = sched.buffer @device_arena[320] : memref<8xf32>
  %c = sched.buffer @device_arena[640] : memref<4xf32>
  %cm = sched.buffer @device_arena[704] : memref<4xf32>
  %cv = sched.buffer @device_arena[768] : memref<4xf32>
  %cg = sched.buffer @device_arena[832] : memref<4xf32>
  %d = sched.buffer @device_arena[960] : memref<4xf32>
  %dm = sched.buffer @device_arena[1024] : memref<4xf32>
  %dv = sched.buffer @device_arena[1088] : memref<4xf32>
  %dg = sched.buffer @device_arena[1152] : memref<4xf32>
  %x = sched.buffer @device_arena[1280] : memref<4xf32>
  sched.launch adamw on @compute ins(%a, %am, %av, %ag, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %am, %av) {} {train.id = "a"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>, memref<8xf32>)
  sched.record 0 on @compute
  sched.launch adamw on @compute ins(%c, %cm, %cv, %cg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%c, %cm, %cv) {} {train.id = "c"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>)
  sched.launch copy on @compute ins(%c) outs(%x) {} : (memref<4xf32>) -> memref<4xf32>
  sched.launch adamw on @compute ins(%d, %dm, %dv, %dg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%d, %dm, %dv) {} {train.id = "d"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>)
  return
}

// Equal offsets into two arenas are two places: another scalar, other state, and bytes that no step touches.
sched.arena @host_arena host bytes 4096
// CHECK-LABEL: func.func @two_arenas
// CHECK: sched.launch adamw{{.*}} {train.id = "other scalar"}
// CHECK-NEXT: sched.launch adamw{{.*}} {train.id = "other state"}
// CHECK-NEXT: sched.launch fill
// CHECK-NEXT: sched.launch adamw{{.*}} {train.id = "a and 1 more"}
// CHECK-NEXT: return
func.func @two_arenas() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %t = sched.buffer @host_arena[0] : memref<f32>
  %a = sched.buffer @device_arena[128] : memref<8xf32>
  %am = sched.buffer @device_arena[192] : memref<8xf32>
  %av = sched.buffer @device_arena[256] : memref<8xf32>
  %ag = sched.buffer @device_arena[320] : memref<8xf32>
  %b = sched.buffer @device_arena[384] : memref<8xf32>
  %bm = sched.buffer @device_arena[448] : memref<8xf32>
  %bv = sched.buffer @device_arena[512] : memref<8xf32>
  %bg = sched.buffer @device_arena[576] : memref<8xf32>
  %c = sched.buffer @device_arena[640] : memref<8xf32>
  %cm = sched.buffer @device_arena[704] : memref<8xf32>
  %cv = sched.buffer @device_arena[768] : memref<8xf32>
  %cg = sched.buffer @device_arena[832] : memref<8xf32>
  %d = sched.buffer @device_arena[896] : memref<8xf32>
  %dm = sched.buffer @host_arena[960] : memref<8xf32>
  %dv = sched.buffer @device_arena[1024] : memref<8xf32>
  %dg = sched.buffer @device_arena[1088] : memref<8xf32>
  %other = sched.buffer @host_arena[128] : memref<8xf32>
  sched.launch adamw on @compute ins(%a, %am, %av, %ag, %s, %s, %s, %s, %s, %s, %s, %s) outs(%a, %am, %av) {} {train.id = "a"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>, memref<8xf32>)
  sched.launch adamw on @compute ins(%c, %cm, %cv, %cg, %t, %s, %s, %s, %s, %s, %s, %s) outs(%c, %cm, %cv) {} {train.id = "other scalar"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>, memref<8xf32>)
  sched.launch adamw on @compute ins(%d, %dm, %dv, %dg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%d, %dm, %dv) {} {train.id = "other state"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>, memref<8xf32>)
  sched.launch fill on @compute ins() outs(%other) {value = 0.0 : f64} : () -> memref<8xf32>
  sched.launch adamw on @compute ins(%b, %bm, %bv, %bg, %s, %s, %s, %s, %s, %s, %s, %s) outs(%b, %bm, %bv) {} {train.id = "b"} : (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<8xf32>, memref<8xf32>, memref<8xf32>)
  return
}

// Sums of squares, of which each adds to the one before, are one at the place of the last; those of another sum are apart,
// also where they take turns.
// CHECK-LABEL: func.func @squares
func.func @squares() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %t = sched.buffer @device_arena[64] : memref<f32>
  %a = sched.buffer @device_arena[128] : memref<8xf32>
  %b = sched.buffer @device_arena[192] : memref<2x4xf32>
  %c = sched.buffer @device_arena[256] : memref<4xf32>
  %d = sched.buffer @device_arena[320] : memref<4xf32>
  // CHECK-DAG: %[[S:.*]] = sched.buffer @device_arena[0] :
  // CHECK-DAG: %[[T:.*]] = sched.buffer @device_arena[64] :
  // CHECK-DAG: %[[A:.*]] = sched.buffer @device_arena[128]
  // CHECK-DAG: %[[B:.*]] = sched.buffer @device_arena[192]
  // CHECK-DAG: %[[C:.*]] = sched.buffer @device_arena[256]
  // CHECK-DAG: %[[D:.*]] = sched.buffer @device_arena[320]
  // CHECK-NOT: sched.launch
  // CHECK: sched.launch square_sum on @compute ins(%[[A]], %[[B]]) outs(%[[S]]) {} {train.id = "a and 1 more"}
  // CHECK-NEXT: sched.launch square_sum on @compute ins(%[[C]], %[[D]]) outs(%[[T]]) {} accumulate {train.id = "c and 1 more"}
  // CHECK-NEXT: return
  sched.launch square_sum on @compute ins(%a) outs(%s) {} {plan.repeat = #plan.repeat<"square_sum", 0>, train.id = "a"} : (memref<8xf32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%c) outs(%t) {} accumulate {train.id = "c"} : (memref<4xf32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%b) outs(%s) {} accumulate {plan.repeat = #plan.repeat<"square_sum", 1>, train.id = "b"} : (memref<2x4xf32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%d) outs(%t) {} accumulate {train.id = "d"} : (memref<4xf32>) -> memref<f32>
  return
}

// A sum that begins anew, a gradient of another type or with a stride, and one in another arena stay by themselves; a
// command that reads the sum or writes a gradient, and an event, end a group.
// CHECK-LABEL: func.func @squares_apart
// CHECK: sched.launch square_sum{{.*}} {} {train.id = "first"}
// CHECK-NEXT: sched.launch square_sum{{.*}} {} {train.id = "anew"}
// CHECK-NEXT: sched.launch square_sum{{.*}} {train.id = "strided"}
// CHECK-NEXT: sched.launch square_sum{{.*}} {train.id = "bf16"}
// CHECK-NEXT: sched.launch square_sum{{.*}} {train.id = "host"}
// CHECK-NEXT: sched.launch square_sum{{.*}} accumulate {train.id = "b and 1 more"}
// CHECK-NEXT: sched.launch copy
// CHECK-NEXT: sched.launch square_sum{{.*}} {train.id = "c"}
// CHECK-NEXT: sched.launch fill
// CHECK-NEXT: sched.launch square_sum{{.*}} {train.id = "d"}
// CHECK-NEXT: sched.record
// CHECK-NEXT: sched.launch square_sum{{.*}} {train.id = "e"}
// CHECK-NEXT: return
func.func @squares_apart() {
  %s = sched.buffer @device_arena[0] : memref<f32>
  %t = sched.buffer @device_arena[64] : memref<f32>
  %a = sched.buffer @device_arena[128] : memref<8xf32>
  %b = sched.buffer @device_arena[192] : memref<2x4xf32>
  %bt = sched.buffer @device_arena[192] : memref<2x4xf32, strided<[1, 2]>>
  %h = sched.buffer @device_arena[256] : memref<4xbf16>
  %c = sched.buffer @device_arena[320] : memref<4xf32>
  %g = sched.buffer @host_arena[0] : memref<4xf32>
  sched.launch square_sum on @compute ins(%a) outs(%s) {} {train.id = "first"} : (memref<8xf32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%a) outs(%s) {} {train.id = "anew"} : (memref<8xf32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%bt) outs(%s) {} accumulate {train.id = "strided"} : (memref<2x4xf32, strided<[1, 2]>>) -> memref<f32>
  sched.launch square_sum on @compute ins(%h) outs(%s) {} accumulate {train.id = "bf16"} : (memref<4xbf16>) -> memref<f32>
  sched.launch square_sum on @compute ins(%g) outs(%s) {} accumulate {train.id = "host"} : (memref<4xf32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%b) outs(%s) {} accumulate {train.id = "b"} : (memref<2x4xf32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%a) outs(%s) {} accumulate {train.id = "a"} : (memref<8xf32>) -> memref<f32>
  sched.launch copy on @compute ins(%s) outs(%t) {} : (memref<f32>) -> memref<f32>
  sched.launch square_sum on @compute ins(%c) outs(%s) {} accumulate {train.id = "c"} : (memref<4xf32>) -> memref<f32>
  sched.launch fill on @compute ins() outs(%c) {value = 0.0 : f64} : () -> memref<4xf32>
  sched.launch square_sum on @compute ins(%c) outs(%s) {} accumulate {train.id = "d"} : (memref<4xf32>) -> memref<f32>
  sched.record 0 on @compute
  sched.launch square_sum on @compute ins(%c) outs(%s) {} accumulate {train.id = "e"} : (memref<4xf32>) -> memref<f32>
  return
}
}
