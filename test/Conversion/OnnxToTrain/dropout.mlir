// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// Each dropout in training has a column of keys, one for each sample; what all samples share has the mask of the first.
// CHECK: func.func @loss(%[[X:.*]]: tensor<4x3xf32> {{.*}}, %[[KEYS:.*]]: tensor<4x3xi64> {train.feed = "random", train.input = "dropout keys"})
// CHECK: %[[W:.*]] = train.read
// CHECK: %[[C0:.*]] = train.slice %[[KEYS]] from [0, 0] sizes [4, 1]
// CHECK: %[[K0:.*]] = train.reshape %[[C0]] : tensor<4x1xi64> -> tensor<4xi64>
// CHECK: %[[FIRST:.*]] = train.slice %[[K0]] from [0] sizes [1]
// CHECK: %[[ROW:.*]] = train.reshape %[[W]] : tensor<3xf32> -> tensor<1x3xf32>
// CHECK: %[[D0:.*]] = train.dropout %[[ROW]], %[[FIRST]] ratio 2.500000e-01
// CHECK: train.slice %[[KEYS]] from [0, 1] sizes [4, 1]
// CHECK: train.dropout %{{.*}}, %{{.*}} ratio 5.000000e-01 : tensor<4x3xf32>
// CHECK: train.slice %[[KEYS]] from [0, 2] sizes [4, 1]
// CHECK: train.dropout %{{.*}}, %{{.*}} ratio 5.000000e-01 : tensor<4x2x3xf32>
// CHECK-NOT: train.dropout
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  %quarter = onnx.initializer "quarter" value dense<0.25> : tensor<f32> : tensor<f32>
  %half = onnx.initializer "half" value dense<0.5> : tensor<f32> : tensor<f32>
  %yes = onnx.initializer "yes" value dense<true> : tensor<i1> : tensor<i1>
  %no = onnx.initializer "no" value dense<false> : tensor<i1> : tensor<i1>
  %shape = onnx.initializer "shape" value dense<[8, 3]> : tensor<2xi64> : tensor<2xi64>
  %a = onnx.node "Dropout" since 13 (%w, %quarter, %yes) : (tensor<3xf32>, tensor<f32>, tensor<i1>) -> !onnx.value
  %b = onnx.node "Mul" since 14 (%x, %a) : (tensor<4x3xf32>, !onnx.value) -> !onnx.value
  %c = onnx.node "Dropout" since 13 (%b, %half, %yes) : (!onnx.value, tensor<f32>, tensor<i1>) -> !onnx.value
  %d = onnx.node "Concat" since 13 (%c, %c) with {axis = 1 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %e = onnx.node "Reshape" since 14 (%d, %shape) : (!onnx.value, tensor<2xi64>) -> !onnx.value
  %f = onnx.node "Dropout" since 13 (%e, %half, %yes) : (!onnx.value, tensor<f32>, tensor<i1>) -> !onnx.value
  %g = onnx.node "Dropout" since 13 (%f, %half, %no) : (!onnx.value, tensor<f32>, tensor<i1>) -> !onnx.value
  %h = onnx.node "Dropout" since 13 (%g) : (!onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%h) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  %one = onnx.initializer "one" value dense<1.0> : tensor<f32> : tensor<f32>
  %yes = onnx.initializer "yes" value dense<true> : tensor<i1> : tensor<i1>
  // expected-error @below {{Dropout has a ratio that is not at least 0 and below 1}}
  %a = onnx.node "Dropout" since 13 (%w, %one, %yes) : (tensor<3xf32>, tensor<f32>, tensor<i1>) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%a) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

