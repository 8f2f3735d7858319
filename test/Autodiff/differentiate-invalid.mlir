// RUN: windlass-opt %s -split-input-file -verify-diagnostics -train-differentiate
// RUN: not windlass-opt %S/Inputs/empty.mlir -train-differentiate=micro-batches=0 2>&1 | FileCheck %s
// CHECK: error: there are 0 micro-batches per step; give at least 1

// expected-error @below {{there is no function @loss with a body to differentiate}}
module {}

// -----

train.parameter weight @w "w" : tensor<4xf32> from <packed> {trainable}
// expected-error @below {{returns 'tensor<4xf32>' as the loss, but a loss is one floating-point number; choose another output or reduce it in the model}}
func.func @loss() -> tensor<4xf32> {
  %w = train.read @w : tensor<4xf32>
  return %w : tensor<4xf32>
}

// -----

train.parameter weight @w "w" : tensor<4xf32> from <packed> {trainable}
// expected-error @below {{must return the loss and nothing else}}
func.func @loss(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  return %x, %x : tensor<f32>, tensor<f32>
}

// -----

train.parameter weight @w "w" : tensor<4xf32> from <packed> {trainable}
// expected-error @below {{returns a loss that no trainable parameter reaches}}
func.func @loss(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

train.parameter weight @w "w" : tensor<4xf32> from <packed>
// expected-error @below {{has no trainable parameter}}
func.func @loss(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

// expected-error @below {{'init' is already there}}
func.func @init() {
  return
}

// -----

// All operators without a gradient are reported at once.

train.parameter weight @w "w" : tensor<4xf32> from <packed> {trainable}
func.func @loss(%x: tensor<4xf32>) -> tensor<f32> {
  %w = train.read @w : tensor<4xf32> {train.id = "w"}
  // expected-error @below {{'train.softmax_grad' op 'sg' has no gradient, but lies between a trainable parameter and the loss}}
  %0 = train.softmax_grad %w, %x : tensor<4xf32> {train.id = "sg"}
  // expected-error @below {{'train.softmax_grad' op 'other' has no gradient, but lies between a trainable parameter and the loss}}
  %1 = train.softmax_grad %x, %w : tensor<4xf32> {train.id = "other"}
  %2 = train.add %0, %1 : tensor<4xf32> {train.id = "add"}
  %3 = train.reduce sum %2 dims [0] : tensor<4xf32> -> tensor<f32> {train.id = "sum"}
  return %3 : tensor<f32>
}

// -----

// Second results and masks have no gradient.

train.parameter weight @q "q" : tensor<1x2x3x4xf32> from <packed> {trainable}
train.parameter weight @m "m" : tensor<1x2x3x3xf32> from <packed> {trainable}
train.parameter weight @s "s" : tensor<4xf32> from <packed> {trainable}
func.func @loss(%x: tensor<1x2x3xi64> {train.input = "x"}) -> tensor<f32> {
  %q = train.read @q : tensor<1x2x3x4xf32> {train.id = "q"}
  %m = train.read @m : tensor<1x2x3x3xf32> {train.id = "m"}
  %s = train.read @s : tensor<4xf32> {train.id = "s"}
  // expected-error @below {{has no gradient for its mask, which depends on a trainable parameter; freeze that parameter (operator 'masked')}}
  %o:2 = train.attention %q, %q, %q mask %m scale 0.5 {train.id = "masked"} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x3xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  // expected-error @below {{has a gradient for its first result only, but log_sum leads to the loss too (operator 'log')}}
  %p:2 = train.attention %q, %q, %q scale 0.5 {train.id = "log"} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  // expected-error @below {{has a gradient for its first result only, but mean or rstd lead to the loss too (operator 'norm')}}
  %y:3 = train.layer_norm %q, %s epsilon 1.0e-5 : tensor<1x2x3x4xf32>, tensor<4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32> {train.id = "norm"}
  // expected-error @below {{has a gradient for its sum only, but count or log_sum lead to the loss too (operator 'xent')}}
  %e:3 = train.softmax_cross_entropy %q, %x ignore -100 {train.id = "xent"} : (tensor<1x2x3x4xf32>, tensor<1x2x3xi64>) -> (tensor<f32>, tensor<f32>, tensor<1x2x3xf32>)
  %0 = train.reduce sum %o#0 dims [0, 1, 2, 3] : tensor<1x2x3x4xf32> -> tensor<f32> {train.id = "0"}
  %1 = train.reduce sum %p#1 dims [0, 1, 2] : tensor<1x2x3xf32> -> tensor<f32> {train.id = "1"}
  %2 = train.reduce sum %y#1 dims [0, 1, 2] : tensor<1x2x3xf32> -> tensor<f32> {train.id = "2"}
  %3 = train.reduce sum %e#2 dims [0, 1, 2] : tensor<1x2x3xf32> -> tensor<f32> {train.id = "3"}
  %4 = train.add %0, %1 : tensor<f32> {train.id = "4"}
  %5 = train.add %2, %3 : tensor<f32> {train.id = "5"}
  %6 = train.add %4, %5 : tensor<f32> {train.id = "6"}
  return %6 : tensor<f32>
}

// -----

train.parameter weight @w "w" : tensor<2x4xf32> from <packed> {trainable}
train.parameter weight @s "s" : tensor<4xf32> from <packed> {trainable}
func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<2x4xf32> {train.id = "w"}
  %s = train.read @s : tensor<4xf32> {train.id = "s"}
  // expected-error @below {{has no gradient for its tables, but a trainable parameter leads to them (operator 'turn')}}
  %r = train.rotary %x, %w, %w : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> {train.id = "turn"}
  // expected-error @below {{has a gradient for its first result only, but rstd leads to the loss too (operator 'rms')}}
  %n:2 = train.rms_norm %w, %s epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>, tensor<2xf32> {train.id = "rms"}
  %0 = train.reduce sum %r dims [0, 1] : tensor<2x4xf32> -> tensor<f32> {train.id = "0"}
  %1 = train.reduce sum %n#1 dims [0] : tensor<2xf32> -> tensor<f32> {train.id = "1"}
  %2 = train.add %0, %1 : tensor<f32> {train.id = "2"}
  return %2 : tensor<f32>
}
