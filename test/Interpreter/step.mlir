// Two steps of SGD on loss = sum((w - t)^2) / G with w = (1, 1), t = (0, 3): the gradient is 2 (w - t), and every
// micro-batch brings the same.
//   step 0: loss 5, gradient (2, -4), norm sqrt 20, v = (2, -4), w = (1, 1) - 0.1 v = (0.8, 1.4)
//   step 1: loss 0.64 + 2.56 = 3.2, gradient (1.6, -3.2), norm 3.5777, v = 0.5 v + gradient = (2.6, -5.2)
// RUN: windlass-run %s --lr 0.1 --momentum 0.5 --weight-decay 0 --initial %S/Inputs/step.safetensors -o %t.f64 | FileCheck %s
// RUN: windlass-run %s --lr 0.1 --momentum 0.5 --weight-decay 0 --initial %S/Inputs/step.safetensors -o %t.f32 --precision f32 | FileCheck %s
// RUN: windlass-run --compare %t.f64 %t.f32 --bound 1e-5 | FileCheck %s --check-prefix=COMPARE
// RUN: windlass-run %s --lr 0.1 --momentum 0.5 --weight-decay 0 --initial %S/Inputs/step.safetensors --steps 3 -o %t.other
// RUN: not windlass-run --compare %t.f64 %t.other 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: windlass-run %s --lr 0.2 --momentum 0.5 --weight-decay 0 --initial %S/Inputs/step.safetensors -o %t.rate
// RUN: not windlass-run --compare %t.f64 %t.rate 2>&1 | FileCheck %s --check-prefix=ABOVE
// RUN: %python %S/Inputs/check_step.py %t.f64

// CHECK: step 0 loss 5 grad_norm 4.4721
// CHECK-NEXT: step 1 loss 3.2{{[0-9]*}} grad_norm 3.57770
// COMPARE: grad_norm {{.*}} of 2 tensors
// COMPARE-NEXT: gradient {{.*}} of 2 tensors
// COMPARE-NEXT: loss {{.*}} of 2 tensors
// COMPARE-NEXT: parameter {{.*}} at parameter.w, of 1 tensors
// COMPARE-NEXT: state {{.*}} at state.w/momentum_buffer, of 1 tensors
// MISSING: only the second has the tensor grad_norm.2
// ABOVE: parameter
// ABOVE: a deviation is above the bound 1.0e-10
module attributes {train.settings = {micro_batches = 2 : i64, optimizer = "sgd", clip = false, precision = "f32"}} {
  train.parameter weight @w "w" : tensor<2xf32> from #train.source<packed> {trainable}
  train.parameter state @v "w/momentum_buffer" : tensor<2xf32> from #train.source<none> {of = @w}
  func.func @init() -> tensor<2xf32> {
    %target = train.constant dense<[0.0, 3.0]> : tensor<2xf32>
    return %target : tensor<2xf32>
  }
  func.func @microbatch(%target: tensor<2xf32> {train.init_value = 0 : i64})
      -> (tensor<f32>, tensor<2xf32> {train.gradient = @w}) {
    %w = train.read @w : tensor<2xf32>
    %difference = train.sub %w, %target : tensor<2xf32>
    %square = train.square_sum %difference : tensor<2xf32> -> tensor<f32>
    %half = train.constant dense<0.5> : tensor<f32>
    %share = train.mul %square, %half : tensor<f32>
    %kept = train.stash %difference : tensor<2xf32>
    return %share, %kept : tensor<f32>, tensor<2xf32>
  }
  func.func @update(%gradient: tensor<2xf32> {train.gradient = @w}) -> tensor<f32> {
    %squares = train.square_sum %gradient : tensor<2xf32> -> tensor<f32>
    %norm = train.sqrt %squares : tensor<f32>
    %one = train.constant dense<1.0> : tensor<f32>
    %rate = train.hyperparameter learning_rate : tensor<f32>
    %momentum = train.hyperparameter momentum : tensor<f32>
    %decay = train.hyperparameter weight_decay : tensor<f32>
    %w = train.read @w : tensor<2xf32>
    %v = train.read @v : tensor<2xf32>
    %new_w, %new_v = train.sgd %w, %v, %gradient, %rate, %momentum, %decay, %one decays
        : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
        -> (tensor<2xf32>, tensor<2xf32>)
    train.write @w, %new_w : tensor<2xf32>
    train.write @v, %new_v : tensor<2xf32>
    return %norm : tensor<f32>
  }
}
