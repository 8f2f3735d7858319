// Four ranks as data x batch: loss = sum(x) w over micro-batches of four rows, two of which each rank of a group sees.
// The gradient is the sum of x over both groups and both parts; a layout that dropped one of the sums would show.
// RUN: %python %S/Inputs/make_rows.py %t.batches
// RUN: windlass-run %s --ranks 4 --lr 0.5 --momentum 0 --weight-decay 0 --initial %S/Inputs/step.safetensors --batches %t.batches | FileCheck %s
// RUN: windlass-run %s --level L3 --precision f32 --lr 0.5 --momentum 0 --weight-decay 0 --initial %S/Inputs/step.safetensors --batches %t.batches | FileCheck %s
// RUN: sed 's/from #part to/from #other to/' %s > %t.other.mlir
// RUN: not windlass-run %t.other.mlir --lr 0.5 --initial %S/Inputs/step.safetensors --batches %t.batches 2>&1 | FileCheck %s --check-prefix=REPLICA

// Batch k holds rows k + 1 .. k + 4, in both columns. Step 0 (k = 0..3): the sum over rows is 10 + 14 + 18 + 22 = 64 per
// column; w = (1, 1): loss 2 * 64 / 4 = 32, gradient (16, 16), norm 22.6274; w = 1 - 8 = -7.
// Step 1 (k = 4..7): 26 + 30 + 34 + 38 = 128; loss -7 * 2 * 128 / 4 = -448, gradient (32, 32), norm 45.2548.
// CHECK: step 0 loss 32 grad_norm 22.6274
// CHECK-NEXT: step 1 loss -448 grad_norm 45.2548
// REPLICA: ranks 0 and 1 hold different values where their layout makes them replicas
#rows = #plan.layout<[<[<4, ["batch"]>]>, <[<2>]>]>
#whole1 = #plan.layout<[<[<2>]>]>
#partial1 = #plan.layout<[<[<2>]>], unreduced = [<"batch", sum>]>
#all1 = #plan.layout<[<[<2>]>], unreduced = [<"data", sum>, <"batch", sum>]>
#part = #plan.layout<[], unreduced = [<"batch", sum>]>
#other = #plan.layout<[]>
#whole0 = #plan.layout<[]>
#parts = #plan.layout<[<[<2, ["batch"]>]>]>
module attributes {plan.mesh = #plan.mesh<[<"data", 2, replica>, <"batch", 2, batch>]>,
                   train.settings = {micro_batches = 4 : i64, optimizer = "sgd", clip = false, precision = "f32"}} {
  train.parameter weight @w "w" : tensor<2xf32> from #train.source<packed> {trainable, plan.layout = #whole1, plan.master_layout = #whole1}
  train.parameter state @v "w/momentum_buffer" : tensor<2xf32> from #train.source<none> {of = @w, plan.layout = #whole1, plan.master_layout = #whole1}
  func.func @microbatch(%x: tensor<4x2xf32> {train.input = "x", plan.layout = #rows})
      -> (tensor<f32> {plan.layout = #part}, tensor<2xf32> {train.gradient = @w, plan.layout = #partial1}) {
    %w = train.read @w : tensor<2xf32> {plan.layouts = [#whole1]}
    %sums = train.reduce sum %x dims [0] : tensor<4x2xf32> -> tensor<2xf32> {plan.layouts = [#partial1]}
    %products = train.mul %sums, %w : tensor<2xf32> {plan.layouts = [#partial1]}
    // There and back over a split of the dim.
    %scattered = plan.reshard %products from #partial1 to #parts : tensor<2xf32>
    %again = plan.reshard %scattered from #parts to #partial1 : tensor<2xf32>
    %sum = train.reduce sum %again dims [0] : tensor<2xf32> -> tensor<f32> {plan.layouts = [#part]}
    %quarter = train.constant {plan.layouts = [#whole0]} dense<0.25> : tensor<f32>
    %share = train.mul %sum, %quarter : tensor<f32> {plan.layouts = [#part]}
    %shared = plan.reshard %share from #part to #part : tensor<f32>
    %quarters = train.broadcast %quarter dims [] : tensor<f32> -> tensor<2xf32> {plan.layouts = [#whole1]}
    %gradient = train.mul %sums, %quarters : tensor<2xf32> {plan.layouts = [#partial1]}
    return %shared, %gradient : tensor<f32>, tensor<2xf32>
  }
  func.func @update(%partial: tensor<2xf32> {train.gradient = @w, plan.layout = #all1}) -> (tensor<f32> {plan.layout = #whole0}) {
    %gradient = plan.reshard %partial from #all1 to #whole1 : tensor<2xf32>
    %squares = train.square_sum %gradient : tensor<2xf32> -> tensor<f32> {plan.layouts = [#whole0]}
    %norm = train.sqrt %squares : tensor<f32> {plan.layouts = [#whole0]}
    %one = train.constant {plan.layouts = [#whole0]} dense<1.0> : tensor<f32>
    %rate = train.hyperparameter learning_rate : tensor<f32> {plan.layouts = [#whole0]}
    %momentum = train.hyperparameter momentum : tensor<f32> {plan.layouts = [#whole0]}
    %decay = train.hyperparameter weight_decay : tensor<f32> {plan.layouts = [#whole0]}
    %w = train.read @w : tensor<2xf32> {plan.layouts = [#whole1]}
    %v = train.read @v : tensor<2xf32> {plan.layouts = [#whole1]}
    %new_w, %new_v = train.sgd %w, %v, %gradient, %rate, %momentum, %decay, %one {plan.layouts = [#whole1, #whole1]}
        : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
        -> (tensor<2xf32>, tensor<2xf32>)
    train.write @w, %new_w : tensor<2xf32>
    train.write @v, %new_v : tensor<2xf32>
    return %norm : tensor<f32>
  }
}
