// A perceptron of two layers at L2: batch 8, 4 micro-batches per step.
module attributes {train.model = "mlp", train.settings = {optimizer = "sgd", micro_batches = 4 : i64, clip = false, precision = "f32"}} {
  train.parameter weight @w0 "layer0.weight" : tensor<4x6xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @b0 "layer0.bias" : tensor<6xf32> from #train.source<none> {trainable}
  train.parameter weight @w1 "layer1.weight" : tensor<6x3xf32> from #train.source<none> {trainable, decays}
  train.parameter state @w0_m "layer0.weight/momentum_buffer" : tensor<4x6xf32> from #train.source<none> {of = @w0}
  train.parameter state @b0_m "layer0.bias/momentum_buffer" : tensor<6xf32> from #train.source<none> {of = @b0}
  train.parameter state @w1_m "layer1.weight/momentum_buffer" : tensor<6x3xf32> from #train.source<none> {of = @w1}

  func.func @init() -> tensor<6xf32> {
    %0 = train.iota 0 start 0.0 step 0.5 : tensor<6xf32> {train.id = "ramp"}
    return %0 : tensor<6xf32>
  }

  func.func @microbatch(%x: tensor<8x4xf32> {train.input = "x"}, %labels: tensor<8xi64> {train.input = "labels", train.vocabulary = 3 : i64},
                        %ramp: tensor<6xf32> {train.init_value = 0 : i64})
      -> (tensor<f32>, tensor<4x6xf32> {train.gradient = @w0}, tensor<6xf32> {train.gradient = @b0}, tensor<6x3xf32> {train.gradient = @w1}) {
    %w0 = train.read @w0 : tensor<4x6xf32>
    %h = train.matmul %x, %w0 batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32> {train.id = "fc0"}
    %b0 = train.read @b0 : tensor<6xf32>
    %b = train.add %b0, %ramp : tensor<6xf32> {train.id = "bias"}
    %bb = train.broadcast %b dims [1] : tensor<6xf32> -> tensor<8x6xf32> {train.id = "bias.broadcast"}
    %hb = train.add %h, %bb : tensor<8x6xf32> {train.id = "add0"}
    %a = train.relu %hb : tensor<8x6xf32> {train.id = "relu0"}
    %w1 = train.read @w1 : tensor<6x3xf32>
    %logits = train.matmul %a, %w1 batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x3xf32> -> tensor<8x3xf32> {train.id = "fc1"}
    %sum, %count, %log_sum = train.softmax_cross_entropy %logits, %labels ignore -100 {train.id = "ce"} : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
    %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
    %share_factor = train.constant {train.id = "share.factor"} dense<0.25> : tensor<f32>
    %share = train.mul %loss, %share_factor : tensor<f32> {train.id = "share"}
    %s_count = train.stash %count : tensor<f32>
    %s_logits = train.stash %logits : tensor<8x3xf32>
    %s_labels = train.stash %labels : tensor<8xi64>
    %s_log_sum = train.stash %log_sum : tensor<8xf32>
    %s_a = train.stash %a : tensor<8x6xf32>
    %s_w1 = train.stash %w1 : tensor<6x3xf32>
    %s_hb = train.stash %hb : tensor<8x6xf32>
    %s_x = train.stash %x : tensor<8x4xf32>
    %one = train.constant {train.id = "seed"} dense<0.25> : tensor<f32>
    %dsum = train.div %one, %s_count : tensor<f32> {train.id = "loss.grad.0", train.forward = "loss"}
    %dlogits = train.softmax_cross_entropy_grad %dsum, %s_logits, %s_labels, %s_log_sum ignore -100 {train.id = "ce.grad.0", train.forward = "ce"} : (tensor<f32>, tensor<8x3xf32>, tensor<8xi64>, tensor<8xf32>) -> tensor<8x3xf32>
    %dw1 = train.matmul %s_a, %dlogits batch [] x [] contract [0] x [0] : tensor<8x6xf32>, tensor<8x3xf32> -> tensor<6x3xf32> {train.id = "fc1.grad.1", train.forward = "fc1"}
    %da = train.matmul %dlogits, %s_w1 batch [] x [] contract [1] x [1] : tensor<8x3xf32>, tensor<6x3xf32> -> tensor<8x6xf32> {train.id = "fc1.grad.0", train.forward = "fc1"}
    %dhb = train.relu_grad %s_hb, %da : tensor<8x6xf32> {train.id = "relu0.grad.0", train.forward = "relu0"}
    %db = train.reduce sum %dhb dims [0] : tensor<8x6xf32> -> tensor<6xf32> {train.id = "bias.broadcast.grad.0", train.forward = "bias.broadcast"}
    %dw0 = train.matmul %s_x, %dhb batch [] x [] contract [0] x [0] : tensor<8x4xf32>, tensor<8x6xf32> -> tensor<4x6xf32> {train.id = "fc0.grad.1", train.forward = "fc0"}
    return %share, %dw0, %db, %dw1 : tensor<f32>, tensor<4x6xf32>, tensor<6xf32>, tensor<6x3xf32>
  }

