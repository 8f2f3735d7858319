// RUN: windlass-opt %s -onnx-convert-to-train | FileCheck %s

// A causal mask written as Range, Unsqueeze, LessOrEqual and Where over nothing but constants, and the sizes of a
// Reshape written as Shape, Slice and Concat, are evaluated; the mask enters the IR as a comparison of two iotas.
// CHECK-LABEL: func.func @loss
// CHECK-NOT: onnx.
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x16x16xf32>):
  %w = onnx.initializer "w" from <"", 0, 1024> kind "parameter" : tensor<16x16xf32>
  %0 = onnx.node "Constant" since 13 () with {value_int = 0 : i64} : () -> !onnx.value
  %1 = onnx.node "Constant" since 13 () with {value_int = 1 : i64} : () -> !onnx.value
  %shape = onnx.node "Shape" since 19 (%x) : (tensor<2x16x16xf32>) -> !onnx.value
  %n = onnx.node "Gather" since 13 (%shape, %1) : (!onnx.value, !onnx.value) -> !onnx.value
  %range = onnx.node "Range" since 11 (%0, %n, %1) : (!onnx.value, !onnx.value, !onnx.value) -> !onnx.value
  %axis = onnx.node "Constant" since 13 () with {value_ints = array<i64: 1>} : () -> !onnx.value
  %rows = onnx.node "Unsqueeze" since 13 (%range, %axis) : (!onnx.value, !onnx.value) -> !onnx.value
  %keep = onnx.node "LessOrEqual" since 16 (%range, %rows) : (!onnx.value, !onnx.value) -> !onnx.value
  %zero = onnx.node "Constant" since 13 () with {value_float = 0.0 : f32} : () -> !onnx.value
  %low = onnx.node "Constant" since 13 () with {value_float = -1.0e30 : f32} : () -> !onnx.value
  %mask = onnx.node "Where" since 16 (%keep, %zero, %low) : (!onnx.value, !onnx.value, !onnx.value) -> !onnx.value
  %y = onnx.node "MatMul" since 13 (%x, %w) : (tensor<2x16x16xf32>, tensor<16x16xf32>) -> !onnx.value
  // CHECK: %[[COLUMN:.*]] = train.iota 1 start 0.000000e+00 step 1.000000e+00 : tensor<16x16xi64>
  // CHECK: %[[ROW:.*]] = train.iota 0 start 0.000000e+00 step 1.000000e+00 : tensor<16x16xi64>
  // CHECK: %[[KEEP:.*]] = train.compare less_equal %[[COLUMN]], %[[ROW]]
  // CHECK: %[[ZERO:.*]] = train.constant dense<0.000000e+00> : tensor<16x16xf32>
  // CHECK: %[[LOW:.*]] = train.constant dense<-1.000000e+30> : tensor<16x16xf32>
  // CHECK: %[[MASK:.*]] = train.select %[[KEEP]], %[[ZERO]], %[[LOW]]
  // CHECK: train.broadcast %[[MASK]] dims [1, 2] : tensor<16x16xf32> -> tensor<2x16x16xf32>
  // CHECK: train.reshape %{{.*}} : tensor<2x16x16xf32> -> tensor<32x16xf32>
  %z = onnx.node "Add" since 14 (%y, %mask) : (!onnx.value, !onnx.value) -> !onnx.value
  %open = onnx.node "Constant" since 13 () with {value_ints = array<i64: -1>} : () -> !onnx.value
  %max = onnx.node "Constant" since 13 () with {value_ints = array<i64: 9223372036854775807>} : () -> !onnx.value
  %last = onnx.node "Slice" since 13 (%shape, %open, %max) : (!onnx.value, !onnx.value, !onnx.value) -> !onnx.value
  %sizes = onnx.node "Concat" since 13 (%open, %last) with {axis = 0 : i64} : (!onnx.value, !onnx.value) -> !onnx.value
  %flat = onnx.node "Reshape" since 19 (%z, %sizes) : (!onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%flat) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
