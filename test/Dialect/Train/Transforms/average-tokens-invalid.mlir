// RUN: windlass-opt %s -split-input-file -train-average-tokens -verify-diagnostics

// expected-error @below {{there is no function @loss with a body; labels are found before train-differentiate}}
module {
}

// -----

// A loss that is no mean over labels.
train.parameter weight @w "w" : tensor<4xf32> from <packed> {trainable}
// expected-error @below {{--average tokens counts the labels of the loss, but it is reduce 'mse', not the mean of one cross entropy}}
func.func @loss() -> tensor<f32> {
  %w = train.read @w : tensor<4xf32> {train.id = "w"}
  %loss = train.reduce sum %w dims [0] : tensor<4xf32> -> tensor<f32> {train.id = "mse"}
  return %loss : tensor<f32>
}

// -----

// The sum of one loss over the labels of another.
train.parameter weight @w "w" : tensor<4x7xf32> from <packed> {trainable}
// expected-error @below {{but it is loss 'loss', not the mean of one cross entropy}}
func.func @loss(%y: tensor<4xi64> {train.input = "y"}) -> tensor<f32> {
  %w = train.read @w : tensor<4x7xf32> {train.id = "w"}
  %sum, %count, %log = train.softmax_cross_entropy %w, %y ignore -100 {train.id = "a"} : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  %sum2, %count2, %log2 = train.softmax_cross_entropy %w, %y ignore 0 {train.id = "b"} : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  %loss = train.loss %sum, %count2 : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}

// -----

// Labels that are computed.
train.parameter weight @w "w" : tensor<4x7xf32> from <packed> {trainable}
// expected-error @below {{but they come from mul 'times', not from an input by pads, slices and reshapes}}
func.func @loss(%y: tensor<4xi64> {train.input = "y"}) -> tensor<f32> {
  %w = train.read @w : tensor<4x7xf32> {train.id = "w"}
  %times = train.mul %y, %y : tensor<4xi64> {train.id = "times"}
  %sum, %count, %log = train.softmax_cross_entropy %w, %times ignore -100 {train.id = "xent"} : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}

// -----

// A cast that may round labels to the one that is ignored.
train.parameter weight @w "w" : tensor<4x7xf32> from <packed> {trainable}
// expected-error @below {{but they come from cast 'cast', not from an input by pads, slices and reshapes}}
func.func @loss(%y: tensor<4xf32> {train.input = "y"}) -> tensor<f32> {
  %w = train.read @w : tensor<4x7xf32> {train.id = "w"}
  %cast = train.cast %y : tensor<4xf32> -> tensor<4xi64> {train.id = "cast"}
  %sum, %count, %log = train.softmax_cross_entropy %w, %cast ignore -100 {train.id = "xent"} : (tensor<4x7xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}

// -----

// Labels that are added and count.
train.parameter weight @w "w" : tensor<5x7xf32> from <packed> {trainable}
// expected-error @below {{but pad 'pad' adds labels of 1.000000e+00, and -100 is what is ignored}}
func.func @loss(%y: tensor<4xi64> {train.input = "y"}) -> tensor<f32> {
  %w = train.read @w : tensor<5x7xf32> {train.id = "w"}
  %pad = train.pad %y low [0] high [1] value 1.000000e+00 : tensor<4xi64> -> tensor<5xi64> {train.id = "pad"}
  %sum, %count, %log = train.softmax_cross_entropy %w, %pad ignore -100 {train.id = "xent"} : (tensor<5x7xf32>, tensor<5xi64>) -> (tensor<f32>, tensor<f32>, tensor<5xf32>)
  %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}

// -----

// A slice behind a reshape is no box of the input.
train.parameter weight @w "w" : tensor<3x7xf32> from <packed> {trainable}
// expected-error @below {{but they are made by slice 'slice' behind a reshape}}
func.func @loss(%y: tensor<2x2xi64> {train.input = "y"}) -> tensor<f32> {
  %w = train.read @w : tensor<3x7xf32> {train.id = "w"}
  %rows = train.reshape %y : tensor<2x2xi64> -> tensor<4xi64> {train.id = "rows"}
  %slice = train.slice %rows from [1] sizes [3] : tensor<4xi64> -> tensor<3xi64> {train.id = "slice"}
  %sum, %count, %log = train.softmax_cross_entropy %w, %slice ignore -100 {train.id = "xent"} : (tensor<3x7xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<f32>, tensor<3xf32>)
  %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}

// -----

// Nothing but what was added.
train.parameter weight @w "w" : tensor<1x7xf32> from <packed> {trainable}
// expected-error @below {{but slice 'slice' leaves none of them}}
func.func @loss(%y: tensor<4xi64> {train.input = "y"}) -> tensor<f32> {
  %w = train.read @w : tensor<1x7xf32> {train.id = "w"}
  %pad = train.pad %y low [1] high [0] value -1.000000e+02 : tensor<4xi64> -> tensor<5xi64> {train.id = "pad"}
  %slice = train.slice %pad from [0] sizes [1] : tensor<5xi64> -> tensor<1xi64> {train.id = "slice"}
  %sum, %count, %log = train.softmax_cross_entropy %w, %slice ignore -100 {train.id = "xent"} : (tensor<1x7xf32>, tensor<1xi64>) -> (tensor<f32>, tensor<f32>, tensor<1xf32>)
  %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}
