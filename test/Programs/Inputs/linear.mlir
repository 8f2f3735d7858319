// A linear layer and its loss, at L1.
module attributes {train.model = "linear"} {
  train.parameter weight @w0 "model.0.weight" : tensor<4x8xf32> from <packed, "", 0, 128> {decays, trainable}
  train.parameter weight @w1 "model.0.bias" : tensor<4xf32> from <packed, "", 0, 16> {trainable}
  func.func @loss(%x: tensor<4x8xf32> {train.feed = "none", train.input = "x"}, %labels: tensor<4xi64> {train.feed = "none", train.input = "labels", train.vocabulary = 4 : i64}) -> tensor<f32> {
    %w = train.read @w0 : tensor<4x8xf32> {train.id = "read.0"}
    %b = train.read @w1 : tensor<4xf32> {train.id = "read.1"}
    %0 = train.matmul %x, %w batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32> {train.id = "model.0.matmul.0"}
    %1 = train.broadcast %b dims [1] : tensor<4xf32> -> tensor<4x4xf32> {train.id = "model.0.broadcast.0"}
    %2 = train.add %0, %1 : tensor<4x4xf32> {train.id = "model.0.add.0"}
    %sum, %count, %log_sum = train.softmax_cross_entropy %2, %labels ignore -100 {train.id = "model.softmax_cross_entropy.0"} : (tensor<4x4xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
    %3 = train.loss %sum, %count : tensor<f32> {train.id = "model.loss.0"}
    return %3 : tensor<f32>
  }
}
