// RUN: windlass-opt %s -verify-diagnostics -split-input-file -allow-unregistered-dialect

// expected-error @below {{has 1 inputs but names 2}}
onnx.graph "g" inputs ["a", "b"] outputs [] {
^bb0(%a: tensor<2xf32>):
  onnx.return
}

// -----

// expected-error @below {{returns 1 values but names 0 outputs}}
onnx.graph "g" inputs ["a"] outputs [] {
^bb0(%a: tensor<2xf32>):
  onnx.return %a : tensor<2xf32>
}

// -----

// expected-error @below {{input 0 has rank 1 but 2 dimension names}}
onnx.graph "g" inputs ["a"] outputs [] dims [["x", "y"]] {
^bb0(%a: tensor<?xf32>):
  onnx.return
}

// -----

// expected-error @below {{'onnx.graph' op must end with onnx.return}}
onnx.graph "g" inputs [] outputs [] {
  "test.end"() : () -> ()
}

// -----

// expected-error @below {{names the dimensions of 0 inputs but has 1}}
onnx.graph "g" inputs ["a"] outputs [] dims [] {
^bb0(%a: tensor<?xf32>):
  onnx.return
}

// -----

// expected-error @below {{dimension names of input 0 must be an array of strings}}
onnx.graph "g" inputs ["a"] outputs [] dims [[1]] {
^bb0(%a: tensor<?xf32>):
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{must have either a source or a value}}
  %0 = onnx.initializer "w" : tensor<2xf32>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{refers to 4 bytes but its type 'tensor<2xf32>' has 8}}
  %0 = onnx.initializer "w" from <"", 0, 4> : tensor<2xf32>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{a source has offset -1 and length 4; both must be 0 or more}}
  %0 = onnx.initializer "w" from <"", -1, 4> : tensor<1xf32>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{a source of 4 bytes at offset 9223372036854775807 ends beyond 2^63}}
  %0 = onnx.initializer "w" from <"", 9223372036854775807, 4> : tensor<1xf32>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{has kind 'state'; it must be 'parameter' or 'buffer'}}
  %0 = onnx.initializer "w" from <"", 0, 4> kind "state" : tensor<1xf32>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{must have a static shape, but has 'tensor<?xf32>'}}
  %0 = onnx.initializer "w" from <"", 0, 4> : tensor<?xf32>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{has more than 2^63 bytes}}
  %0 = onnx.initializer "w" from <"", 0, 4> : tensor<4294967296x4294967296xf32>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{refers to elements of type 'index'; only integers and floats have bytes in a file}}
  %0 = onnx.initializer "w" from <"", 0, 8> : tensor<1xindex>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{has a value of type 'tensor<1xi64>' but result type 'tensor<2xi64>'}}
  %0 = onnx.initializer "w" value dense<1> : tensor<1xi64> : tensor<2xi64>
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{has since-version 0; it must be 1 or more}}
  onnx.node "Relu" since 0 () : () -> ()
  onnx.return
}

// -----

onnx.graph "g" inputs [] outputs [] {
  // expected-error @below {{must name an operator}}
  onnx.node "" since 1 () : () -> ()
  onnx.return
}

// -----

// expected-error @below {{an input of a signature has kind 'WEIGHT'; it must be 'PARAMETER', 'BUFFER', 'CONSTANT_TENSOR' or 'USER_INPUT'}}
onnx.graph "g" inputs [] outputs [] signature [#onnx.spec<"WEIGHT", "p_w", "w">] {
  onnx.return
}

// -----

// expected-error @below {{an input of a signature has kind 'BUFFER' and target ''; exactly the tensors of the module have a target}}
onnx.graph "g" inputs [] outputs [] signature [#onnx.spec<"BUFFER", "b_w", "">] {
  onnx.return
}
