// RUN: windlass-opt %S/../../Plan/Transforms/Inputs/blocks.mlir -train-differentiate -train-add-optimizer=optimizer=sgd -train-mark-repeats -train-mark-segments -train-verify-functions | FileCheck %s
// RUN: windlass-opt %s -train-differentiate -train-mark-repeats -train-mark-segments | FileCheck %s --check-prefix=NONE

// A block is cut at the sum of the residual connection; the part with the softmax is the attention. The mask serves both
// blocks and belongs to none.
// CHECK-LABEL: func.func @microbatch
// CHECK: train.exp {{.*}} {train.id = "h.0/mask.0"}
// CHECK: train.matmul {{.*}} {train.id = "in/matmul.0"}
// CHECK: train.matmul {{.*}} {plan.repeat = #plan.repeat<"h", 0>, plan.segment = #plan.segment<"h.0", "attention">, train.id = "h.0/matmul.0"}
// CHECK: train.add {{.*}}plan.segment = #plan.segment<"h.0", "attention">, train.id = "h.0/add.1"}
// CHECK: train.read @w1 : tensor<4x4xf32> {train.id = "read.1"}
// CHECK: train.matmul {{.*}}plan.segment = #plan.segment<"h.0", "mlp">, train.id = "h.0/matmul.1"}
// CHECK: train.add {{.*}}plan.segment = #plan.segment<"h.0", "mlp">, train.id = "h.0/add.2"}
// CHECK: train.matmul {{.*}}plan.segment = #plan.segment<"h.1", "attention">, train.id = "h.1/matmul.0"}
// CHECK: train.add {{.*}}plan.segment = #plan.segment<"h.1", "mlp">, train.id = "h.1/add.2"}
// A block that repeats nowhere is found by its scope; two values go through all of this one.
// CHECK: train.matmul {{.*}} {plan.segment = #plan.segment<"tail.0", "">, train.id = "tail.0/matmul.0"}
// CHECK: train.mul {{.*}} {plan.segment = #plan.segment<"tail.0", "">, train.id = "tail.0/mul.1"}
// CHECK: train.reduce {{.*}} {train.id = "head/sum.0"}
// CHECK-NOT: plan.segment

// Nothing has a numbered scope.
// NONE-LABEL: func.func @microbatch
// NONE-NOT: plan.segment
train.parameter weight @w "w" : tensor<4x4xf32> from <packed> {trainable}
func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<4x4xf32> {train.id = "read.0"}
  %0 = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "fc/matmul.0"}
  %1 = train.tanh %0 : tensor<2x4xf32> {train.id = "fc/tanh.0"}
  %2 = train.mul %1, %0 : tensor<2x4xf32> {train.id = "fc/mul.0"}
  %r = train.reduce sum %2 dims [0, 1] : tensor<2x4xf32> -> tensor<f32> {train.id = "head/sum.0"}
  return %r : tensor<f32>
}
