// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// Where all rows weigh the same, the loss of logits is one operator, also behind a log softmax.
// CHECK-LABEL: func.func @loss
// CHECK-NOT: train.exp
// CHECK: %[[S:.*]], %[[C:.*]], %{{.*}} = train.softmax_cross_entropy %{{.*}}, %{{.*}} ignore -100 : (tensor<2x5x4xf32>, tensor<2x5xi64>)
// CHECK: train.loss %[[S]], %[[C]]
onnx.graph "g" inputs ["x", "labels"] outputs ["loss"] {
^bb0(%x: tensor<2x4x5xf32>, %labels: tensor<2x5xi64>):
  %w = onnx.initializer "w" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  %0 = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x4x5xf32>, tensor<5xf32>) -> !onnx.value
  %1 = onnx.node "LogSoftmax" since 13 (%0) with {axis = 1 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "NegativeLogLikelihoodLoss" since 13 (%1, %labels) with {ignore_index = -100 : i64} : (!onnx.value, tensor<2x5xi64>) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

// Logarithms of probabilities from elsewhere are read at the labels. The mean divides by the weights of the rows that count, and these
// weights, although unmarked, do not train.
// CHECK: train.parameter buffer @b1 "classes"
// CHECK-LABEL: func.func @loss
// CHECK-SAME: (%{{.*}}: tensor<2x4x5xf32> {{.*}}, %[[LABELS:.*]]: tensor<2x5xi64>
// CHECK: %[[P:.*]] = train.mul
// CHECK: %[[IGNORED:.*]] = train.compare equal %[[LABELS]], %{{.*}} : tensor<2x5xi64>
// CHECK: %[[LABEL:.*]] = train.select %[[IGNORED]], %{{.*}}, %[[LABELS]]
// CHECK: %[[AT:.*]] = train.reshape %[[LABEL]] : tensor<2x5xi64> -> tensor<2x1x5xi64>
// CHECK: %[[G:.*]] = train.gather_elements %[[P]], %[[AT]] axis 1
// CHECK: %[[R:.*]] = train.reshape %[[G]]
// CHECK: %[[N:.*]] = train.neg %[[R]]
// CHECK: %[[WEIGHTS:.*]] = train.gather %{{.*}}, %[[LABEL]] axis 0
// CHECK: %[[L:.*]] = train.mul %[[N]], %[[WEIGHTS]]
// CHECK: %[[KEPT:.*]] = train.select %[[IGNORED]], %{{.*}}, %[[L]]
// CHECK: %[[SUM:.*]] = train.reduce sum %[[KEPT]] dims [0, 1]
// CHECK: %[[KEPTWEIGHTS:.*]] = train.select %[[IGNORED]], %{{.*}}, %[[WEIGHTS]]
// CHECK: %[[COUNT:.*]] = train.reduce sum %[[KEPTWEIGHTS]] dims [0, 1]
// CHECK: train.div %[[SUM]], %[[COUNT]]
onnx.graph "g" inputs ["x", "labels"] outputs ["loss"] {
^bb0(%x: tensor<2x4x5xf32>, %labels: tensor<2x5xi64>):
  %w = onnx.initializer "w" from <"", 0, 20> kind "parameter" : tensor<5xf32>
  %c = onnx.initializer "classes" from <"", 20, 16> : tensor<4xf32>
  %0 = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x4x5xf32>, tensor<5xf32>) -> !onnx.value
  %1 = onnx.node "NegativeLogLikelihoodLoss" since 13 (%0, %labels, %c) with {ignore_index = -100 : i64} : (!onnx.value, tensor<2x5xi64>, tensor<4xf32>) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// Without a reduction there is a loss for each row, and the logarithms of the probabilities can be read too.
// CHECK-LABEL: func.func @loss
// CHECK: train.log
// CHECK: %[[P:.*]] = train.sub %{{.*}} : tensor<2x4xf32>
// CHECK: train.gather_elements %[[P]], %{{.*}} axis 1 : tensor<2x4xf32>, tensor<2x1xi64> -> tensor<2x1xf32>
// CHECK: train.neg %{{.*}} : tensor<2xf32>
// CHECK-NOT: train.div
// CHECK: train.reduce sum %[[P]] dims [0, 1]
onnx.graph "g" inputs ["x", "labels"] outputs ["loss"] {
^bb0(%x: tensor<2x4xf32>, %labels: tensor<2xi64>):
  %w = onnx.initializer "w" from <"", 0, 16> kind "parameter" : tensor<4xf32>
  %0 = onnx.node "Mul" since 14 (%x, %w) : (tensor<2x4xf32>, tensor<4xf32>) -> !onnx.value
  %1:2 = onnx.node "SoftmaxCrossEntropyLoss" since 13 (%0, %labels) with {reduction = "none"} : (!onnx.value, tensor<2xi64>) -> (!onnx.value, !onnx.value)
  %2 = onnx.node "ReduceSum" since 13 (%1#0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  %3 = onnx.node "ReduceSum" since 13 (%1#1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  %4 = onnx.node "Add" since 14 (%2, %3) : (!onnx.value, !onnx.value) -> !onnx.value
  onnx.return %4 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x", "labels"] outputs ["loss"] {
^bb0(%x: tensor<2x4xf32>, %labels: tensor<2xi64>):
  %c = onnx.initializer "classes" from <"", 0, 12> kind "buffer" : tensor<3xf32>
  // expected-error @below {{SoftmaxCrossEntropyLoss has class weights that are not one number for each class}}
  %0 = onnx.node "SoftmaxCrossEntropyLoss" since 13 (%x, %labels, %c) : (tensor<2x4xf32>, tensor<2xi64>, tensor<3xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x", "labels"] outputs ["loss"] {
^bb0(%x: tensor<2x4xf32>, %labels: tensor<3xi64>):
  // expected-error @below {{NegativeLogLikelihoodLoss has labels whose shape is not that of the logits without the classes}}
  %0 = onnx.node "NegativeLogLikelihoodLoss" since 13 (%x, %labels) : (tensor<2x4xf32>, tensor<3xi64>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

// expected-error @below {{1 node of 1 kind is not supported, the first is SoftmaxCrossEntropyLoss at 'odd'}}
onnx.graph "g" inputs ["x", "labels"] outputs ["loss"] {
^bb0(%x: tensor<2x4xf32>, %labels: tensor<2xi64>):
  %0 = onnx.node "SoftmaxCrossEntropyLoss" since 13 (%x, %labels) with {reduction = "median"} : (tensor<2x4xf32>, tensor<2xi64>) -> !onnx.value loc("odd")
  onnx.return %0 : !onnx.value
}
