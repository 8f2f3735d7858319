// RUN: windlass-opt %s -split-input-file -verify-diagnostics -train-differentiate

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
  // expected-error @below {{exponent, which depends on a trainable parameter; freeze that parameter (operator 'power')}}
  %1 = train.pow %x, %w : tensor<4xf32> {train.id = "power"}
  // expected-error @below {{of kind max has no gradient, but lies between a trainable parameter and the loss (operator 'highest')}}
  %2 = train.reduce max %w dims [0] : tensor<4xf32> -> tensor<f32> {train.id = "highest"}
  %3 = train.add %0, %1 : tensor<4xf32> {train.id = "add"}
  %4 = train.reduce sum %3 dims [0] : tensor<4xf32> -> tensor<f32> {train.id = "sum"}
  %5 = train.add %4, %2 : tensor<f32> {train.id = "total"}
  return %5 : tensor<f32>
}
