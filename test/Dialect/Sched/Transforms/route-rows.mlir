// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer=optimizer=sgd -plan-apply-strategy="ranks=4 strategy=ep" -plan-decompose-split-reductions -plan-materialize-layouts -plan-to-sched -sched-route-rows | FileCheck %s
// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer=optimizer=sgd -plan-apply-strategy="ranks=4 strategy=ep" -plan-decompose-split-reductions -plan-materialize-layouts -plan-to-sched -sched-route-rows -sched-verify-async -sched-fuse-pipeline -sched-to-commands-pipeline | FileCheck %s --check-prefix=COMMANDS
// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer=optimizer=sgd -plan-apply-strategy="ranks=2 strategy=ep" -plan-decompose-split-reductions -plan-materialize-layouts -plan-to-sched -sched-route-rows | FileCheck %s --check-prefix=FEW
// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer=optimizer=sgd -plan-apply-strategy="ranks=4 strategy=megatron" -plan-decompose-split-reductions -plan-materialize-layouts -plan-to-sched -sched-route-rows | FileCheck %s --check-prefix=WIDTH

// Each of four ranks has an expert of half of the tokens. Rows of inputs, results and gradients go to such ranks only.
// Choices and weights are still gathered, and the weights' gradients are scattered.
// CHECK-LABEL: func.func @forward
// CHECK: %[[GATHERED:.*]] = sched.all_gather {{.*}} : tensor<1x1x4xi64> -> tensor<1x4x4xi64>
// CHECK: %[[CHOICES:.*]] = train.reshape %[[GATHERED]] : tensor<1x4x4xi64> -> tensor<8x2xi64>
// CHECK: %[[X:.*]] = sched.gather_rows %{{.*}} for %[[CHOICES]] of 4 over ["model"] : (tensor<2x4xf32>, tensor<8x2xi64>) -> tensor<8x4xf32>
// CHECK: %[[Y:.*]] = train.experts %[[X]] to %[[CHOICES]]
// CHECK: sched.scatter_rows %[[Y]] for %[[CHOICES]] of 4 over ["model"] : (tensor<8x4xf32>, tensor<8x2xi64>) -> tensor<2x4xf32>
// CHECK-NOT: tensor<1x4x8xf32>
// CHECK-LABEL: func.func @backward
// CHECK-COUNT-2: sched.gather_rows
// CHECK: %[[DX:.*]], %[[DWEIGHTS:.*]], %{{.*}}, %{{.*}} = train.experts_grad
// CHECK-DAG: sched.scatter_rows %[[DX]]
// CHECK-DAG: sched.reduce_scatter

// The scratch is for one row of each choice, and for lists; sums come to the place of the rows that are read.
// COMMANDS: sched.launch_collective gather_rows sum @communicator_0, %{{.*}}, %[[CHOICES:.*]] -> %[[X:.*]], %{{.*}} experts 4 {{.*}}memref<2x4xf32>, memref<8x2xi64> -> memref<8x4xf32>, memref<40xf32>
// COMMANDS: sched.launch experts on @compute ins(%[[X]], %[[CHOICES]]
// COMMANDS: sched.launch_collective scatter_rows sum @communicator_0, %[[Y:.*]], %[[CHOICES]] -> %{{.*}}, %{{.*}}, %[[Y]] experts 4

// Two ranks need five of six tokens, and ranks that share each expert need all of them.
// FEW-NOT: sched.gather_rows
// WIDTH-NOT: sched.gather_rows
module attributes {train.model = "mixture"} {
  train.parameter weight @table "table" : tensor<16x4xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @up "up" : tensor<4x8x4xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @down "down" : tensor<4x4x8xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @router "router" : tensor<4x2xf32> from #train.source<none> {trainable, decays}
  func.func @loss(%ids: tensor<8xi64> {train.input = "ids", train.feed = "tokens"}) -> tensor<f32> {
    %table = train.read @table : tensor<16x4xf32> {train.id = "table"}
    %x = train.embedding %table, %ids : tensor<16x4xf32>, tensor<8xi64> -> tensor<8x4xf32> {train.id = "x"}
    %router = train.read @router : tensor<4x2xf32> {train.id = "router"}
    %weights = train.matmul %x, %router batch [] x [] contract [1] x [0] : tensor<8x4xf32>, tensor<4x2xf32> -> tensor<8x2xf32> {train.id = "weights"}
    %choices = train.cast %weights : tensor<8x2xf32> -> tensor<8x2xi64> {train.id = "choices"}
    %up = train.read @up : tensor<4x8x4xf32> {train.id = "up"}
    %down = train.read @down : tensor<4x4x8xf32> {train.id = "down"}
    %y = train.experts %x to %choices by %weights through %up, %down silu {train.id = "experts"}
      : (tensor<8x4xf32>, tensor<8x2xi64>, tensor<8x2xf32>, tensor<4x8x4xf32>, tensor<4x4x8xf32>) -> tensor<8x4xf32>
    %sum = train.add %x, %y : tensor<8x4xf32> {train.id = "sum"}
    %ce:3 = train.softmax_cross_entropy %sum, %ids ignore -100 {train.id = "ce"} : (tensor<8x4xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
    %loss = train.loss %ce#0, %ce#1 : tensor<f32> {train.id = "loss"}
    return %loss : tensor<f32>
  }
}
