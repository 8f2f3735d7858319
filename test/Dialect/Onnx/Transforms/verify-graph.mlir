// RUN: windlass-opt %s -onnx-verify-graph -verify-diagnostics -split-input-file

onnx.graph "fine" inputs ["x"] outputs ["y"] {
^bb0(%x: tensor<2xf32>):
  %w = onnx.initializer "w" from <"", 0, 8> : tensor<2xf32>
  %y = onnx.node "Add" since 14 (%x, %w) : (tensor<2xf32>, tensor<2xf32>) -> !onnx.value loc("add")
  onnx.return %y : !onnx.value
}

// -----

// expected-error @below {{holds 0 ONNX graphs; it must hold one}}
module {
  // expected-error @below {{stands beside the ONNX graph}}
  func.func private @f()
}

// -----

onnx.graph "g" inputs ["x"] outputs ["x"] {
^bb0(%x: tensor<2xf32>):
  // expected-error @below {{is not an ONNX operator}}
  %y = train.neg %x : tensor<2xf32>
  onnx.return %x : tensor<2xf32>
}

// -----

onnx.graph "g" inputs ["x"] outputs ["x"] {
^bb0(%x: tensor<2xf32>):
  %v = onnx.initializer "w" from <"", 0, 8> : tensor<2xf32>
  // expected-error @below {{is the second of the name 'w'}}
  %w = onnx.initializer "w" from <"", 0, 8> : tensor<2xf32>
  onnx.return %x : tensor<2xf32>
}

// -----

onnx.graph "g" inputs ["x"] outputs ["x"] {
^bb0(%x: tensor<2xf32>):
  // expected-error @below {{has no name as its location}}
  %y = onnx.node "Neg" since 13 (%x) : (tensor<2xf32>) -> !onnx.value
  // expected-error @below {{stands behind a node; initializers come first}}
  %w = onnx.initializer "w" from <"", 0, 8> : tensor<2xf32>
  onnx.return %x : tensor<2xf32>
}
