// RUN: windlass-opt %s -split-input-file -verify-diagnostics -train-verify-functions

// expected-error @below {{a training step has a function @init}}
// expected-error @below {{a training step has a function @microbatch}}
// expected-error @below {{a training step has a function @evaluate}}
module {}

// -----

train.parameter weight @w "w" : tensor<f32> from <packed>
// expected-error @below {{takes 1 arguments; init values depend on no input}}
func.func @init(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{in @init; init values depend on no parameter}}
  %w = train.read @w : tensor<f32> {train.id = "w"}
  return %x : tensor<f32>
}
// expected-error @below {{argument 0 has neither train.input nor train.init_value}}
// expected-error @below {{argument 1 is value 1 of @init, which has 1}}
// expected-error @below {{argument 2 has type 'tensor<2xf32>', but value 0 of @init is 'tensor<f32>'}}
func.func @microbatch(%x: tensor<f32>, %y: tensor<f32> {train.init_value = 1 : i64}, %z: tensor<2xf32> {train.init_value = 0 : i64}) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func @evaluate(%x: tensor<f32> {train.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}

// -----

train.parameter weight @w "w" : tensor<f32> from <packed> {trainable}
func.func @init() {
  return
}
func.func @microbatch(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32>, tensor<f32> {train.gradient = @w}) {
  %w = train.read @w : tensor<f32> {train.id = "w"}
  %c = train.constant dense<2.0> : tensor<f32>
  %0 = train.mul %w, %c : tensor<f32> {train.id = "mul"}
  %1 = train.stash %0 : tensor<f32> {train.id = "stash"}
  %2 = train.mul %1, %c : tensor<f32> {train.forward = "mul", train.id = "a"}
  // expected-error @below {{uses a value of the forward part; hand it over by train.stash}}
  %3 = train.mul %2, %0 : tensor<f32> {train.forward = "mul", train.id = "b"}
  // expected-error @below {{is the adjoint of 'sum', which is no forward operator}}
  %4 = train.mul %3, %x : tensor<f32> {train.forward = "sum", train.id = "c"}
  // expected-error @below {{of the forward part follows the backward part}}
  %5 = train.neg %4 : tensor<f32> {train.id = "d"}
  // expected-error @below {{of the stash part follows the backward part}}
  %6 = train.stash %4 : tensor<f32> {train.id = "e"}
  return %5, %4 : tensor<f32>, tensor<f32>
}
func.func @evaluate(%x: tensor<f32> {train.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}
// expected-error @below {{has 0 gradients as arguments, but the module has 1 trainable parameters}}
func.func @update() -> tensor<f32> {
  %0 = train.constant dense<0.0> : tensor<f32>
  return %0 : tensor<f32>
}

// -----

train.parameter weight @w "w" : tensor<f32> from <packed> {trainable}
func.func @init() {
  return
}
// expected-error @below {{results 1 must be the gradient of @w of type 'tensor<f32>'}}
func.func @microbatch(%x: tensor<f32> {train.input = "x"}) -> (tensor<f32>, tensor<f32> {train.gradient = @v}) {
  return %x, %x : tensor<f32>, tensor<f32>
}
func.func @evaluate(%x: tensor<f32> {train.input = "x"}) -> tensor<f32> {
  return %x : tensor<f32>
}
