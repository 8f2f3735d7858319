// RUN: windlass-opt %s -split-input-file -train-average-tokens | FileCheck %s
// RUN: windlass-opt %s -split-input-file -train-average-tokens -train-differentiate="micro-batches=2 scales-loss=true" -train-verify-functions | FileCheck %s --check-prefix=STEP

// Labels that the graph shifts: the first of each row is no label, the one that is added is ignored. The backward pass
// starts at the sum, the share of a micro-batch is a part of the sum, and evaluation has the mean of its own labels.
// CHECK: module attributes {train.counted_labels = #train.counted_labels<"labels" : tensor<2x4xi64>, from[0, 1] sizes[2, 3] ignore -100 vocabulary 7>}
// STEP: train.counted_labels = #train.counted_labels<"labels"
// STEP-LABEL: func.func @microbatch
// STEP: %[[SUM:.*]], %[[COUNT:.*]], %[[LOG:.*]] = train.softmax_cross_entropy
// STEP-NOT: train.loss
// STEP: %[[INVERSE:.*]] = train.hyperparameter inverse_label_count : tensor<f32>
// STEP: %[[SHARE:.*]] = train.mul %[[SUM]], %[[INVERSE]] : tensor<f32> {train.id = "loss.share"}
// STEP-NOT: train.stash %[[COUNT]]
// STEP: %[[START:.*]] = train.hyperparameter inverse_label_count : tensor<f32>
// STEP: %[[SCALE:.*]] = train.hyperparameter loss_scale : tensor<f32>
// STEP: %[[DSUM:.*]] = train.mul %[[START]], %[[SCALE]] : tensor<f32> {train.forward = "xent", train.id = "xent.grad.scale"}
// STEP: train.softmax_cross_entropy_grad %[[DSUM]],
// STEP: return %[[SHARE]],
// STEP-LABEL: func.func @evaluate
// STEP: train.loss
train.parameter weight @w "w" : tensor<2x4x7xf32> from <packed> {trainable}
func.func @loss(%labels: tensor<2x4xi64> {train.input = "labels", train.vocabulary = 7 : i64}) -> tensor<f32> {
  %w = train.read @w : tensor<2x4x7xf32> {train.id = "w"}
  %pad = train.pad %labels low [0, 0] high [0, 1] value -1.000000e+02 : tensor<2x4xi64> -> tensor<2x5xi64> {train.id = "pad"}
  %slice = train.slice %pad from [0, 1] sizes [2, 4] : tensor<2x5xi64> -> tensor<2x4xi64> {train.id = "slice"}
  %sum, %count, %log = train.softmax_cross_entropy %w, %slice ignore -100 {train.id = "xent"} : (tensor<2x4x7xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
  %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}

// -----

// A slice of a slice, then a reshape; no bound of the ids is known.
// CHECK: #train.counted_labels<"y" : tensor<3x5xi32>, from[1, 2] sizes[2, 2] ignore 0 vocabulary 0>
train.parameter weight @w "w" : tensor<4x7xf32> from <packed> {trainable}
func.func @loss(%x: tensor<1xf32> {train.input = "x"}, %y: tensor<3x5xi32> {train.input = "y"}) -> tensor<f32> {
  %w = train.read @w : tensor<4x7xf32> {train.id = "w"}
  %wide = train.cast %y : tensor<3x5xi32> -> tensor<3x5xi64> {train.id = "cast"}
  %0 = train.slice %wide from [1, 1] sizes [2, 4] : tensor<3x5xi64> -> tensor<2x4xi64> {train.id = "0"}
  %1 = train.slice %0 from [0, 1] sizes [2, 2] : tensor<2x4xi64> -> tensor<2x2xi64> {train.id = "1"}
  %rows = train.reshape %1 : tensor<2x2xi64> -> tensor<4xi64> {train.id = "rows"}
  %sum, %count, %log = train.softmax_cross_entropy %w, %rows ignore 0 {train.id = "xent"} : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}
