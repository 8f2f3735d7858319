// RUN: windlass-opt %s | windlass-opt | FileCheck %s
// RUN: windlass-opt %s -emit-bytecode | windlass-opt | FileCheck %s

// CHECK: onnx.graph "main" inputs ["x"] outputs ["y"] dims {{\[}}["batch", ""]] {
onnx.graph "main" inputs ["x"] outputs ["y"] dims [["batch", ""]] {
^bb0(%x: tensor<?x8xf32>):
  // CHECK: %[[W:.*]] = onnx.initializer "fc.weight" from <"", 96, 512> kind "parameter" : tensor<16x8xf32>
  %w = onnx.initializer "fc.weight" from #onnx.source<"", 96, 512> kind "parameter" : tensor<16x8xf32>
  // CHECK: onnx.initializer "mask" from <"model.onnx.data", 0, 4> : tensor<4xi1>
  %mask = onnx.initializer "mask" from <"model.onnx.data", 0, 4> : tensor<4xi1>
  // CHECK: onnx.initializer "shape" value dense<[4, -1]> : tensor<2xi64> : tensor<2xi64>
  %shape = onnx.initializer "shape" value dense<[4, -1]> : tensor<2xi64> : tensor<2xi64>
  // CHECK: %[[NONE:.*]] = onnx.absent : !onnx.absent
  %none = onnx.absent : !onnx.absent
  // CHECK: %[[Y:.*]] = onnx.node "Gemm" since 13(%{{.*}}, %[[W]], %[[NONE]]) with {transB = 1 : i64} scope "mlp.fc"
  %y = onnx.node "Gemm" since 13 (%x, %w, %none) with {transB = 1 : i64} scope "mlp.fc"
     : (tensor<?x8xf32>, tensor<16x8xf32>, !onnx.absent) -> !onnx.value
  // CHECK: onnx.node "Loop" in "com.example" since 1(%[[Y]]) with {body = #onnx.omitted<"graph">}
  %z:2 = onnx.node "Loop" in "com.example" since 1 (%y) with {body = #onnx.omitted<"graph">}
     : (!onnx.value) -> (!onnx.value, !onnx.absent)
  // CHECK: onnx.return %[[Y]] : !onnx.value
  onnx.return %y : !onnx.value
}

// CHECK: onnx.graph "signed" inputs ["x"] outputs ["y"] signature [#onnx.spec<"PARAMETER", "p_w", "fc.w">] {
onnx.graph "signed" inputs ["x"] outputs ["y"] signature [#onnx.spec<"PARAMETER", "p_w", "fc.w">] {
^bb0(%x: tensor<4x8xf32>):
  // CHECK: onnx.node "Relu" since 14(%{{.*}}) scope "fc" call <"relu", "aten.relu.default", "(%x,), kwargs = {}"> : (tensor<4x8xf32>) -> !onnx.value
  %y = onnx.node "Relu" since 14 (%x) scope "fc" call <"relu", "aten.relu.default", "(%x,), kwargs = {}"> : (tensor<4x8xf32>) -> !onnx.value
  onnx.return %y : !onnx.value
}
