// RUN: windlass-opt %s -split-input-file --plan-apply-strategy="strategy=megatron ranks=2" | FileCheck %s

// An output layer is split by classes, and the loss with it; the layer before it sums over the
// columns of the first one.
// CHECK: train.parameter weight @head {{.*}}plan.layout = #plan.layout<[<[<4>]>, <[<8, ["model"]>]>]>
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"n0", ["model"]>]>, train.id = "up"
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"k0", ["model"]>]>, train.id = "down"
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"n0", ["model"]>]>, train.id = "logits"
// CHECK: train.softmax_cross_entropy {{.*}} plan.strategy = #plan.strategy<[<"classes", ["model"]>]>
train.parameter weight @up "up" : tensor<4x6xf32> from <none>
train.parameter weight @down "down" : tensor<6x4xf32> from <none>
train.parameter weight @head "head" : tensor<4x8xf32> from <none>
func.func @microbatch(%x: tensor<2x4xf32> {train.input = "x"}, %labels: tensor<2xi64> {train.input = "labels"}) -> tensor<f32> {
  %up = train.read @up : tensor<4x6xf32>
  %0 = train.matmul %x, %up batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x6xf32> -> tensor<2x6xf32> {train.id = "up"}
  %1 = train.relu %0 : tensor<2x6xf32>
  %down = train.read @down : tensor<6x4xf32>
  %2 = train.matmul %1, %down batch [] x [] contract [1] x [0] : tensor<2x6xf32>, tensor<6x4xf32> -> tensor<2x4xf32> {train.id = "down"}
  %head = train.read @head : tensor<4x8xf32>
  %3 = train.matmul %2, %head batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x8xf32> -> tensor<2x8xf32> {train.id = "logits"}
  %sum, %count, %log_sum = train.softmax_cross_entropy %3, %labels ignore -100 : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>)
  %loss = train.loss %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A table of tokens that is the output layer too is split by rows for both; the sum of the parts of the embedding is
// what ranks exchange. Its gradient is made in parts, though nothing that it reads is split.
// CHECK: train.parameter weight @table {{.*}}plan.layout = #plan.layout<[<[<8, ["model"]>]>, <[<4>]>]>
// CHECK: train.embedding {{.*}} unreduced = [<"model", sum>]>], plan.strategy = #plan.strategy<[<"rows", ["model"]>]>
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"n0", ["model"]>]>, train.id = "logits"
// CHECK: train.softmax_cross_entropy {{.*}} plan.strategy = #plan.strategy<[<"classes", ["model"]>]>
// CHECK: train.embedding_grad {{.*}} plan.strategy = #plan.strategy<[<"rows", ["model"]>]>
train.parameter weight @table "table" : tensor<8x4xf32> from <none>
func.func @microbatch(%ids: tensor<2xi64> {train.input = "ids"}, %labels: tensor<2xi64> {train.input = "labels"}) -> tensor<f32> {
  %table = train.read @table : tensor<8x4xf32>
  %0 = train.embedding %table, %ids : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32> {train.id = "tokens"}
  %again = train.read @table : tensor<8x4xf32>
  %1 = train.matmul %0, %again batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32> {train.id = "logits"}
  %sum, %count, %log_sum = train.softmax_cross_entropy %1, %labels ignore -100 : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>)
  %loss = train.loss %sum, %count : tensor<f32>
  %gradient = train.embedding_grad %ids, %0 rows 8 : tensor<2xi64>, tensor<2x4xf32> -> tensor<8x4xf32> {train.forward = "tokens"}
  return %loss : tensor<f32>
}

// -----

// A table that something else reads whole stays whole, and so does the output layer that it is; so do positions, whose
// ids are no input's, and types of tokens, of which there are fewer.
// CHECK: train.parameter weight @table {{.*}}plan.layout = #plan.layout<[<[<8>]>, <[<4>]>]>
// CHECK: train.parameter weight @types {{.*}}plan.layout = #plan.layout<[<[<2>]>, <[<4>]>]>
// CHECK-COUNT-3: train.embedding {{.*}} plan.strategy = #plan.strategy<[]>
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[]>, train.id = "logits"
train.parameter weight @table "table" : tensor<8x4xf32> from <none>
train.parameter weight @types "types" : tensor<2x4xf32> from <none>
func.func @microbatch(%ids: tensor<2xi64> {train.input = "ids"}, %type: tensor<2xi64> {train.input = "type"}, %places: tensor<2xi64> {train.init_value = 0 : i64}, %labels: tensor<2xi64> {train.input = "labels"}) -> tensor<f32> {
  %table = train.read @table : tensor<8x4xf32>
  %0 = train.embedding %table, %ids : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  %positions = train.embedding %table, %places : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  %types = train.read @types : tensor<2x4xf32>
  %1 = train.embedding %types, %type : tensor<2x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
  %2 = train.add %0, %1 : tensor<2x4xf32>
  %3 = train.add %2, %positions : tensor<2x4xf32>
  %4 = train.matmul %3, %table batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32> {train.id = "logits"}
  %sum, %count, %log_sum = train.softmax_cross_entropy %4, %labels ignore -100 : (tensor<2x8xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>)
  %loss = train.loss %sum, %count : tensor<f32>
  return %loss : tensor<f32>
}

