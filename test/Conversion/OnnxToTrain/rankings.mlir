// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// The place of the greatest element is the least, or for the last one the greatest, of the places where it or a NaN stands.
// CHECK-LABEL: func.func @loss
// CHECK: %[[W:.*]] = train.read
// CHECK: %[[MAX:.*]] = train.reduce max %[[W]] dims [1] : tensor<4x8xf32> -> tensor<4xf32>
// CHECK: %[[HIT:.*]] = train.compare equal %[[W]],
// CHECK: %[[NAN:.*]] = train.is_nan %[[W]]
// CHECK: %[[ANY:.*]] = train.or %[[HIT]], %[[NAN]]
// CHECK: %[[FOUND:.*]] = train.select %[[ANY]], %{{.*}}, %{{.*}} : tensor<4x8xi1>, tensor<4x8xf32>
// CHECK: train.reduce min %[[FOUND]] dims [1]
// CHECK: train.cast %{{.*}} : tensor<4x1xf32> -> tensor<4x1xi64>
// CHECK: train.neg
// CHECK: train.transpose %{{.*}} [1, 0]
// CHECK: train.reduce max
// CHECK: train.reduce max
// CHECK: train.cast %{{.*}} : tensor<1x8xf32> -> tensor<1x8xi64>
// CHECK: train.reshape %{{.*}} : tensor<1x8xi64> -> tensor<8xi64>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x1xf32>):
  %w = onnx.initializer "w" from <"", 0, 128> kind "parameter" : tensor<4x8xf32>
  %t = onnx.initializer "t" from <"", 128, 64> kind "parameter" : tensor<16xf32>
  %0 = onnx.node "ArgMax" since 13 (%w) with {axis = -1 : i64} : (tensor<4x8xf32>) -> !onnx.value
  %1 = onnx.node "ArgMin" since 13 (%w) with {keepdims = 0 : i64, select_last_index = 1 : i64} : (tensor<4x8xf32>) -> !onnx.value
  %2 = onnx.node "Gather" since 13 (%t, %0) : (tensor<16xf32>, !onnx.value) -> !onnx.value
  %3 = onnx.node "Gather" since 13 (%t, %1) : (tensor<16xf32>, !onnx.value) -> !onnx.value
  %4 = onnx.node "Add" since 14 (%2, %3) : (!onnx.value, !onnx.value) -> !onnx.value
  %5 = onnx.node "Mul" since 14 (%x, %4) : (tensor<4x1xf32>, !onnx.value) -> !onnx.value
  %6 = onnx.node "ReduceSum" since 13 (%5) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %6 : !onnx.value
}

// -----

