// RUN: windlass-opt %s -split-input-file --plan-verify-layouts --plan-to-sched --sched-verify-async | FileCheck %s

// Every change of layout that blocks of dims allow, each by the least communication.
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
    // CHECK: sched.reduce_scatter %[[Y]] dim 0 over ["a"] : tensor<8x4xf32> -> tensor<4x4xf32>
    %0 = plan.reshard %y from <[<[<8>]>, <[<4>]>], unreduced = [<"a", sum>]> to <[<[<8, ["a"]>]>, <[<4>]>]> : tensor<8x4xf32>
    // CHECK: sched.all_reduce sum %[[Y]] over ["a"]
    %1 = plan.reshard %y from <[<[<8>]>, <[<4>]>], unreduced = [<"a", sum>]> to <[<[<8>]>, <[<4>]>]> : tensor<8x4xf32>
    // CHECK: %[[PART:.*]] = sched.own_part %{{.*}} dim 1 over ["b"] : tensor<8x4xf32> -> tensor<8x2xf32>
    %2 = plan.reshard %1 from <[<[<8>]>, <[<4>]>]> to <[<[<8>]>, <[<4, ["b"]>]>]> : tensor<8x4xf32>
    // CHECK: sched.all_to_all %[[PART]] split 0 concat 1 over ["b"] : tensor<8x2xf32> -> tensor<4x4xf32>
    %3 = plan.reshard %2 from <[<[<8>]>, <[<4, ["b"]>]>]> to <[<[<8, ["b"]>]>, <[<4>]>]> : tensor<8x4xf32>
    // CHECK: %[[WHOLE:.*]] = sched.all_gather %[[X]] dim 0 over ["a"] : tensor<4x4xf32> -> tensor<8x4xf32>
    // CHECK: sched.own_part %[[WHOLE]] dim 0 over ["b", "a"] : tensor<8x4xf32> -> tensor<2x4xf32>
    %4 = plan.reshard %x from <[<[<8, ["a"]>]>, <[<4>]>]> to <[<[<8, ["b", "a"]>]>, <[<4>]>]> : tensor<8x4xf32>
    // The same parts under other factors move nothing.
    // CHECK: sched.store @evaluate_loss, %[[X]]
    %5 = plan.reshard %x from <[<[<8, ["a"]>]>, <[<4>]>]> to <[<[<2, ["a"]>, <4>]>, <[<4>]>]> : tensor<8x4xf32>
    return %5 : tensor<8x4xf32>
  }
}
