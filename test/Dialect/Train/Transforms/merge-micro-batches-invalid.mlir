// RUN: windlass-opt %s -train-merge-micro-batches="count=1025" -verify-diagnostics
// RUN: windlass-opt %s -train-merge-micro-batches="count=0" -verify-diagnostics

// expected-error-re @+1 {{cannot merge {{0|1025}} micro-batches; give a number from 1 to 1024}}
module {
  train.parameter weight @w "w" : tensor<2xf32> from <packed> {trainable}
  func.func @loss(%x: tensor<2xf32> {train.input = "x"}) -> tensor<f32> {
    %w = train.read @w : tensor<2xf32> {train.id = "w"}
    %0 = train.mul %w, %x : tensor<2xf32> {train.id = "0"}
    %1 = train.reduce sum %0 dims [0] : tensor<2xf32> -> tensor<f32> {train.id = "1"}
    return %1 : tensor<f32>
  }
}
