// RUN: windlass-opt %s -split-input-file -sched-fuse-elementwise | FileCheck %s
// RUN: windlass-opt %s -split-input-file -sched-fuse-elementwise=fuse=false | FileCheck %s --check-prefix=SINGLE

// A chain with a broadcast bias and a literal is one scalar function; the broadcast is an operand dim.
// CHECK-LABEL: func.func @chain(
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[R:.*]] = sched.map @fused_0(%[[X]], %[[B]]) dims [array<i64: 0, 1>, array<i64: 1>] {train.id = "mlp/act"}
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @fused_0(%[[A0:.*]]: f32, %[[A1:.*]]: f32) -> f32 attributes {sched.scalar_function}
// CHECK-NEXT: %[[S:.*]] = train.add %[[A0]], %[[A1]]
// CHECK-NEXT: %[[C:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NEXT: %[[M:.*]] = train.mul %[[S]], %[[C]]
// CHECK-NEXT: %[[G:.*]] = train.gelu_erf %[[M]]
// CHECK-NEXT: return %[[G]]

// SINGLE-LABEL: func.func @chain(
// SINGLE-COUNT-3: sched.map
func.func @chain(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %bb = train.broadcast %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %two = train.constant dense<2.0> : tensor<4x8xf32>
  %s = train.add %x, %bb : tensor<4x8xf32>
  %m = train.mul %s, %two : tensor<4x8xf32>
  %g = train.gelu_erf %m : tensor<4x8xf32> {train.id = "mlp/act"}
  return %g : tensor<4x8xf32>
}

// -----

// What is read elsewhere becomes a further result; the map stands before that reader.
// CHECK-LABEL: func.func @further_result(
// CHECK-NEXT: %[[R:.*]]:2 = sched.map @fused_0
// CHECK-NEXT: train.reduce sum %[[R]]#0
// CHECK-NEXT: return %[[R]]#1
func.func @further_result(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %s = train.exp %x : tensor<8xf32>
  %n = train.reduce sum %s dims [0] : tensor<8xf32> -> tensor<f32>
  %t = train.mul %s, %y : tensor<8xf32>
  return %t, %n : tensor<8xf32>, tensor<f32>
}

// -----

// A reader between that feeds the consumer keeps them apart.
// CHECK-LABEL: func.func @cycle(
// CHECK: sched.map @fused_0
// CHECK-NEXT: train.softmax
// CHECK-NEXT: sched.map @fused_1
func.func @cycle(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = train.exp %x : tensor<8xf32>
  %n = train.softmax %s : tensor<8xf32>
  %t = train.mul %s, %n : tensor<8xf32>
  return %t : tensor<8xf32>
}

// -----

// A cheap producer of one operand is computed in both consumers rather than stored.
// CHECK-LABEL: func.func @recompute(
// CHECK-NEXT: %[[A:.*]] = sched.map @fused_0(%[[X:.*]]) dims
// CHECK-NEXT: %[[SM:.*]] = train.softmax %[[A]]
// CHECK-NEXT: sched.map @fused_1(%[[X]], %[[SM]])
// CHECK: func.func private @fused_0
// CHECK-NEXT: train.neg
// CHECK-NEXT: train.exp
// CHECK: func.func private @fused_1
// CHECK-NEXT: train.neg
// CHECK-NEXT: train.mul
func.func @recompute(%x: tensor<8xf32>) -> tensor<8xf32> {
  %n = train.neg %x : tensor<8xf32>
  %e = train.exp %n : tensor<8xf32>
  %s = train.softmax %e : tensor<8xf32>
  %t = train.mul %n, %s : tensor<8xf32>
  return %t : tensor<8xf32>
}

// -----

// Repeated blocks fuse alike and share their scalar functions; nothing is fused across their border.
// CHECK-LABEL: func.func @repeats(
// CHECK-NEXT: sched.map @fused_0({{.*}}) dims {{.*}} {plan.repeat = #plan.repeat<"block", 0>}
// CHECK-NEXT: sched.map @fused_0({{.*}}) dims {{.*}} {plan.repeat = #plan.repeat<"block", 1>}
// CHECK-NEXT: sched.map @fused_1
// CHECK-NEXT: return
func.func @repeats(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = train.tanh %x : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 0>}
  %b = train.add %a, %x : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 0>}
  %c = train.tanh %b : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 1>}
  %d = train.add %c, %b : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 1>}
  %e = train.exp %d : tensor<8xf32>
  return %e : tensor<8xf32>
}

// -----

// The loss and the clip factor are arithmetic; an n-ary accumulate and its terms are one function.
// CHECK-LABEL: func.func @scalars(
// CHECK-NEXT: sched.map @fused_0
// CHECK-NEXT: sched.map @fused_1
// CHECK-NEXT: sched.map @fused_2
// CHECK: func.func private @fused_0
// CHECK-NEXT: train.div
// CHECK: func.func private @fused_1
// CHECK: train.add
// CHECK: train.div
// CHECK: train.min
// CHECK: func.func private @fused_2(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32) -> f32
// CHECK: train.mul
// CHECK-NEXT: train.accumulate
func.func @scalars(%s: tensor<f32>, %c: tensor<f32>, %g: tensor<8xf32>, %h: tensor<8xf32>, %k: tensor<8xf32>)
    -> (tensor<f32>, tensor<f32>, tensor<8xf32>) {
  %l = train.loss %s, %c : tensor<f32>
  %f = train.clip_factor %s, %c : tensor<f32>
  %m = train.mul %h, %k : tensor<8xf32>
  %a = train.accumulate %g, %m, %k : tensor<8xf32>
  return %l, %f, %a : tensor<f32>, tensor<f32>, tensor<8xf32>
}

// -----

// Nothing element-wise: nothing changes.
// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT: train.softmax
// CHECK-NEXT: return
// CHECK-NOT: fused
func.func @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = train.softmax %x : tensor<8xf32>
  return %s : tensor<8xf32>
}
