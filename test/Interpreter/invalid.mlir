// RUN: split-file %s %t
// RUN: not windlass-run %t/label.mlir 2>&1 | FileCheck %t/label.mlir
// RUN: not windlass-run %t/input.mlir 2>&1 | FileCheck %t/input.mlir
// RUN: not windlass-run %t/weight.mlir --initial %S/Inputs/step.safetensors 2>&1 | FileCheck %t/weight.mlir
// RUN: not windlass-run %t/empty.mlir 2>&1 | FileCheck %t/empty.mlir
// RUN: not windlass-run %t/empty.mlir --initial %t/empty.mlir 2>&1 | FileCheck %t/empty.mlir --check-prefix=FILE
// RUN: not windlass-run %t/nowhere.mlir 2>&1 | FileCheck %t/empty.mlir --check-prefix=NOWHERE

//--- label.mlir
// CHECK: label.mlir:6:{{.*}} error: cannot be executed: train.softmax_cross_entropy: label 2 lies outside the 2 classes
module {
  func.func @loss() -> tensor<f32> {
    %logits = train.constant dense<0.0> : tensor<1x2xf32>
    %labels = train.constant dense<2> : tensor<1xi64>
    %sum, %count, %log_sum = train.softmax_cross_entropy %logits, %labels ignore -100
        : (tensor<1x2xf32>, tensor<1xi64>) -> (tensor<f32>, tensor<f32>, tensor<1xf32>)
    return %sum : tensor<f32>
  }
}

//--- input.mlir
// CHECK: the bound of the ids of 'ids' is unknown: micro-batches must be given
module {
  func.func @loss(%ids: tensor<2xi64> {train.input = "ids"}) -> tensor<f32> {
    %x = train.cast %ids : tensor<2xi64> -> tensor<2xf32>
    %loss = train.reduce sum %x dims [0] : tensor<2xf32> -> tensor<f32>
    return %loss : tensor<f32>
  }
}

//--- weight.mlir
// CHECK: weight.mlir:4:{{.*}} error: cannot be executed: no tensor 'weight' is given
module {
  // One parameter, which the file does not hold.
  train.parameter weight @weight "weight" : tensor<f32> from #train.source<packed> {trainable}
  func.func @loss() -> tensor<f32> {
    %w = train.read @weight : tensor<f32>
    return %w : tensor<f32>
  }
}

//--- empty.mlir
// CHECK: is of no level: it has neither @loss nor @microbatch, and no sched.program
// FILE: empty.mlir: is no safetensors file
// NOWHERE: nowhere.mlir
module {
}
