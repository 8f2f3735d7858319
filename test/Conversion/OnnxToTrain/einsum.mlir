// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// Dims that are summed make a matmul, with the common dims that stay as its batch.
// CHECK-LABEL: func.func @loss
// CHECK: %[[Q:.*]] = train.read
// CHECK: %[[K:.*]] = train.read
// CHECK: %[[S:.*]] = train.matmul %[[Q]], %[[K]] batch [0, 2] x [0, 2] contract [3] x [3] : tensor<2x3x4x5xf32>, tensor<2x6x4x5xf32> -> tensor<2x4x3x6xf32>
// Without any the operands are spread and multiplied; what one alone has is summed before.
// CHECK: train.reduce sum %[[S]] dims [3] : tensor<2x4x3x6xf32> -> tensor<2x4x3xf32>
// CHECK: train.mul %{{.*}} : tensor<2x4x3x7xf32>
// CHECK: train.transpose %{{.*}} : tensor<2x4x3x7xf32> -> tensor<7x2x4x3xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2xf32>):
  %q = onnx.initializer "q" from <"", 0, 480> kind "parameter" : tensor<2x3x4x5xf32>
  %k = onnx.initializer "k" from <"", 480, 960> kind "parameter" : tensor<2x6x4x5xf32>
  %v = onnx.initializer "v" from <"", 1440, 28> kind "parameter" : tensor<7xf32>
  %0 = onnx.node "Einsum" since 12 (%q, %k) with {equation = "bthd, bshd -> bhts"} : (tensor<2x3x4x5xf32>, tensor<2x6x4x5xf32>) -> !onnx.value
  %1 = onnx.node "Einsum" since 12 (%0, %v) with {equation = "...s,v->v..."} : (!onnx.value, tensor<7xf32>) -> !onnx.value
  %2 = onnx.node "ReduceSum" since 13 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %2 : !onnx.value
}

// -----

// A letter twice in an operand is its diagonal; without an arrow it is summed.
// CHECK-LABEL: func.func @loss
// CHECK: train.reshape %{{.*}} : tensor<4x4xf32> -> tensor<16xf32>
// CHECK: train.gather
// CHECK: train.reduce sum %{{.*}} dims [0] : tensor<4xf32> -> tensor<f32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x4xf32>):
  %w = onnx.initializer "w" from <"", 0, 64> kind "parameter" : tensor<4x4xf32>
  %0 = onnx.node "Einsum" since 12 (%w) with {equation = "ii"} : (tensor<4x4xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x4xf32>):
  // expected-error @below {{Einsum has the equation 'ijk->i', which does not fit the ranks of its operands}}
  %0 = onnx.node "Einsum" since 12 (%x) with {equation = "ijk->i"} : (tensor<4x4xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x4xf32>):
  // expected-error @below {{Einsum has the equation 'ij->iz', which does not fit the ranks of its operands}}
  %0 = onnx.node "Einsum" since 12 (%x) with {equation = "ij->iz"} : (tensor<4x4xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>):
  // expected-error @below {{Einsum has the equation 'ij,ki->', in which one letter stands for dims of two sizes}}
  %0 = onnx.node "Einsum" since 12 (%x, %x) with {equation = "ij,ki->"} : (tensor<4x3xf32>, tensor<4x3xf32>) -> !onnx.value
  onnx.return %0 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x", "y"] outputs ["loss"] {
^bb0(%x: tensor<4x3xf32>, %y: tensor<4x3xi64>):
  // expected-error @below {{Einsum has operands of different element types}}
  %0 = onnx.node "Einsum" since 12 (%x, %y) with {equation = "ij,ij->"} : (tensor<4x3xf32>, tensor<4x3xi64>) -> !onnx.value
  onnx.return %0 : !onnx.value
}