// A class is compared with all numbers of classes; negative ones count from the end.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: (%[[I:.*]]: tensor<4x2xi64>
// CHECK: %[[APART:.*]] = train.reshape %[[I]] : tensor<4x2xi64> -> tensor<4x1x2xi64>
// CHECK: train.compare less %[[APART]]
// CHECK: %[[CLASS:.*]] = train.select
// CHECK: train.iota
// CHECK: %[[ON:.*]] = train.compare equal %{{.*}} : tensor<4x3x2xi64>
// CHECK: train.select %[[ON]], %{{.*}} : tensor<4x3x2xi1>, tensor<4x3x2xf32>
onnx.graph "g" inputs ["i"] outputs ["loss"] {
^bb0(%i: tensor<4x2xi64>):
  %w = onnx.initializer "w" from <"", 0, 8> kind "parameter" : tensor<2xf32>
  %d = onnx.initializer "d" value dense<3> : tensor<i64> : tensor<i64>
  %v = onnx.initializer "v" value dense<[0.0, 1.0]> : tensor<2xf32> : tensor<2xf32>
  %0 = onnx.node "OneHot" since 11 (%i, %d, %v) with {axis = 1 : i64} : (tensor<4x2xi64>, tensor<i64>, tensor<2xf32>) -> !onnx.value
  %1 = onnx.node "Mul" since 14 (%0, %w) : (!onnx.value, tensor<2xf32>) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

onnx.graph "g" inputs ["i"] outputs ["loss"] {
^bb0(%i: tensor<4x2xi64>):
  %d = onnx.initializer "d" value dense<0> : tensor<i64> : tensor<i64>
  %v = onnx.initializer "v" value dense<[0.0, 1.0]> : tensor<2xf32> : tensor<2xf32>
  // expected-error @below {{OneHot needs a depth of at least 1 and two values}}
  %0 = onnx.node "OneHot" since 11 (%i, %d, %v) : (tensor<4x2xi64>, tensor<i64>, tensor<2xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// Sums along an axis of five elements take three rounds, each of which adds elements from twice as far.
// CHECK-LABEL: func.func @loss
// CHECK: %[[W:.*]] = train.read
// CHECK: %[[S0:.*]] = train.slice %[[W]] from [0, 0] sizes [2, 4]
// CHECK: %[[P0:.*]] = train.pad %[[S0]] low [0, 1] high [0, 0]
// CHECK: %[[A0:.*]] = train.add %[[W]], %[[P0]]
// CHECK: train.slice %[[A0]] from [0, 0] sizes [2, 3]
// CHECK: %[[A1:.*]] = train.add %[[A0]]
// CHECK: train.slice %[[A1]] from [0, 0] sizes [2, 1]
// CHECK: train.add %[[A1]]
// CHECK: %[[B:.*]] = train.slice %{{.*}} from [0, 1] sizes [2, 4]
// CHECK: train.pad %[[B]] low [0, 0] high [0, 1]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x5xf32>):
  %w = onnx.initializer "w" from <"", 0, 40> kind "parameter" : tensor<2x5xf32>
  %a = onnx.initializer "a" value dense<1> : tensor<i64> : tensor<i64>
  %0 = onnx.node "CumSum" since 14 (%w, %a) : (tensor<2x5xf32>, tensor<i64>) -> !onnx.value
  %1 = onnx.node "CumSum" since 14 (%0, %a) with {exclusive = 1 : i64, reverse = 1 : i64} : (!onnx.value, tensor<i64>) -> !onnx.value
  %2 = onnx.node "Mul" since 14 (%x, %1) : (tensor<2x5xf32>, !onnx.value) -> !onnx.value
  %3 = onnx.node "ReduceSum" since 13 (%2) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %3 : !onnx.value
}

// -----

// The first of the ids that are sought: integers that were booleans are ranked as f32, as places in another ranking are.
// CHECK-LABEL: func.func @loss
// CHECK: %[[IS:.*]] = train.compare equal %{{.*}} : tensor<4x8xi64>
// CHECK: %[[RANKS:.*]] = train.cast %{{.*}} : tensor<4x8xi32> -> tensor<4x8xf32>
// CHECK: train.reduce max %[[RANKS]] dims [1]
// CHECK: %[[PLACES:.*]] = train.cast %{{.*}} : tensor<4x2xf32> -> tensor<4x2xi64>
// CHECK: %[[AGAIN:.*]] = train.cast %[[PLACES]] : tensor<4x2xi64> -> tensor<4x2xf32>
// CHECK: train.reduce max %[[AGAIN]] dims [1]
onnx.graph "g" inputs ["x", "ids"] outputs ["loss"] {
^bb0(%x: tensor<4xf32>, %ids: tensor<4x8xi64>):
  %t = onnx.initializer "t" from <"", 0, 32> kind "parameter" : tensor<8xf32>
  %end = onnx.initializer "end" value dense<3> : tensor<i64> : tensor<i64>
  %0 = onnx.node "Equal" since 13 (%ids, %end) : (tensor<4x8xi64>, tensor<i64>) -> !onnx.value
  %1 = onnx.node "Cast" since 13 (%0) with {to = 6 : i64} : (!onnx.value) -> !onnx.value
  %2 = onnx.node "ArgMax" since 13 (%1) with {axis = -1 : i64, keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  %two = onnx.initializer "two" value dense<2> : tensor<1xi64> : tensor<1xi64>
  %scores = onnx.initializer "scores" from <"", 32, 128> kind "parameter" : tensor<4x8xf32>
  %value:2 = onnx.node "TopK" since 11 (%scores, %two) : (tensor<4x8xf32>, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  %order:2 = onnx.node "TopK" since 11 (%value#1, %two) : (!onnx.value, tensor<1xi64>) -> (!onnx.value, !onnx.value)
  %first = onnx.node "ArgMax" since 13 (%order#1) with {axis = -1 : i64, keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  %both = onnx.node "Add" since 14 (%2, %first) : (!onnx.value, !onnx.value) -> !onnx.value
  %3 = onnx.node "Gather" since 13 (%t, %both) : (tensor<8xf32>, !onnx.value) -> !onnx.value
  %4 = onnx.node "Mul" since 14 (%x, %3) : (tensor<4xf32>, !onnx.value) -> !onnx.value
  %5 = onnx.node "ReduceSum" since 13 (%4) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %5 : !onnx.value
}
