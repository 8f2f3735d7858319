// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer=optimizer=sgd -plan-apply-strategy="ranks=1 strategy=ddp" -plan-decompose-split-reductions -plan-materialize-layouts -plan-to-sched -sched-fuse-elementwise -sched-lower-to-commands -sched-verify-commands | FileCheck %s
// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer=optimizer=sgd -plan-apply-strategy="ranks=2 strategy=megatron" -plan-decompose-split-reductions -plan-materialize-layouts -plan-to-sched -sched-fuse-elementwise -sched-lower-to-commands -sched-verify-commands | FileCheck --check-prefix=SPLIT %s
// A layer of experts. The gradients of both matrices are added to those of earlier micro-batches by the command that
// computes them; nothing but operands is kept for it. `megatron` gives each rank half of the hidden values, of both
// halves that are gated.

// CHECK: func.func @forward
// CHECK: sched.launch experts on @compute {{.*}}silu>, gated}
// CHECK: func.func @backward
// CHECK: sched.launch experts_grad on @compute {{.*}}silu>, gated} accumulate_after_first {{.*}}"experts
// CHECK-NOT: sched.launch_map
// CHECK: func.func @update

// SPLIT: func.func @forward
// SPLIT: sched.launch experts on @compute {{.*}}memref<4x6x8xf32>, memref<4x16x3xf32>)
// SPLIT: sched.record
// SPLIT: sched.launch_collective{{ +}}all_reduce
// SPLIT: func.func @backward
// SPLIT: sched.launch experts_grad on @compute {{.*}}memref<4x6x8xf32>, memref<4x16x3xf32>)
module attributes {train.model = "mixture"} {
  train.parameter weight @table "table" : tensor<16x8xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @up "up" : tensor<4x12x8xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @down "down" : tensor<4x16x6xf32> from #train.source<none> {trainable, decays}
  func.func @loss(%ids: tensor<6xi64> {train.input = "ids", train.feed = "tokens"}, %choices: tensor<6x2xi64> {train.input = "choices", train.feed = "file"},
                  %weights: tensor<6x2xf32> {train.input = "weights", train.feed = "file"}) -> tensor<f32> {
    %table = train.read @table : tensor<16x8xf32> {train.id = "table"}
    %x = train.embedding %table, %ids : tensor<16x8xf32>, tensor<6xi64> -> tensor<6x8xf32> {train.id = "x"}
    %up = train.read @up : tensor<4x12x8xf32> {train.id = "up"}
    %down = train.read @down : tensor<4x16x6xf32> {train.id = "down"}
    %y = train.experts %x to %choices by %weights through %up, %down silu gated {train.id = "experts"}
      : (tensor<6x8xf32>, tensor<6x2xi64>, tensor<6x2xf32>, tensor<4x12x8xf32>, tensor<4x16x6xf32>) -> tensor<6x16xf32>
    %ce:3 = train.softmax_cross_entropy %y, %ids ignore -100 {train.id = "ce"} : (tensor<6x16xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<f32>, tensor<6xf32>)
    %loss = train.loss %ce#0, %ce#1 : tensor<f32> {train.id = "loss"}
    return %loss : tensor<f32>
  }
}
