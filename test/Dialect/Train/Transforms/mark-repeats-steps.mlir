// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=muon micro-batches=2" -train-mark-repeats | FileCheck %s
// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=lamb micro-batches=2" -train-mark-repeats | FileCheck %s --check-prefix=LAMB
// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=adafactor micro-batches=2" -train-mark-repeats | FileCheck %s --check-prefix=ADAFACTOR

// A step that is several operators is one block, from the read of the weight to its write, and equal matrices have equal
// blocks.
// CHECK-LABEL: func.func @update
// CHECK: train.read @a : tensor<4x4xf32> {plan.repeat = #plan.repeat<"[[CLASS:update.momentum.4x4xf32[^"]*]]", 0>
// CHECK: train.momentum {{.*}}<"[[CLASS]]", 0>
// CHECK: train.write @a.momentum_buffer, {{.*}}<"[[CLASS]]", 0>
// CHECK: train.matmul {{.*}}<"[[CLASS]]", 0>, train.id = "update/a/iteration_0/gram"
// CHECK: train.descend {{.*}}<"[[CLASS]]", 0>
// CHECK: train.write @a, {{.*}}<"[[CLASS]]", 0>
// CHECK: train.read @b : tensor<4x4xf32> {plan.repeat = #plan.repeat<"[[CLASS]]", 1>
// CHECK: train.matmul {{.*}}<"[[CLASS]]", 1>, train.id = "update/b/iteration_4/product"
// CHECK: train.write @b, {{.*}}<"[[CLASS]]", 1>

// LAMB-LABEL: func.func @update
// LAMB: train.lamb {{.*}}<"[[CLASS:update.lamb.4x4xf32.decays[^"]*]]", 0>
// LAMB: train.square_sum {{.*}}<"[[CLASS]]", 0>, train.id = "update/a/weight_square_sum"
// LAMB: train.descend {{.*}}<"[[CLASS]]", 0>
// LAMB: train.write @a.exp_avg_sq, {{.*}}<"[[CLASS]]", 0>
// LAMB: train.lamb {{.*}}<"[[CLASS]]", 1>
// LAMB: train.write @b.exp_avg_sq, {{.*}}<"[[CLASS]]", 1>

// The parts of the norm, which come before the first step, are none of it.
// ADAFACTOR-LABEL: func.func @update
// ADAFACTOR: train.square_sum {{.*}}<"update.square_sum.4x4xf32", 0>, train.id = "update/a/square_sum"
// ADAFACTOR: train.read @a : tensor<4x4xf32> {plan.repeat = #plan.repeat<"[[CLASS:update.adafactor.4x4xf32[^"]*]]", 0>
// ADAFACTOR: train.ema {{.*}}<"[[CLASS]]", 0>, train.id = "update/a/row_var/ema"
// ADAFACTOR: train.write @a, {{.*}}<"[[CLASS]]", 0>
// ADAFACTOR: train.read @b : tensor<4x4xf32> {plan.repeat = #plan.repeat<"[[CLASS]]", 1>
// ADAFACTOR: train.descend {{.*}}<"[[CLASS]]", 1>
train.parameter weight @a "a" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @b "b" : tensor<4x4xf32> from <packed> {trainable}
func.func @loss(%x: tensor<3x4xf32> {train.input = "x"}) -> tensor<f32> {
  %a = train.read @a : tensor<4x4xf32> {train.id = "a"}
  %b = train.read @b : tensor<4x4xf32> {train.id = "b"}
  %0 = train.matmul %x, %a batch [] x [] contract [1] x [0] : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32> {train.id = "0"}
  %1 = train.matmul %0, %b batch [] x [] contract [1] x [0] : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32> {train.id = "1"}
  %2 = train.reduce sum %1 dims [0, 1] : tensor<3x4xf32> -> tensor<f32> {train.id = "2"}
  return %2 : tensor<f32>
}
