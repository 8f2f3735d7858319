// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=8" --plan-materialize-layouts --plan-verify-layouts | FileCheck %s
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=1" --plan-materialize-layouts --plan-verify-layouts | FileCheck %s --check-prefix=ONE
// RUN: windlass-opt %s -split-input-file --plan-materialize-layouts --plan-verify-layouts | FileCheck %s --check-prefix=MADE

// One rank needs no reshard.
// ONE-NOT: plan.reshard

// The count is reduced before the loss, once for the loss and the stash; the loss share and the gradients stay sums.
// CHECK-LABEL: @microbatch
// CHECK: %[[SUM:.*]], %[[COUNT:.*]], %{{.*}} = train.softmax_cross_entropy
// CHECK-NEXT: %[[WHOLE:.*]] = plan.reshard %[[COUNT]] from <[], unreduced = [<"batch", sum>]> to <[]>
// CHECK-NEXT: %[[LOSS:.*]] = train.loss %[[SUM]], %[[WHOLE]]
// CHECK: %[[SHARE:.*]] = train.mul %[[LOSS]]
// CHECK: train.stash %[[WHOLE]]
// CHECK-NOT: plan.reshard
// CHECK: return %[[SHARE]]
// CHECK-LABEL: @update(
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<4x6xf32>
// CHECK: %[[R:.*]] = plan.reshard %[[G]] from <[<[<4>]>, <[<6>]>], unreduced = [<"data", sum>, <"batch", sum>]> to <[<[<4>]>, <[<6>]>]>
// CHECK: train.square_sum %[[R]]
// CHECK: train.sgd %{{[^,]*}}, %{{[^,]*}}, %[[R]]
// CHECK-LABEL: @evaluate
// CHECK: %[[EVALUATED:.*]] = train.loss
// CHECK-NEXT: %[[OUT:.*]] = plan.reshard %[[EVALUATED]]
// CHECK: return %[[OUT]]

// All operands of an accumulate are sums, or none: the one that is gets reduced.
// MADE-LABEL: @evaluate
// MADE: %[[P:.*]] = train.reduce
// MADE: %[[W:.*]] = plan.reshard %[[P]] from <[<[<4>]>], unreduced = [<"a", sum>]> to <[<[<4>]>]>
// MADE: train.accumulate %[[W]], %{{.*}} :
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<2x4xf32> {plan.layout = #plan.layout<[<[<2, ["a"]>]>, <[<4>]>]>}, %y: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) -> (tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    %0 = train.reduce sum %x dims [0] : tensor<2x4xf32> -> tensor<4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>}
    %1 = train.accumulate %0, %y : tensor<4xf32> {plan.strategy = #plan.strategy<[]>}
    return %1 : tensor<4xf32>
  }
}

// -----

// Where all are, the sum is made once, after it.
// MADE-LABEL: @evaluate
// MADE: %[[P:.*]] = train.reduce
// MADE-NOT: plan.reshard
// MADE: %[[A:.*]] = train.accumulate %[[P]], %[[P]]
// MADE: plan.reshard %[[A]]
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<2x4xf32> {plan.layout = #plan.layout<[<[<2, ["a"]>]>, <[<4>]>]>}) -> (tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    %0 = train.reduce sum %x dims [0] : tensor<2x4xf32> -> tensor<4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>}
    %1 = train.accumulate %0, %0 : tensor<4xf32> {plan.strategy = #plan.strategy<[]>}
    return %1 : tensor<4xf32>
  }
}

// -----

// A layout that the plan asks for, other than the one in which the op leaves its result, is made once for all consumers.
// MADE-LABEL: @evaluate
// MADE: %[[E:.*]] = train.exp
// MADE: %[[S:.*]] = plan.reshard %[[E]] from <[<[<2>]>, <[<4>]>]> to <[<[<2, ["a"]>]>, <[<4>]>]>
// MADE: train.neg %[[S]]
// MADE: train.abs %[[S]]
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<2x4xf32> {plan.layout = #plan.layout<[<[<2>]>, <[<4>]>]>}) -> (tensor<2x4xf32> {plan.layout = #plan.layout<[<[<2>]>, <[<4>]>]>}, tensor<2x4xf32> {plan.layout = #plan.layout<[<[<2, ["a"]>]>, <[<4>]>]>}) {
    %0 = train.exp %x : tensor<2x4xf32> {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<2, ["a"]>]>, <[<4>]>]>]}
    %1 = train.neg %0 : tensor<2x4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>}
    %2 = train.abs %0 : tensor<2x4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>}
    return %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>
  }
}

// -----

// The backward pass uses nothing of the forward pass but its stash: what the function returns is whole before it begins,
// though the plan asks for a sum in between.
// MADE-LABEL: @microbatch
// MADE: %[[L:.*]] = train.reduce
// MADE-NEXT: %[[PART:.*]] = plan.reshard %[[L]] from <[], unreduced = [<"a", sum>, <"b", sum>]> to <[], unreduced = [<"a", sum>]>
// MADE-NEXT: %[[WHOLE:.*]] = plan.reshard %[[PART]] from <[], unreduced = [<"a", sum>]> to <[]>
// MADE-NEXT: train.exp
// MADE-NEXT: return %[[WHOLE]]
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  func.func @microbatch(%x: tensor<2x4xf32> {plan.layout = #plan.layout<[<[<2, ["a"]>]>, <[<4, ["b"]>]>]>}) -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    %0 = train.reduce sum %x dims [0, 1] : tensor<2x4xf32> -> tensor<f32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>, <"d1", ["b"]>]>, plan.layouts = [#plan.layout<[], unreduced = [<"a", sum>]>]}
    %1 = train.exp %x : tensor<2x4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>, <"d1", ["b"]>]>, train.forward = "x"}
    return %0 : tensor<f32>
  }
}
