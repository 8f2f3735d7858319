// RUN: windlass-opt %s -split-input-file -sched-fuse-elementwise | FileCheck %s
// RUN: windlass-opt %s -split-input-file -sched-fuse-elementwise=fuse=false | FileCheck %s --check-prefix=SINGLE

sched.program @program on <[]> {
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
}

// -----

sched.program @program on <[]> {
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
}

// -----

sched.program @program on <[]> {
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
}

// -----

sched.program @program on <[]> {
// What reads the same values is one map where they end with it, so that they are brought from memory once.
// CHECK-LABEL: func.func @readers(
// CHECK-NEXT: %[[X:.*]] = train.softmax
// CHECK-NEXT: %[[R:.*]]:2 = sched.map @fused_0(%[[X]], %{{.*}}) dims
// CHECK-NEXT: %[[N:.*]] = train.reduce sum %[[R]]#0
// CHECK-NEXT: return %[[R]]#1, %[[N]]
func.func @readers(%a: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %x = train.softmax %a : tensor<8xf32>
  %s = train.mul %x, %y : tensor<8xf32>
  %n = train.reduce sum %s dims [0] : tensor<8xf32> -> tensor<f32>
  %t = train.sub %x, %y : tensor<8xf32>
  return %t, %n : tensor<8xf32>, tensor<f32>
}
}

// -----

sched.program @program on <[]> {
// Where they live on, the second result would only live longer.
// CHECK-LABEL: func.func @readers_of_what_lives_on(
// CHECK: sched.map @fused_0
// CHECK-NEXT: train.reduce
// CHECK-NEXT: sched.map @fused_1
func.func @readers_of_what_lives_on(%a: tensor<8xf32>, %y: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<f32>, tensor<8xf32>) {
  %x = train.softmax %a : tensor<8xf32>
  %s = train.mul %x, %y : tensor<8xf32>
  %n = train.reduce sum %s dims [0] : tensor<8xf32> -> tensor<f32>
  %t = train.sub %x, %y : tensor<8xf32>
  return %t, %n, %x : tensor<8xf32>, tensor<f32>, tensor<8xf32>
}
}

// -----

sched.program @program on <[]> {
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
}

// -----

sched.program @program on <[]> {
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
}

// -----

sched.program @program on <[]> {
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
}

// -----

sched.program @program on <[]> {
// Nothing element-wise: nothing changes.
// CHECK-LABEL: func.func @nothing(
// CHECK-NEXT: train.softmax
// CHECK-NEXT: return
// CHECK-NOT: fused
func.func @nothing(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = train.softmax %x : tensor<8xf32>
  return %s : tensor<8xf32>
}
}

// -----

sched.program @program on <[]> {
// A sum of 70 terms is three maps, since a command has 40 operands at most; they add up from the left.
// CHECK-LABEL: func.func @long_sum(
// CHECK: %[[FIRST:.*]] = sched.map @fused_0(%arg0, %arg1, {{.*}}, %arg31)
// CHECK: %[[SECOND:.*]] = sched.map @fused_0(%[[FIRST]], %arg32, {{.*}}, %arg62)
// CHECK: %[[THIRD:.*]] = sched.map @fused_1(%[[SECOND]], %arg63, {{.*}}, %arg69)
// CHECK: return %[[THIRD]]
func.func @long_sum(%a0: tensor<f32>, %a1: tensor<f32>, %a2: tensor<f32>, %a3: tensor<f32>, %a4: tensor<f32>, %a5: tensor<f32>, %a6: tensor<f32>, %a7: tensor<f32>, %a8: tensor<f32>, %a9: tensor<f32>, %a10: tensor<f32>, %a11: tensor<f32>, %a12: tensor<f32>, %a13: tensor<f32>, %a14: tensor<f32>, %a15: tensor<f32>, %a16: tensor<f32>, %a17: tensor<f32>, %a18: tensor<f32>, %a19: tensor<f32>, %a20: tensor<f32>, %a21: tensor<f32>, %a22: tensor<f32>, %a23: tensor<f32>, %a24: tensor<f32>, %a25: tensor<f32>, %a26: tensor<f32>, %a27: tensor<f32>, %a28: tensor<f32>, %a29: tensor<f32>, %a30: tensor<f32>, %a31: tensor<f32>, %a32: tensor<f32>, %a33: tensor<f32>, %a34: tensor<f32>, %a35: tensor<f32>, %a36: tensor<f32>, %a37: tensor<f32>, %a38: tensor<f32>, %a39: tensor<f32>, %a40: tensor<f32>, %a41: tensor<f32>, %a42: tensor<f32>, %a43: tensor<f32>, %a44: tensor<f32>, %a45: tensor<f32>, %a46: tensor<f32>, %a47: tensor<f32>, %a48: tensor<f32>, %a49: tensor<f32>, %a50: tensor<f32>, %a51: tensor<f32>, %a52: tensor<f32>, %a53: tensor<f32>, %a54: tensor<f32>, %a55: tensor<f32>, %a56: tensor<f32>, %a57: tensor<f32>, %a58: tensor<f32>, %a59: tensor<f32>, %a60: tensor<f32>, %a61: tensor<f32>, %a62: tensor<f32>, %a63: tensor<f32>, %a64: tensor<f32>, %a65: tensor<f32>, %a66: tensor<f32>, %a67: tensor<f32>, %a68: tensor<f32>, %a69: tensor<f32>) -> tensor<f32> {
  %sum = train.accumulate %a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9, %a10, %a11, %a12, %a13, %a14, %a15, %a16, %a17, %a18, %a19, %a20, %a21, %a22, %a23, %a24, %a25, %a26, %a27, %a28, %a29, %a30, %a31, %a32, %a33, %a34, %a35, %a36, %a37, %a38, %a39, %a40, %a41, %a42, %a43, %a44, %a45, %a46, %a47, %a48, %a49, %a50, %a51, %a52, %a53, %a54, %a55, %a56, %a57, %a58, %a59, %a60, %a61, %a62, %a63, %a64, %a65, %a66, %a67, %a68, %a69 : tensor<f32>
  return %sum : tensor<f32>
}
}
