// RUN: windlass-opt %s -split-input-file --plan-verify-layouts --plan-to-sched --sched-verify-async | FileCheck %s

// Changes of layout, each by the least communication.
// CHECK-LABEL: func.func @evaluate
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  func.func @microbatch(%x: tensor<f32> {train.input = "x", plan.layout = #plan.layout<[]>}) -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    return %x : tensor<f32>
  }
  func.func @update() -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    %0 = train.constant {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[]>]} dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
  func.func @evaluate(%x: tensor<8x4xf32> {train.input = "x2", plan.layout = #plan.layout<[<[<8, ["a"]>]>, <[<4>]>]>},
                      %y: tensor<8x4xf32> {train.input = "y", plan.layout = #plan.layout<[<[<8>]>, <[<4>]>], unreduced = [<"a", sum>]>})
      -> (tensor<8x4xf32> {plan.layout = #plan.layout<[<[<8, ["a"]>]>, <[<4>]>]>}) {
    // CHECK: %[[Y:.*]] = sched.load @input_2
    // CHECK: %[[X:.*]] = sched.load @input_1
    // CHECK: %[[BLOCKS:.*]] = train.reshape %[[Y]] : tensor<8x4xf32> -> tensor<1x2x16xf32>
    // CHECK: sched.reduce_scatter %[[BLOCKS]] dim 1 over ["a"] : tensor<1x2x16xf32> -> tensor<1x1x16xf32>
    %0 = plan.reshard %y from <[<[<8>]>, <[<4>]>], unreduced = [<"a", sum>]> to <[<[<8, ["a"]>]>, <[<4>]>]> : tensor<8x4xf32>
    // CHECK: sched.all_reduce sum %[[Y]] over ["a"]
    %1 = plan.reshard %y from <[<[<8>]>, <[<4>]>], unreduced = [<"a", sum>]> to <[<[<8>]>, <[<4>]>]> : tensor<8x4xf32>
    // CHECK: %[[PART:.*]] = sched.own_part %{{.*}} dim 1 over ["b"] : tensor<8x2x2xf32> -> tensor<8x1x2xf32>
    // CHECK: %[[COLUMNS:.*]] = train.reshape %[[PART]] : tensor<8x1x2xf32> -> tensor<8x2xf32>
    %2 = plan.reshard %1 from <[<[<8>]>, <[<4>]>]> to <[<[<8>]>, <[<4, ["b"]>]>]> : tensor<8x4xf32>
    // CHECK: %[[GRID:.*]] = train.reshape %[[COLUMNS]] : tensor<8x2xf32> -> tensor<1x2x4x1x2xf32>
    // CHECK: sched.all_to_all %[[GRID]] split 1 concat 3 over ["b"] : tensor<1x2x4x1x2xf32> -> tensor<1x1x4x2x2xf32>
    %3 = plan.reshard %2 from <[<[<8>]>, <[<4, ["b"]>]>]> to <[<[<8, ["b"]>]>, <[<4>]>]> : tensor<8x4xf32>
    // "a" moves from blocks of four rows to rows in blocks of two, half as much as a gather sends; then "b" keeps its own.
    // CHECK: sched.all_to_all %{{.*}} split 3 concat 1 over ["a"] : tensor<1x1x1x2x8xf32> -> tensor<1x2x1x1x8xf32>
    // CHECK: sched.own_part %{{.*}} dim 1 over ["b"] : tensor<1x2x8xf32> -> tensor<1x1x8xf32>
    %4 = plan.reshard %x from <[<[<8, ["a"]>]>, <[<4>]>]> to <[<[<8, ["b", "a"]>]>, <[<4>]>]> : tensor<8x4xf32>
    // A minor factor is split: each half of the rows is.
    // CHECK: sched.own_part %{{.*}} dim 1 over ["a"] : tensor<2x2x8xf32> -> tensor<2x1x8xf32>
    %6 = plan.reshard %1 from <[<[<8>]>, <[<4>]>]> to <[<[<2>, <4, ["a"]>]>, <[<4>]>]> : tensor<8x4xf32>
    // The same parts under other factors move nothing.
    // CHECK: sched.store @evaluate_loss, %[[X]]
    %5 = plan.reshard %x from <[<[<8, ["a"]>]>, <[<4>]>]> to <[<[<2, ["a"]>, <4>]>, <[<4>]>]> : tensor<8x4xf32>
    return %5 : tensor<8x4xf32>
  }
}

// -----

// Ranges of the flattened part: 12 elements of a part divide evenly, 15 are filled up.
// CHECK-LABEL: func.func @update
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  train.parameter weight @v "v" : tensor<8x3xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<8>]>, <[<3>]>]>, plan.master_layout = #plan.layout<[<[<8, ["a"]>]>, <[<3>]>] flat = ["b"]>}
  train.parameter weight @w "w" : tensor<5x3xf32> from #train.source<none> {plan.gradient_layout = #plan.layout<[<[<5>]>, <[<3>]>], unreduced = [<"b", sum>]>, plan.layout = #plan.layout<[<[<5>]>, <[<3>]>]>, plan.master_layout = #plan.layout<[<[<5>]>, <[<3>]>]>}
  func.func @microbatch(%x: tensor<f32> {train.input = "x", plan.layout = #plan.layout<[]>}) -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    return %x : tensor<f32>
  }
  func.func @update(%g: tensor<5x3xf32> {train.gradient = @w, plan.layout = #plan.layout<[<[<5>]>, <[<3>]>], unreduced = [<"b", sum>]>}) -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    // CHECK: %[[G:.*]] = sched.load @gradient_w
    // CHECK: %[[V:.*]] = sched.load @master_v : tensor<6xf32>
    %0 = train.read @v : tensor<8x3xf32> {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<8, ["a"]>]>, <[<3>]>] flat = ["b"]>]}
    // Ranges of the one are no parts of the other.
    // CHECK: %[[RANGE:.*]] = train.reshape %[[V]] : tensor<6xf32> -> tensor<1x1x6xf32>
    // CHECK: %[[ROWS:.*]] = sched.all_gather %[[RANGE]] dim 1 over ["b"] : tensor<1x1x6xf32> -> tensor<1x2x6xf32>
    // CHECK: sched.permute
    // CHECK: sched.own_part %{{.*}} dim 1 over ["a"] : tensor<1x2x6xf32> -> tensor<1x1x6xf32>
    %1 = plan.reshard %0 from <[<[<8, ["a"]>]>, <[<3>]>] flat = ["b"]> to <[<[<8, ["b"]>]>, <[<3>]>] flat = ["a"]> : tensor<8x3xf32>
    // CHECK: sched.all_gather %{{.*}} dim 1 over ["a"] : tensor<1x1x6xf32> -> tensor<1x2x6xf32>
    %2 = plan.reshard %1 from <[<[<8, ["b"]>]>, <[<3>]>] flat = ["a"]> to <[<[<8, ["a"]>]>, <[<3>]>] flat = ["b"]> : tensor<8x3xf32>
    train.write @v, %2 : tensor<8x3xf32> {plan.strategy = #plan.strategy<[]>}
    // What is sliced needs not be scattered.
    // CHECK: %[[FLAT:.*]] = train.reshape %[[G]] : tensor<5x3xf32> -> tensor<15xf32>
    // CHECK: %[[PADDED:.*]] = train.pad %[[FLAT]] low [0] high [1] value 0.000000e+00
    // CHECK: %[[HALVES:.*]] = train.reshape %[[PADDED]] : tensor<16xf32> -> tensor<2x2x4xf32>
    // CHECK: %[[HALF:.*]] = sched.own_part %[[HALVES]] dim 1 over ["a"] : tensor<2x2x4xf32> -> tensor<2x1x4xf32>
    // CHECK: %[[QUARTERS:.*]] = train.reshape %[[HALF]] : tensor<2x1x4xf32> -> tensor<1x2x4xf32>
    // CHECK: sched.reduce_scatter %[[QUARTERS]] dim 1 over ["b"] : tensor<1x2x4xf32> -> tensor<1x1x4xf32>
    %3 = plan.reshard %g from <[<[<5>]>, <[<3>]>], unreduced = [<"b", sum>]> to <[<[<5>]>, <[<3>]>] flat = ["b", "a"]> : tensor<5x3xf32>
    %4 = train.square_sum %3 : tensor<5x3xf32> -> tensor<f32> {plan.strategy = #plan.strategy<[<"flat", ["b", "a"]>]>, plan.layouts = [#plan.layout<[], unreduced = [<"a", sum>, <"b", sum>]>]}
    // CHECK: sched.all_reduce sum %{{.*}} over ["a", "b"]
    %5 = plan.reshard %4 from <[], unreduced = [<"a", sum>, <"b", sum>]> to <[]> : tensor<f32>
    return %5 : tensor<f32>
  }
}
