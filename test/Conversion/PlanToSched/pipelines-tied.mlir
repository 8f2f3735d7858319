// RUN: not windlass-opt %s --train-differentiate=micro-batches=4 "--train-add-optimizer=optimizer=sgd micro-batches=4" --plan-apply-strategy=ranks=1 --plan-materialize-pipeline --plan-to-sched-pipeline 2>&1 | FileCheck %s

// A weight that is trained cannot be read on two positions.
// CHECK: error: 'sched.load' op reads weight 'w' in chunk 1 on position 1, but it is trained in chunk 0 on position 0: a weight must be on one position; choose other chunks
module attributes {plan.pipeline = #plan.pipeline<positions = 2, schedule = "1f1b", begins = ["tanh.unnamed.2"]>} {
  train.parameter weight @w "w" : tensor<6x6xf32> from #train.source<packed> {trainable}
  func.func @loss(%x: tensor<8x6xf32> {train.input = "x"}, %y: tensor<8xi64> {train.input = "y", train.vocabulary = 6 : i64}) -> tensor<f32> {
    %w = train.read @w : tensor<6x6xf32>
    %h = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x6xf32> -> tensor<8x6xf32>
    %v = train.tanh %h : tensor<8x6xf32>
    %l = train.matmul %v, %w batch [] x [] contract [1] x [1] : tensor<8x6xf32>, tensor<6x6xf32> -> tensor<8x6xf32>
    %sum, %count, %log_sum = train.softmax_cross_entropy %l, %y ignore -100 : (tensor<8x6xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
    %loss = train.loss %sum, %count : tensor<f32>
    return %loss : tensor<f32>
  }
}
