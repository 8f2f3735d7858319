// DEFINE: %{lower} = windlass-opt --train-differentiate=micro-batches=4 "--train-add-optimizer=optimizer=sgd micro-batches=4" --plan-apply-strategy=ranks=1 --plan-materialize-pipeline --plan-to-sched-pipeline
// RUN: %{lower} %s | FileCheck %s
// RUN: sed 's/"tanh.unnamed.2"/"nothing"/' %s | not %{lower} 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: sed 's/"1f1b"/"breadth-first"/' %s | %{lower} | FileCheck %s --check-prefix=ORDER
// RUN: sed 's/"1f1b"/"zb1p"/' %s | %{lower} | FileCheck %s --check-prefix=SPLIT
// RUN: sed 's/"1f1b"/"chimera"/' %s | not %{lower} 2>&1 | FileCheck %s --check-prefix=TWO-WAYS
// RUN: sed 's/"1f1b"/"fast"/' %s | not %{lower} 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: sed 's/\["tanh.unnamed.2"\]/["tanh.unnamed.2", "matmul.unnamed.4"]/' %s | not %{lower} 2>&1 | FileCheck %s --check-prefix=COUNT

// NOTHING: has no operator "nothing" with which chunk 1 could begin behind chunk 0
// ORDER: #sched.action<backward micro_batch 3>{{.*}}#sched.action<backward micro_batch 2>
// TWO-WAYS: has the schedule 'chimera', which programs cannot run yet: it runs the model in two directions
// NAME: has no schedule: no published schedule is called 'fast'
// COUNT: has no schedule: '1f1b' gives each position as many chunks, but 2 positions cannot share 3 evenly

// A backward in two parts: the product that makes the gradient of a weight reads what the first part hands on.
// SPLIT: func.func @backward(%{{.*}}: tensor<8x6xf32>) -> tensor<8x6xf32>
// SPLIT: %[[G:.*]] = sched.load @received_1_0_0
// SPLIT: return %[[G]]
// SPLIT: func.func @weight_gradient(%[[X:.*]]: tensor<8x6xf32>, %[[Y:.*]]: tensor<8x6xf32>)
// SPLIT: %[[W:.*]] = train.matmul %[[X]], %[[Y]]
// SPLIT: sched.add_to @gradient_w0, %[[W]]
// SPLIT: #sched.action<input_gradient>, #sched.action<weight_gradient>
// SPLIT: func.func @backward_1
// SPLIT-NOT: add_to
// SPLIT: sched.store @sent_1_0_0
// SPLIT: return %{{.*}} : tensor<8x3xf32>
// SPLIT: func.func @weight_gradient_1
// SPLIT: sched.add_to @gradient_w1


// Two positions, each with one chunk: what crosses the border is sent behind the forward and comes back as its gradient, inputs and
// parameters are where operators read them, and all positions agree on the norm.

// CHECK: sched.placement = #sched.placement<[0, 1]>
// CHECK: sched.program @position_0 on
// CHECK-DAG: input @input_0_of_0 {{.*}} {chunk = 0 : i64, logical_name = "x"}
// CHECK-DAG: parameter @parameter_w0
// CHECK-DAG: sent @sent_0_1_0 : tensor<8x6xf32> {{.*}} {chunk = 0 : i64, peer = 1 : i64}
// CHECK-DAG: received @received_1_0_0 : tensor<8x6xf32> {{.*}} {chunk = 0 : i64, peer = 1 : i64}
// CHECK-NOT: step_loss
// CHECK: func.func @forward() -> tensor<8x6xf32>
// CHECK: %[[H:.*]] = train.matmul
// CHECK: sched.store @sent_0_1_0, %[[H]]
// CHECK: func.func @backward(%[[X:.*]]: tensor<8x6xf32>)
// CHECK: %[[G:.*]] = sched.load @received_1_0_0
// CHECK: %[[W:.*]] = train.matmul %[[X]], %[[G]]
// CHECK: sched.add_to @gradient_w0, %[[W]]
// CHECK: func.func @evaluate()
// CHECK: sched.store @sent_0_1_0
// CHECK: func.func @update()
// CHECK: sched.all_reduce sum %{{.*}} over [] and positions
// CHECK: sched.store @step_grad_norm
// CHECK: sched.schedule [#sched.action<forward>, #sched.action<send peer 1>,

// CHECK: sched.program @position_1 position 1 on
// CHECK-DAG: input @input_1_of_1 {{.*}} {chunk = 1 : i64, logical_name = "y"
// CHECK-DAG: loss @step_loss
// CHECK-NOT: parameter_w0
// CHECK: func.func @forward_1()
// CHECK: %[[R:.*]] = sched.load @received_0_1_0
// CHECK: train.tanh %[[R]]
// CHECK: sched.add_to @step_loss
// CHECK: func.func @backward_1
// CHECK: %[[T:.*]] = train.tanh_grad
// CHECK: sched.store @sent_1_0_0, %[[T]]
// CHECK: func.func @evaluate_1()
// CHECK: sched.load @received_0_1_0
// CHECK: sched.store @evaluate_loss
module attributes {plan.pipeline = #plan.pipeline<positions = 2, schedule = "1f1b", begins = ["tanh.unnamed.2"]>} {
  train.parameter weight @w0 "fc0.weight" : tensor<6x6xf32> from #train.source<packed> {trainable}
  train.parameter weight @w1 "fc1.weight" : tensor<6x3xf32> from #train.source<packed> {trainable}
  func.func @loss(%x: tensor<8x6xf32> {train.input = "x"}, %y: tensor<8xi64> {train.input = "y", train.vocabulary = 3 : i64}) -> tensor<f32> {
    %w0 = train.read @w0 : tensor<6x6xf32>
    %h0 = train.matmul %x, %w0 batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x6xf32> -> tensor<8x6xf32>
    %v1 = train.tanh %h0 : tensor<8x6xf32>
    %w1 = train.read @w1 : tensor<6x3xf32>
    %h1 = train.matmul %v1, %w1 batch [] x [] contract [1] x [0] : tensor<8x6xf32>, tensor<6x3xf32> -> tensor<8x3xf32>
    %sum, %count, %log_sum = train.softmax_cross_entropy %h1, %y ignore -100 : (tensor<8x3xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
    %loss = train.loss %sum, %count : tensor<f32>
    return %loss : tensor<f32>
  }
}
