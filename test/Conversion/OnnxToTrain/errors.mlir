// RUN: windlass-opt %s -onnx-convert-to-train -verify-diagnostics -split-input-file

// All kinds are counted; the one error names the first.
// expected-error @below {{3 nodes of 2 kinds are not supported, the first is Frobnicate at 'odd'}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x2xf32>):
  %w = onnx.initializer "w" from <"", 0, 16> kind "parameter" : tensor<2x2xf32>
  %a = onnx.node "Frobnicate" since 1 (%w) : (tensor<2x2xf32>) -> !onnx.value loc("odd")
  %b = onnx.node "Thing" in "com.x" since 1 (%a) : (!onnx.value) -> !onnx.value
  %c = onnx.node "Frobnicate" since 1 (%b) : (!onnx.value) -> !onnx.value
  onnx.return %c : !onnx.value
}

// -----

// expected-error @below {{the loss 'y' has shape 'tensor<2x2xf32>'; it must be a scalar}}
onnx.graph "g" inputs ["x"] outputs ["y"] {
^bb0(%x: tensor<2x2xf32>):
  %w = onnx.initializer "w" from <"", 0, 16> kind "parameter" : tensor<2x2xf32>
  %a = onnx.node "MatMul" since 13 (%x, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> !onnx.value
  onnx.return %a : !onnx.value
}

// -----

// expected-error @below {{the loss 'loss' depends on no trainable parameter}}
onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x2xf32>):
  %a = onnx.node "ReduceSum" since 13 (%x) with {keepdims = 0 : i64} : (tensor<2x2xf32>) -> !onnx.value
  onnx.return %a : !onnx.value
}

// -----

// expected-error @below {{the model has no outputs, so it has no loss}}
onnx.graph "g" inputs [] outputs [] {
  onnx.return
}

// -----

// expected-error @below {{no output is named 'loss', and 2 of the 2 outputs are single numbers; name one with --loss: 'a', 'b'}}
onnx.graph "g" inputs ["x"] outputs ["a", "b"] {
^bb0(%x: tensor<f32>):
  onnx.return %x, %x : tensor<f32>, tensor<f32>
}

// -----

// expected-error @below {{input 'x' has the symbolic dimension 'batch'; bind it with --dim batch=N}}
onnx.graph "g" inputs ["x"] outputs ["loss"] dims [["batch"]] {
^bb0(%x: tensor<?xf32>):
  %a = onnx.node "ReduceSum" since 13 (%x) with {keepdims = 0 : i64} : (tensor<?xf32>) -> !onnx.value
  onnx.return %a : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3xf32>):
  %w = onnx.initializer "w" from <"", 0, 16> kind "parameter" : tensor<2x2xf32>
  // expected-error @below {{MatMul contracts dimensions of 3 and 2}}
  %a = onnx.node "MatMul" since 13 (%x, %w) : (tensor<2x3xf32>, tensor<2x2xf32>) -> !onnx.value
  onnx.return %a : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3xf32>):
  %s = onnx.initializer "s" value dense<[4, 2]> : tensor<2xi64> : tensor<2xi64>
  // expected-error @below {{Reshape gives 8 elements but has 6}}
  %a = onnx.node "Reshape" since 19 (%x, %s) : (tensor<2x3xf32>, tensor<2xi64>) -> !onnx.value
  onnx.return %a : !onnx.value
}

// -----

onnx.graph "g" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<2x3xf32>):
  %i = onnx.initializer "i" value dense<5> : tensor<i64> : tensor<i64>
  // expected-error @below {{Gather reads index 5 of a dimension of size 2}}
  %a = onnx.node "Gather" since 13 (%x, %i) : (tensor<2x3xf32>, tensor<i64>) -> !onnx.value
  onnx.return %a : !onnx.value
}
