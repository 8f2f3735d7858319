// DEFINE: %{lower} = windlass-opt --train-differentiate=micro-batches=4 "--train-add-optimizer=optimizer=sgd micro-batches=4" --plan-apply-strategy=ranks=1 --plan-materialize-pipeline --plan-to-sched-pipeline
// RUN: split-file %s %t
// RUN: %{lower} %t/tied.mlir | FileCheck %t/tied.mlir
// RUN: not %{lower} %t/frozen.mlir 2>&1 | FileCheck %t/frozen.mlir

// A weight that two positions read: each accumulates its part of the gradient, their last reductions add these up, and both update a
// copy. Its squares count in the first position.

//--- tied.mlir
// CHECK: sched.program @position_0 on
// CHECK-DAG: parameter @parameter_w
// CHECK-DAG: state @state_w.momentum_buffer
// CHECK: func.func @backward(
// CHECK: %[[RHS:.*]] = train.matmul {{.*}} {train.forward = "matmul.unnamed.1", train.id = "matmul.unnamed.1.grad.rhs"}
// CHECK: sched.add_to @gradient_w, %[[RHS]]
// CHECK: func.func @reduce()
// CHECK: %[[PART:.*]] = sched.load @gradient_w
// CHECK: %[[SUM:.*]] = sched.all_reduce sum %[[PART]] over [] and positions [0, 1] {train.id = "update/w/tied_sum"}
// CHECK: sched.store @gradient_w, %[[SUM]]
// CHECK: func.func @update()
// CHECK: %[[G:.*]] = sched.load @gradient_w
// CHECK: train.square_sum %[[G]]
// CHECK: sched.store @parameter_w
// CHECK: sched.program @position_1 position 1 on
// CHECK-DAG: parameter @parameter_w
// CHECK-DAG: state @state_w.momentum_buffer
// CHECK: func.func @backward_1(
// CHECK: %[[RHS:.*]] = train.matmul {{.*}} {train.forward = "matmul.unnamed.3", train.id = "matmul.unnamed.3.grad.rhs"}
// CHECK: sched.add_to @gradient_w, %[[RHS]]
// CHECK: func.func @reduce_1()
// CHECK: sched.all_reduce sum %{{.*}} over [] and positions [0, 1] {train.id = "update/w/tied_sum"}
// CHECK: func.func @update_1()
// CHECK: %[[NONE:.*]] = train.constant dense<0.000000e+00>
// CHECK: sched.all_reduce sum %[[NONE]] over [] and positions [0, 1] {train.id = "update/grad_norm"}
// CHECK: sched.store @parameter_w
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

// Where a position reads a weight but makes no part of its gradient, the copy there would not be trained.

//--- frozen.mlir
// CHECK: error: 'sched.load' op reads weight 'w' in chunk 1 on position 1, which makes no part of its gradient: it is trained in chunk 0 on position 0; choose other chunks
module attributes {plan.pipeline = #plan.pipeline<positions = 2, schedule = "1f1b", begins = ["tanh.unnamed.2"]>} {
  train.parameter weight @w "w" : tensor<6x6xf32> from #train.source<packed> {trainable}
  func.func @loss(%x: tensor<8x6xf32> {train.input = "x"}, %y: tensor<8xi64> {train.input = "y", train.vocabulary = 6 : i64}) -> tensor<f32> {
    %w = train.read @w : tensor<6x6xf32>
    %h = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x6xf32> -> tensor<8x6xf32>
    %v = train.tanh %h : tensor<8x6xf32>
    %b = train.cast %w : tensor<6x6xf32> -> tensor<6x6xi1>
    %f = train.cast %b : tensor<6x6xi1> -> tensor<6x6xf32>
    %l = train.matmul %v, %f batch [] x [] contract [1] x [1] : tensor<8x6xf32>, tensor<6x6xf32> -> tensor<8x6xf32>
    %sum, %count, %log_sum = train.softmax_cross_entropy %l, %y ignore -100 : (tensor<8x6xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
    %loss = train.loss %sum, %count : tensor<f32>
    return %loss : tensor<f32>
  }
}
