// RUN: windlass-opt %s -split-input-file -train-merge-micro-batches="count=2" -train-verify-graph -verify-diagnostics | FileCheck %s
// RUN: windlass-opt %s -split-input-file -train-merge-micro-batches="count=2" -train-differentiate="micro-batches=4" -train-verify-functions -verify-diagnostics | FileCheck %s --check-prefix=STEP

// What treats samples apart is done once, on both micro-batches. The loss is a mean over the labels of one of them, so it
// is copied. Its logits are larger than the states that they are made of, so the states are cut and the product is copied too.
// CHECK: module attributes {train.settings = {merge = 2 : i64}}
// CHECK: func.func @loss(%[[X:.*]]: tensor<4x3xf32> {train.input = "x"}, %[[LABELS:.*]]: tensor<4xi64>
// CHECK: %[[HIDDEN:.*]] = train.matmul %[[X]], %{{.*}} -> tensor<4x5xf32> {train.id = "hidden"}
// CHECK: %[[ROWS:.*]] = train.broadcast %{{.*}} dims [1] : tensor<5xf32> -> tensor<4x5xf32> {train.id = "bias.0.repeated.0"}
// CHECK: %[[SUM:.*]] = train.add %[[HIDDEN]], %[[ROWS]] : tensor<4x5xf32>
// CHECK: %[[FIRST:.*]] = train.slice %[[SUM]] from [0, 0] sizes [2, 5]
// CHECK: %[[SECOND:.*]] = train.slice %[[SUM]] from [2, 0] sizes [2, 5]
// CHECK: train.matmul %[[FIRST]], {{.*}} {train.id = "logits.micro_batch.0"}
// CHECK: train.matmul %[[SECOND]], {{.*}} {train.id = "logits.micro_batch.1"}
// CHECK: train.slice %[[LABELS]] from [0] sizes [2]
// CHECK: train.slice %[[LABELS]] from [2] sizes [2]
// CHECK-COUNT-2: train.softmax_cross_entropy {{.*}} : (tensor<2x7xf32>, tensor<2xi64>)
// CHECK: %[[LOSSES:.*]] = train.concat {{.*}} -> tensor<2xf32>
// CHECK: %[[ALL:.*]] = train.reduce sum %[[LOSSES]] dims [0]
// CHECK: %[[HALF:.*]] = train.constant dense<5.000000e-01>
// CHECK: %[[MEAN:.*]] = train.mul %[[ALL]], %[[HALF]]
// CHECK: return %[[MEAN]]

// Two runs of two micro-batches make a step of four; evaluation gives the losses apart.
// STEP: merge = 2 : i64, micro_batches = 4 : i64
// STEP: func.func @microbatch
// STEP: train.constant dense<5.000000e-01>
// STEP: train.constant dense<5.000000e-01>
// STEP: train.mul {{.*}}.share"}
// STEP: func.func @evaluate({{.*}}) -> tensor<2xf32>
train.parameter weight @w "w" : tensor<3x5xf32> from <packed> {trainable}
train.parameter weight @b "b" : tensor<5xf32> from <packed> {trainable}
train.parameter weight @v "v" : tensor<5x7xf32> from <packed> {trainable}
func.func @loss(%x: tensor<2x3xf32> {train.input = "x"}, %labels: tensor<2xi64> {train.input = "labels"}) -> tensor<f32> {
  %w = train.read @w : tensor<3x5xf32> {train.id = "w"}
  %b = train.read @b : tensor<5xf32> {train.id = "b"}
  %v = train.read @v : tensor<5x7xf32> {train.id = "v"}
  %hidden = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32> {train.id = "hidden"}
  %bias = train.broadcast %b dims [1] : tensor<5xf32> -> tensor<2x5xf32> {train.id = "bias"}
  %sum = train.add %hidden, %bias : tensor<2x5xf32> {train.id = "sum"}
  %logits = train.matmul %sum, %v batch [] x [] contract [1] x [0] : tensor<2x5xf32>, tensor<5x7xf32> -> tensor<2x7xf32> {train.id = "logits"}
  %total, %count, %log = train.softmax_cross_entropy %logits, %labels ignore -100 {train.id = "entropy"} : (tensor<2x7xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>)
  %loss = train.loss %total, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}

// -----

// A batch of 1 leaves reshapes a choice of dims: the first one holds the samples. A mean over all elements combines them.
// CHECK: %[[FLAT:.*]] = train.reshape %{{.*}} : tensor<2x3x4xf32> -> tensor<6x4xf32>
// CHECK: %[[AGAIN:.*]] = train.reshape %[[FLAT]] : tensor<6x4xf32> -> tensor<2x3x2x2xf32>
// CHECK: train.transpose %[[AGAIN]] [0, 2, 1, 3] : tensor<2x3x2x2xf32> -> tensor<2x2x3x2xf32>
// What depends on no input is the same for each micro-batch.
// CHECK: %[[EACH:.*]] = train.broadcast %{{.*}} dims [1, 2, 3, 4] : tensor<1x2x3x2xf32> -> tensor<2x1x2x3x2xf32> {train.id = "w0.0.repeated.0"}
// CHECK: %[[WEIGHTS:.*]] = train.reshape %[[EACH]] : tensor<2x1x2x3x2xf32> -> tensor<2x2x3x2xf32>
// CHECK: train.mul %{{.*}}, %[[WEIGHTS]]
// CHECK: train.reduce sum %{{.*}} dims [0, 1, 2, 3] : tensor<1x2x3x2xf32> -> tensor<f32> {train.id = "total.micro_batch.0"}
// CHECK: train.reduce sum %{{.*}} dims [0, 1, 2, 3] : tensor<1x2x3x2xf32> -> tensor<f32> {train.id = "total.micro_batch.1"}
train.parameter weight @w "w" : tensor<1x3x4xf32> from <packed> {trainable}
func.func @loss(%x: tensor<1x3x4xf32> {train.input = "x"}) -> tensor<f32> {
  %flat = train.reshape %x : tensor<1x3x4xf32> -> tensor<3x4xf32> {train.id = "flat"}
  %again = train.reshape %flat : tensor<3x4xf32> -> tensor<1x3x2x2xf32> {train.id = "again"}
  %turned = train.transpose %again [0, 2, 1, 3] : tensor<1x3x2x2xf32> -> tensor<1x2x3x2xf32> {train.id = "turned"}
  %w = train.read @w : tensor<1x3x4xf32> {train.id = "w"}
  %w0 = train.reshape %w : tensor<1x3x4xf32> -> tensor<1x2x3x2xf32> {train.id = "w0"}
  %0 = train.mul %turned, %w0 : tensor<1x2x3x2xf32> {train.id = "0"}
  %total = train.reduce sum %0 dims [0, 1, 2, 3] : tensor<1x2x3x2xf32> -> tensor<f32> {train.id = "total"}
  return %total : tensor<f32>
}

// -----

train.parameter weight @w "w" : tensor<f32> from <packed> {trainable}
// expected-error @+1 {{micro-batches of this model cannot be merged, because input 't' has no dim of samples; leave --merge out}}
func.func @loss(%t: tensor<f32> {train.input = "t"}) -> tensor<f32> {
  %w = train.read @w : tensor<f32> {train.id = "w"}
  %0 = train.mul %w, %t : tensor<f32> {train.id = "0"}
  return %0 : tensor<f32>
}