// -----

// A fused projection whose three parts are slices is split in three blocks.
// CHECK: train.parameter weight @fused {{.*}}plan.layout = #plan.layout<[<[<4>]>, <[<3>, <4, ["model"]>]>]>
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"n0", ["model"], blocks = 3>]>, train.id = "fused"
// CHECK-COUNT-3: train.slice {{.*}} plan.strategy = #plan.strategy<[<"d2", ["model"]>]>
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"k0", ["model"]>]>, train.id = "down"
train.parameter weight @fused "fused" : tensor<4x12xf32> from <none>
train.parameter weight @down "down" : tensor<4x4xf32> from <none>
func.func @microbatch(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<2x4xf32> {
  %fused = train.read @fused : tensor<4x12xf32>
  %0 = train.matmul %x, %fused batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x12xf32> -> tensor<2x12xf32> {train.id = "fused"}
  %1 = train.reshape %0 : tensor<2x12xf32> -> tensor<2x3x4xf32>
  %2 = train.slice %1 from [0, 0, 0] sizes [2, 1, 4] : tensor<2x3x4xf32> -> tensor<2x1x4xf32>
  %3 = train.slice %1 from [0, 1, 0] sizes [2, 1, 4] : tensor<2x3x4xf32> -> tensor<2x1x4xf32>
  %4 = train.slice %1 from [0, 2, 0] sizes [2, 1, 4] : tensor<2x3x4xf32> -> tensor<2x1x4xf32>
  %5 = train.mul %2, %3 : tensor<2x1x4xf32>
  %6 = train.mul %4, %5 : tensor<2x1x4xf32>
  %7 = train.reshape %6 : tensor<2x1x4xf32> -> tensor<2x4xf32>
  %down = train.read @down : tensor<4x4xf32>
  %8 = train.matmul %7, %down batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "down"}
  return %8 : tensor<2x4xf32>
}

// -----

// A part that is taken alone, such as the token of a class, is none of a fused projection.
// CHECK: train.parameter weight @wide {{.*}}plan.layout = #plan.layout<[<[<4>]>, <[<12>]>]>
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[]>, train.id = "wide"
train.parameter weight @wide "wide" : tensor<4x12xf32> from <none>
train.parameter weight @down "down" : tensor<4x4xf32> from <none>
func.func @microbatch(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<2x4xf32> {
  %wide = train.read @wide : tensor<4x12xf32>
  %0 = train.matmul %x, %wide batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x12xf32> -> tensor<2x12xf32> {train.id = "wide"}
  %1 = train.reshape %0 : tensor<2x12xf32> -> tensor<2x3x4xf32>
  %2 = train.slice %1 from [0, 1, 0] sizes [2, 1, 4] : tensor<2x3x4xf32> -> tensor<2x1x4xf32>
  %3 = train.reshape %2 : tensor<2x1x4xf32> -> tensor<2x4xf32>
  %down = train.read @down : tensor<4x4xf32>
  %4 = train.matmul %3, %down batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "down"}
  return %4 : tensor<2x4xf32>
}

// -----

// Weights of experts, of which each token multiplies copies, are split where they are kept.
// CHECK: train.parameter weight @up {{.*}}plan.layout = #plan.layout<[<[<3>]>, <[<6, ["model"]>]>, <[<4>]>]>
// CHECK: train.parameter weight @down {{.*}}plan.layout = #plan.layout<[<[<3>]>, <[<4>]>, <[<6, ["model"]>]>]>
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"m0", ["model"]>]>, train.id = "up"
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"k0", ["model"]>]>, train.id = "down"
train.parameter weight @up "up" : tensor<3x6x4xf32> from <none>
train.parameter weight @down "down" : tensor<3x4x6xf32> from <none>
func.func @microbatch(%x: tensor<2x4x1xf32> {train.input = "x"}, %experts: tensor<2xi64> {train.input = "experts"}) -> tensor<2x4x1xf32> {
  %up = train.read @up : tensor<3x6x4xf32>
  %0 = train.gather %up, %experts axis 0 : tensor<3x6x4xf32>, tensor<2xi64> -> tensor<2x6x4xf32>
  %1 = train.matmul %0, %x batch [0] x [0] contract [2] x [1] : tensor<2x6x4xf32>, tensor<2x4x1xf32> -> tensor<2x6x1xf32> {train.id = "up"}
  %2 = train.relu %1 : tensor<2x6x1xf32>
  %down = train.read @down : tensor<3x4x6xf32>
  %3 = train.gather %down, %experts axis 0 : tensor<3x4x6xf32>, tensor<2xi64> -> tensor<2x4x6xf32>
  %4 = train.matmul %3, %2 batch [0] x [0] contract [2] x [1] : tensor<2x4x6xf32>, tensor<2x6x1xf32> -> tensor<2x4x1xf32> {train.id = "down"}
  return %4 : tensor<2x4x1xf32>
}
