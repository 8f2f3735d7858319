// RUN: windlass-opt %s --plan-keep-gathers | FileCheck %s
// RUN: sed 's/plan.keeps_gathers, //' %s | windlass-opt --plan-keep-gathers | FileCheck %s --check-prefix=AGAIN

// The weight that both passes gather is handed over; the bias, which only the backward pass gathers, and the weight
// that is cut and not gathered stay as they are. Without the attribute everything does.
// CHECK-NOT: plan.keeps_gathers
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[READ:.*]] = train.read @w
// CHECK: %[[W:.*]] = plan.reshard %[[READ]] from
// CHECK: %[[X:.*]] = train.stash %arg0
// CHECK-NEXT: %[[KEPT:.*]] = train.stash %[[W]] : tensor<4x4xf32> {plan.layouts = [#plan.layout<[<[<4>]>, <[<4>]>]>], plan.strategy = #plan.strategy<[]>, train.id = "w.stash"}
// CHECK-NOT: train.read @w
// CHECK: train.add %[[X]], %[[KEPT]]
// CHECK: %[[BIAS:.*]] = train.read @b
// CHECK: plan.reshard %[[BIAS]]
// CHECK: %[[CUT:.*]] = train.read @v
// CHECK: plan.reshard %[[CUT]]

// AGAIN-LABEL: func.func @microbatch
// AGAIN-COUNT-2: train.read @w
#whole = #plan.layout<[<[<4>]>, <[<4>]>]>
#rows = #plan.layout<[<[<4, ["data"]>]>, <[<4>]>]>
#columns = #plan.layout<[<[<4>]>, <[<4, ["model"]>]>]>
#none = #plan.strategy<[]>
module attributes {plan.keeps_gathers, plan.mesh = #plan.mesh<[<"data", 2, replica>, <"model", 2>]>} {
  train.parameter weight @w "w" : tensor<4x4xf32> from #train.source<none> {trainable, plan.layout = #rows}
  train.parameter weight @b "b" : tensor<4x4xf32> from #train.source<none> {trainable, plan.layout = #rows}
  train.parameter weight @v "v" : tensor<4x4xf32> from #train.source<none> {trainable, plan.layout = #whole}
  func.func @microbatch(%x: tensor<4x4xf32> {train.input = "x"}) -> tensor<4x4xf32> {
    %w = train.read @w : tensor<4x4xf32> {plan.layouts = [#rows], plan.strategy = #none, train.id = "w"}
    %0 = plan.reshard %w from #rows to #whole : tensor<4x4xf32>
    %v = train.read @v : tensor<4x4xf32> {plan.layouts = [#whole], plan.strategy = #none, train.id = "v"}
    %1 = plan.reshard %v from #whole to #columns : tensor<4x4xf32>
    %2 = train.add %x, %0 : tensor<4x4xf32> {plan.layouts = [#whole], plan.strategy = #none, train.id = "add"}
    %3 = train.stash %x : tensor<4x4xf32> {plan.layouts = [#whole], plan.strategy = #none, train.id = "x.stash"}
    %4 = train.read @w : tensor<4x4xf32> {plan.layouts = [#rows], plan.strategy = #none, train.forward = "w", train.id = "w.again"}
    %5 = plan.reshard %4 from #rows to #whole : tensor<4x4xf32>
    %6 = train.add %3, %5 : tensor<4x4xf32> {plan.layouts = [#whole], plan.strategy = #none, train.id = "add.grad"}
    %7 = train.read @b : tensor<4x4xf32> {plan.layouts = [#rows], plan.strategy = #none, train.id = "b"}
    %8 = plan.reshard %7 from #rows to #whole : tensor<4x4xf32>
    %9 = train.add %6, %8 : tensor<4x4xf32> {plan.layouts = [#whole], plan.strategy = #none, train.id = "sum"}
    %10 = train.read @v : tensor<4x4xf32> {plan.layouts = [#whole], plan.strategy = #none, train.forward = "v", train.id = "v.again"}
    %11 = plan.reshard %10 from #whole to #columns : tensor<4x4xf32>
    return %9 : tensor<4x4xf32>
  }
}