// Stochastic depth, as transformers and as torchvision write it: a mask for each sample, of ones dropped at a rate, times
// the share that is kept, by which the graph divides. So evaluation, which drops nothing, divides and multiplies by it.
// CHECK: func.func @loss(%[[X:.*]]: tensor<4x3xf32> {{.*}}, %[[KEYS:.*]]: tensor<4x2xi64> {train.feed = "random"
// CHECK: %[[D:.*]] = train.dropout %{{.*}}, %{{.*}} ratio 2.500000e-01 : tensor<4x1xf32>
// CHECK: train.mul %[[D]], %{{.*}} : tensor<4x1xf32>
// CHECK: %[[E:.*]] = train.dropout %{{.*}}, %{{.*}} ratio 5.000000e-01 : tensor<4x1xf32>
// CHECK: train.mul %[[E]], %{{.*}} : tensor<4x1xf32>
// CHECK-NOT: train.dropout
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<3xf32>
  %kept = onnx.initializer "kept" value dense<0.75> : tensor<f32> : tensor<f32>
  %half = onnx.initializer "half" value dense<0.5> : tensor<f32> : tensor<f32>
  %one = onnx.initializer "one" value dense<1.0> : tensor<4x1xf32> : tensor<4x1xf32>
  %0 = onnx.node "Mul" since 14 (%x, %w) : (tensor<4x3xf32>, tensor<3xf32>) -> !onnx.value
  %drawn = onnx.node "RandomUniform" since 1 () with {shape = array<i64: 4, 1>, dtype = 1 : i64} : () -> !onnx.value
  %raised = onnx.node "Add" since 14 (%kept, %drawn) : (tensor<f32>, !onnx.value) -> !onnx.value
  %mask = onnx.node "Floor" since 13 (%raised) : (!onnx.value) -> !onnx.value
  %1 = onnx.node "Div" since 14 (%0, %kept) : (!onnx.value, tensor<f32>) -> !onnx.value
  %2 = onnx.node "Mul" since 14 (%1, %mask) : (!onnx.value, !onnx.value) -> !onnx.value
  %like = onnx.node "RandomUniformLike" since 1 (%one) with {high = 1.0 : f32, low = 0.0 : f32} : (tensor<4x1xf32>) -> !onnx.value
  %rate = onnx.node "CastLike" since 15 (%half, %like) : (tensor<f32>, !onnx.value) -> !onnx.value
  %chosen = onnx.node "Less" since 13 (%like, %rate) : (!onnx.value, !onnx.value) -> !onnx.value
  %share = onnx.node "CastLike" since 15 (%chosen, %one) : (!onnx.value, tensor<4x1xf32>) -> !onnx.value
  %3 = onnx.node "Div" since 14 (%share, %half) : (!onnx.value, tensor<f32>) -> !onnx.value
  %4 = onnx.node "Mul" since 14 (%2, %3) : (!onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%4) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

// Noise is no choice.
// expected-error @below {{1 node of 1 kind is not supported, the first is Mul at 'noise'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %drawn = onnx.node "RandomUniformLike" since 1 (%x) : (tensor<4x3xf32>) -> !onnx.value
  %0 = onnx.node "Mul" since 14 (%x, %drawn) : (tensor<4x3xf32>, !onnx.value) -> !onnx.value loc("noise")
  %loss = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

// A choice that always holds, one at no rate, and one by a type that is not there.
// expected-error @below {{1 node of 1 kind is not supported, the first is CastLike at 'like'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  %one = onnx.initializer "one" value dense<1.0> : tensor<f32> : tensor<f32>
  %none = onnx.initializer "none" value dense<0x7FC00000> : tensor<f32> : tensor<f32>
  %drawn = onnx.node "RandomUniformLike" since 1 (%x) : (tensor<4x3xf32>) -> !onnx.value
  %a = onnx.node "Less" since 13 (%drawn, %one) : (!onnx.value, tensor<f32>) -> !onnx.value
  %b = onnx.node "Cast" since 13 (%a) with {to = 1 : i64} : (!onnx.value) -> !onnx.value
  %c = onnx.node "Less" since 13 (%drawn, %none) : (!onnx.value, tensor<f32>) -> !onnx.value
  %d = onnx.node "Cast" since 13 (%c) with {to = 1 : i64} : (!onnx.value) -> !onnx.value
  %absent = onnx.absent : !onnx.absent
  %e = onnx.node "CastLike" since 15 (%a, %absent) : (!onnx.value, !onnx.absent) -> !onnx.value loc("like")
  %f = onnx.node "Add" since 14 (%b, %d) : (!onnx.value, !onnx.value) -> !onnx.value
  %g = onnx.node "Add" since 14 (%f, %e) : (!onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceSum" since 13 (%g) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
