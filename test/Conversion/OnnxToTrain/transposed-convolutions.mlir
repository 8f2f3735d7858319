// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file | FileCheck %s

// A transposed convolution is the gradient of a convolution's input. Output padding are elements over which strides pass; a bias is added.
// CHECK-LABEL: func.func @loss
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x3x5xf32>
// CHECK: %[[C:.*]] = train.convolution_data_grad %[[X]], %{{.*}} sizes [2, 6, 6, 7] strides [2, 1] dilations [1, 2] pads [1, 1, 0, 1] : (tensor<2x4x3x5xf32>, tensor<4x3x3x3xf32>) -> tensor<2x6x6x7xf32>
// CHECK: %[[B:.*]] = train.broadcast %{{.*}} dims [1] : tensor<6xf32> -> tensor<2x6x6x7xf32>
// CHECK: train.add %[[C]], %[[B]]
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x3x5xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  %b = onnx.initializer "b" from <"", 432, 24> kind "parameter" : tensor<6xf32>
  %0 = onnx.node "ConvTranspose" since 11 (%x, %w, %b) with {group = 2 : i64, strides = array<i64: 2, 1>, dilations = array<i64: 1, 2>, pads = array<i64: 1, 1, 1, 1>, output_padding = array<i64: 1, 0>} : (tensor<2x4x3x5xf32>, tensor<4x3x3x3xf32>, tensor<6xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

// With auto_pad there are as many elements as strides pass over; an odd pad is before them unless for SAME_UPPER. Elements that no window
// covers are zeros.
// CHECK-LABEL: func.func @loss
// CHECK: train.convolution_data_grad %{{.*}} sizes [2, 1, 10] strides [2] dilations [1] pads [0, 1] : (tensor<2x1x5xf32>, tensor<1x1x3xf32>) -> tensor<2x1x10xf32>
// CHECK: train.convolution_data_grad %{{.*}} sizes [2, 1, 20] strides [2] dilations [1] pads [1, 0] : (tensor<2x1x10xf32>, tensor<1x1x3xf32>) -> tensor<2x1x20xf32>
// CHECK: train.convolution_data_grad %{{.*}} sizes [2, 1, 25] strides [1] dilations [1] pads [0, 0] : (tensor<2x1x20xf32>, tensor<1x1x6xf32>) -> tensor<2x1x25xf32>
// CHECK: train.pad %{{.*}} low [0, 0, 0] high [0, 0, 5]
// CHECK: train.convolution_data_grad %{{.*}} sizes [2, 1, 28] strides [1] dilations [1] pads [2, 2] : (tensor<2x1x30xf32>, tensor<1x1x3xf32>) -> tensor<2x1x28xf32>
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x1x5xf32>):
  %w = onnx.initializer "w" from <"", 0, 12> kind "parameter" : tensor<1x1x3xf32>
  %v = onnx.initializer "v" from <"", 12, 24> kind "parameter" : tensor<1x1x6xf32>
  %0 = onnx.node "ConvTranspose" since 11 (%x, %w) with {auto_pad = "SAME_UPPER", strides = array<i64: 2>} : (tensor<2x1x5xf32>, tensor<1x1x3xf32>) -> !onnx.value
  %1 = onnx.node "ConvTranspose" since 11 (%0, %w) with {auto_pad = "SAME_LOWER", strides = array<i64: 2>} : (!onnx.value, tensor<1x1x3xf32>) -> !onnx.value
  %2 = onnx.node "ConvTranspose" since 11 (%1, %v) with {output_shape = array<i64: 30>} : (!onnx.value, tensor<1x1x6xf32>) -> !onnx.value
  %3 = onnx.node "ConvTranspose" since 11 (%2, %w) with {output_shape = array<i64: 28>} : (!onnx.value, tensor<1x1x3xf32>) -> !onnx.value
  %4 = onnx.node "ReduceSum" since 13 (%3) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %4 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3x8x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 432> kind "parameter" : tensor<4x3x3x3xf32>
  // expected-error @below {{ConvTranspose has kernels for 4 channels, and an image of 3 in 1 groups}}
  %0 = onnx.node "ConvTranspose" since 11 (%x, %w) : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 144> kind "parameter" : tensor<4x3x3xf32>
  // expected-error @below {{ConvTranspose has a number out of range among its sizes, strides, dilations, pads and output paddings}}
  %0 = onnx.node "ConvTranspose" since 11 (%x, %w) with {strides = array<i64: 9223372036854775807>} : (tensor<2x4x8xf32>, tensor<4x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 144> kind "parameter" : tensor<4x3x3xf32>
  // expected-error @below {{ConvTranspose has lists of another length than its kernels have spatial dims}}
  %0 = onnx.node "ConvTranspose" since 11 (%x, %w) with {output_padding = array<i64: 0, 0>} : (tensor<2x4x8xf32>, tensor<4x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 144> kind "parameter" : tensor<4x3x3xf32>
  // expected-error @below {{ConvTranspose gives -2 elements along spatial dim 0}}
  %0 = onnx.node "ConvTranspose" since 11 (%x, %w) with {pads = array<i64: 6, 6>} : (tensor<2x4x8xf32>, tensor<4x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x4x8xf32>):
  %w = onnx.initializer "w" from <"", 0, 144> kind "parameter" : tensor<4x3x3xf32>
  // expected-error @below {{ConvTranspose has more pads than elements along spatial dim 0}}
  %0 = onnx.node "ConvTranspose" since 11 (%x, %w) with {pads = array<i64: 10, 0>, output_padding = array<i64: 2>} : (tensor<2x4x8xf32>, tensor<4x3x3xf32>) -> !onnx.value
  %1 = onnx.node "ReduceSum" since 13 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %1 : !onnx.value
}