  func.func @update(%gw0: tensor<4x6xf32> {train.gradient = @w0}, %gb0: tensor<6xf32> {train.gradient = @b0}, %gw1: tensor<6x3xf32> {train.gradient = @w1}) -> tensor<f32> {
    %n0 = train.square_sum %gw0 : tensor<4x6xf32> -> tensor<f32> {train.id = "norm.0"}
    %n1 = train.square_sum %gb0 : tensor<6xf32> -> tensor<f32> {train.id = "norm.1"}
    %n2 = train.square_sum %gw1 : tensor<6x3xf32> -> tensor<f32> {train.id = "norm.2"}
    %n = train.accumulate %n0, %n1, %n2 : tensor<f32> {train.id = "norm.sum"}
    %norm = train.sqrt %n : tensor<f32> {train.id = "norm"}
    %scale = train.constant {train.id = "scale"} dense<1.0> : tensor<f32>
    %lr = train.hyperparameter learning_rate : tensor<f32>
    %mu = train.hyperparameter momentum : tensor<f32>
    %wd = train.hyperparameter weight_decay : tensor<f32>
    %w0 = train.read @w0 : tensor<4x6xf32>
    %m0 = train.read @w0_m : tensor<4x6xf32>
    %nw0, %nm0 = train.sgd %w0, %m0, %gw0, %lr, %mu, %wd, %scale decays {train.id = "step.0"} : (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
    train.write @w0, %nw0 : tensor<4x6xf32>
    train.write @w0_m, %nm0 : tensor<4x6xf32>
    %b0 = train.read @b0 : tensor<6xf32>
    %m1 = train.read @b0_m : tensor<6xf32>
    %nb0, %nm1 = train.sgd %b0, %m1, %gb0, %lr, %mu, %wd, %scale {train.id = "step.1"} : (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<6xf32>, tensor<6xf32>)
    train.write @b0, %nb0 : tensor<6xf32>
    train.write @b0_m, %nm1 : tensor<6xf32>
    %w1 = train.read @w1 : tensor<6x3xf32>
    %m2 = train.read @w1_m : tensor<6x3xf32>
    %nw1, %nm2 = train.sgd %w1, %m2, %gw1, %lr, %mu, %wd, %scale decays {train.id = "step.2"} : (tensor<6x3xf32>, tensor<6x3xf32>, tensor<6x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<6x3xf32>, tensor<6x3xf32>)
    train.write @w1, %nw1 : tensor<6x3xf32>
    train.write @w1_m, %nm2 : tensor<6x3xf32>
    return %norm : tensor<f32>
  }

  func.func @evaluate(%x: tensor<8x4xf32> {train.input = "x"}, %labels: tensor<8xi64> {train.input = "labels", train.vocabulary = 3 : i64},
                      %ramp: tensor<6xf32> {train.init_value = 0 : i64}) -> tensor<f32> {
    %w0 = train.read @w0 : tensor<4x6xf32>
    %h = train.matmul %x, %w0 batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x6xf32> -> tensor<8x6xf32> {train.id = "fc0"}
    %w1 = train.read @w1 : tensor<6x3xf32>
    %logits = train.matmul %h, %w1 batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x3xf32> -> tensor<8x3xf32> {train.id = "fc1"}
    %sum, %count, %log_sum = train.softmax_cross_entropy %logits, %labels ignore -100 {train.id = "ce"} : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
    %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
    return %loss : tensor<f32>
  }
}
