// RUN: windlass-opt %s -train-differentiate -train-add-optimizer -train-mark-repeats | FileCheck %s

// Three equal blocks, and one before them that lacks the residual sum. Parameters, states and updates follow.

train.parameter weight @w0 "h.0.w" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @w1 "h.1.w" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @w2 "h.2.w" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @w3 "h.3.w" : tensor<4x4xf32> from <packed> {trainable}

// CHECK-LABEL: func.func @microbatch
// CHECK: train.matmul {{.*}} {train.id = "h.0/matmul.0"}
// CHECK: train.tanh {{.*}} {train.id = "h.0/tanh.0"}
// CHECK: train.read @w1 : tensor<4x4xf32> {plan.repeat = #plan.repeat<"h", 1>, train.id = "h.1/read.0"}
// CHECK: train.matmul {{.*}} {plan.repeat = #plan.repeat<"h", 1>, train.id = "h.1/matmul.0"}
// CHECK: train.add {{.*}} {plan.repeat = #plan.repeat<"h", 1>, train.id = "h.1/add.0"}
// CHECK: train.add {{.*}} {plan.repeat = #plan.repeat<"h", 2>, train.id = "h.2/add.0"}
// CHECK: train.add {{.*}} {plan.repeat = #plan.repeat<"h", 3>, train.id = "h.3/add.0"}
// CHECK: train.reduce {{.*}} {train.id = "head/sum.0"}
// CHECK: train.stash {{.*}} {train.id = "h.3/tanh.0.stash"}
// CHECK: train.tanh_grad {{.*}} {plan.repeat = #plan.repeat<"h", 2>, {{.*}}train.id = "h.2/tanh.0.grad.input"}
// CHECK: train.matmul {{.*}} {plan.repeat = #plan.repeat<"h", 1>, {{.*}}train.id = "h.1/matmul.0.grad.rhs"}
// CHECK: train.matmul {{.*}} {train.forward = "h.0/matmul.0", train.id = "h.0/matmul.0.grad.rhs"}
// CHECK-LABEL: func.func @evaluate
// CHECK: train.add {{.*}} {plan.repeat = #plan.repeat<"h", 3>, train.id = "h.3/add.0"}
// CHECK-LABEL: func.func @update
// CHECK: train.square_sum {{.*}}plan.repeat = #plan.repeat<"update.square_sum.4x4xf32", 0>
// CHECK: train.adamw {{.*}}plan.repeat = #plan.repeat<"update.adamw.4x4xf32.decays", 0>
// CHECK: train.write @w0{{.*}}plan.repeat = #plan.repeat<"update.adamw.4x4xf32.decays", 0>
// CHECK: train.adamw {{.*}}plan.repeat = #plan.repeat<"update.adamw.4x4xf32.decays", 3>
func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
  %w0 = train.read @w0 : tensor<4x4xf32> {train.id = "h.0/read.0"}
  %m0 = train.matmul %x, %w0 batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "h.0/matmul.0"}
  %t0 = train.tanh %m0 : tensor<2x4xf32> {train.id = "h.0/tanh.0"}
  %w1 = train.read @w1 : tensor<4x4xf32> {train.id = "h.1/read.0"}
  %m1 = train.matmul %t0, %w1 batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "h.1/matmul.0"}
  %t1 = train.tanh %m1 : tensor<2x4xf32> {train.id = "h.1/tanh.0"}
  %a1 = train.add %t0, %t1 : tensor<2x4xf32> {train.id = "h.1/add.0"}
  %w2 = train.read @w2 : tensor<4x4xf32> {train.id = "h.2/read.0"}
  %m2 = train.matmul %a1, %w2 batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "h.2/matmul.0"}
  %t2 = train.tanh %m2 : tensor<2x4xf32> {train.id = "h.2/tanh.0"}
  %a2 = train.add %a1, %t2 : tensor<2x4xf32> {train.id = "h.2/add.0"}
  %w3 = train.read @w3 : tensor<4x4xf32> {train.id = "h.3/read.0"}
  %m3 = train.matmul %a2, %w3 batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "h.3/matmul.0"}
  %t3 = train.tanh %m3 : tensor<2x4xf32> {train.id = "h.3/tanh.0"}
  %a3 = train.add %a2, %t3 : tensor<2x4xf32> {train.id = "h.3/add.0"}
  %r = train.reduce sum %a3 dims [0, 1] : tensor<2x4xf32> -> tensor<f32> {train.id = "head/sum.0"}
  return %r : tensor<f32>
}
