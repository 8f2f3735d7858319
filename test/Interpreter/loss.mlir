// A loss that can be checked by hand: logits (0, 0) and (0, ln 3) with labels 0 and 0, and a row that does not count.
// The rows lose ln 2 and ln 4, their mean is 1.5 ln 2.
// RUN: windlass-run %s --steps 1 | FileCheck %s
// RUN: windlass-run %s --steps 1 --precision f32 --level L1 | FileCheck %s
// RUN: windlass-run %s --steps 2 --json | FileCheck %s --check-prefix=JSON
// RUN: not windlass-run %s --level L2 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not windlass-run %s --ranks 2 2>&1 | FileCheck %s --check-prefix=RANKS

// CHECK: step 0 loss 1.0397207
// JSON: {"level":"L1","ranks":1,"precision":"f64","losses":[1.03972077{{[0-9]*}},1.03972077{{[0-9]*}}],"grad_norms":[]}
// LEVEL: loss.mlir is not at level L2
// RANKS: the mesh has 1 ranks, not 2
module {
  func.func @loss() -> tensor<f32> {
    %x = train.constant dense<[[0.0, 0.0], [1.0, 0.0], [5.0, 7.0]]> : tensor<3x2xf32>
    %w = train.constant dense<[[0.0, 1.0986122886681098], [0.0, 0.0]]> : tensor<2x2xf32>
    %labels = train.constant dense<[0, 0, -100]> : tensor<3xi64>
    %logits = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<3x2xf32>, tensor<2x2xf32> -> tensor<3x2xf32>
    %sum, %count, %log_sum = train.softmax_cross_entropy %logits, %labels ignore -100
        : (tensor<3x2xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<f32>, tensor<3xf32>)
    %loss = train.loss %sum, %count : tensor<f32>
    return %loss : tensor<f32>
  }
}
