// RUN: windlass-opt %s -split-input-file -verify-diagnostics -train-verify-graph

train.parameter weight @w "w" : tensor<f32> from <packed> {trainable}
func.func @loss(%x: tensor<f32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<f32> {train.id = "w"}
  %c = train.constant dense<2.0> : tensor<f32>
  %0 = train.mul %w, %c : tensor<f32> {train.id = "mul"}
  return %0 : tensor<f32>
}

// -----

// expected-error @below {{a training graph has a function @loss}}
module {}

// -----

train.parameter weight @w "w" : tensor<f32> from <packed>
// expected-error @below {{has the logical name 'w' of @w; names are distinct}}
train.parameter weight @v "w" : tensor<f32> from <packed>
// expected-error @below {{is the state of @u, which is no weight of the module}}
train.parameter state @s "w/s" : tensor<f32> from <none> {of = @u}
// expected-error @below {{@other is not a function of this level, which has loss}}
func.func @other() {
  return
}
// expected-error @below {{must return one floating-point number, the loss, but its type is '(tensor<f32>) -> tensor<2xf32>'}}
// expected-error @below {{has no train.input on argument 0}}
func.func @loss(%x: tensor<f32>) -> tensor<2xf32> {
  // expected-error @below {{has no train.id}}
  %w = train.read @w : tensor<f32>
  %0 = train.neg %w : tensor<f32> {train.id = "a"}
  // expected-error @below {{has the train.id 'a' of another operator in @loss}}
  %1 = train.broadcast %0 dims [] : tensor<f32> -> tensor<2xf32> {train.id = "a"}
  // expected-error @below {{in @loss; parameters are written in @update only}}
  train.write @w, %0 : tensor<f32> {train.id = "b"}
  // expected-error @below {{is not an operator of the train dialect}}
  func.call @other() : () -> ()
  return %1 : tensor<2xf32>
}

// -----

// expected-error @below {{is not allowed in a module of this level, which holds train.parameter and func.func}}
module {}
// expected-error @below {{must have a body of one block}}
// expected-error @below {{has no train.input on argument 0}}
func.func private @loss(%x: tensor<f32>) -> tensor<f32>

// -----

// expected-error @below {{has an argument of type 'tensor<?xf32>'; arguments are tensors of static shape}}
func.func @loss(%x: tensor<?xf32> {train.input = "x"}, %y: tensor<f32> {train.input = "y"}) -> tensor<f32> {
  return %y : tensor<f32>
}
