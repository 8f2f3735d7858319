// RUN: windlass-opt %s --plan-apply-strategy="strategy=ep ranks=2" | FileCheck %s
// RUN: windlass-opt %s --plan-apply-strategy="strategy=ddp*ep=2 ranks=4" | FileCheck %s --check-prefix=BATCH
// RUN: not windlass-opt %s --plan-apply-strategy="strategy=ep ranks=3" 2>&1 | FileCheck %s --check-prefix=EXPERTS
// RUN: not windlass-opt %s --plan-apply-strategy="strategy=ddp*ep=2 ranks=8" 2>&1 | FileCheck %s --check-prefix=SHARE
// RUN: not windlass-opt %S/model-parallel.mlir -split-input-file --plan-apply-strategy="strategy=ep ranks=2" 2>&1 | FileCheck %s --check-prefix=NONE

// Experts are split, tokens come whole to each layer of them, and everything else works on parts of the batch: the
// router, whose weight is whole, and the sum with what went past the experts.
// CHECK: train.parameter weight @up {{.*}}plan.layout = #plan.layout<[<[<4, ["model"]>]>, <[<6>]>, <[<4>]>]>
// CHECK: train.parameter weight @router {{.*}}plan.layout = #plan.layout<[<[<4>]>, <[<2>]>]>
// CHECK: train.tanh {{.*}} plan.strategy = #plan.strategy<[<"d0", ["model"]>]>
// CHECK: train.matmul {{.*}} plan.strategy = #plan.strategy<[<"m0", ["model"]>]>, train.id = "weights"
// CHECK: train.experts {{.*}} plan.strategy = #plan.strategy<[<"experts", ["model"]>]>
// CHECK: train.add {{.*}} plan.strategy = #plan.strategy<[<"d0", ["model"]>]>

// Where the ranks for the data share a micro-batch, so do layers of experts.
// BATCH: train.parameter weight @up {{.*}}plan.layout = #plan.layout<[<[<4, ["model"]>]>, <[<6>]>, <[<4>]>]>
// BATCH: train.tanh {{.*}} plan.strategy = #plan.strategy<[<"d0", ["batch", "model"]>]>
// BATCH: train.experts {{.*}} plan.strategy = #plan.strategy<[<"tokens", ["batch"]>, <"experts", ["model"]>]>
// BATCH: train.add {{.*}} plan.strategy = #plan.strategy<[<"d0", ["batch", "model"]>]>

// EXPERTS: strategy 'ep' cannot share 4 experts among 3 ranks evenly: use a divisor of 4
// SHARE: strategy 'ddp*ep=2' cannot share a batch of 4 among 8 ranks evenly
// NONE: strategy 'ep' splits experts, and the model has none that are recognized
train.parameter weight @up "up" : tensor<4x6x4xf32> from <none>
train.parameter weight @down "down" : tensor<4x4x6xf32> from <none>
train.parameter weight @router "router" : tensor<4x2xf32> from <none>
func.func @microbatch(%x: tensor<4x4xf32> {train.input = "x"}, %choices: tensor<4x2xi64> {train.input = "choices"}) -> tensor<4x4xf32> {
  %0 = train.tanh %x : tensor<4x4xf32>
  %router = train.read @router : tensor<4x2xf32>
  %weights = train.matmul %0, %router batch [] x [] contract [1] x [0] : tensor<4x4xf32>, tensor<4x2xf32> -> tensor<4x2xf32> {train.id = "weights"}
  %up = train.read @up : tensor<4x6x4xf32>
  %down = train.read @down : tensor<4x4x6xf32>
  %1 = train.experts %0 to %choices by %weights through %up, %down silu : (tensor<4x4xf32>, tensor<4x2xi64>, tensor<4x2xf32>, tensor<4x6x4xf32>, tensor<4x4x6xf32>) -> tensor<4x4xf32>
  %2 = train.add %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
