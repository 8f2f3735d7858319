// RUN: windlass-opt %s -split-input-file --plan-verify-layouts=materialized=false --plan-decompose-split-reductions --plan-materialize-layouts --plan-verify-layouts | FileCheck %s

// Classes in two parts: each rank takes the loss of its own, with labels counted from its first class; rows of the parts
// are joined by their maximum and sum.
// CHECK-LABEL: @evaluate
// CHECK-SAME: %[[X:.*]]: tensor<4x6xf32> {{.*}}, %[[L:.*]]: tensor<4xi64>
// CHECK: %[[FIRST:.*]] = train.iota 0 start 0.000000e+00 step 3.000000e+00 : tensor<2xi64>
// CHECK: plan.reshard %[[FIRST]] from <[<[<2>]>]> to <[<[<2, ["a"]>]>]>
// CHECK: %[[OWN:.*]] = train.select {{.*}} tensor<4x2xi64>
// CHECK: %[[PARTS:.*]] = train.reshape %[[X]] : tensor<4x6xf32> -> tensor<4x2x3xf32>
// CHECK: %[[SUM:.*]], %[[COUNT:.*]], %[[LOG:.*]] = train.softmax_cross_entropy %[[PARTS]], %[[OWN]] ignore -1 {{.*}} -> (tensor<f32>, tensor<f32>, tensor<4x2xf32>)
// CHECK: plan.reshard %[[COUNT]] from <[], unreduced = [<"a", sum>]> to <[]>
// CHECK: %[[TOP:.*]] = train.reduce max %[[LOG]] dims [1]
// CHECK-NEXT: plan.reshard %[[TOP]] from <[<[<4>]>], unreduced = [<"a", max>]> to <[<[<4>]>]>
// CHECK: %[[TOTAL:.*]] = train.reduce sum %{{.*}} dims [1] : tensor<4x2xf32>
// CHECK-NEXT: plan.reshard %[[TOTAL]] from <[<[<4>]>], unreduced = [<"a", sum>]> to <[<[<4>]>]>
// CHECK: %[[LACKING:.*]] = train.reduce sum %{{.*}} dims [0, 1]
// CHECK: %[[LOSS:.*]] = train.add %[[SUM]], %[[LACKING]] {{.*}} train.id = "loss.split.
// CHECK: plan.reshard %[[LOSS]] from <[], unreduced = [<"a", sum>]> to <[]>
// CHECK-NOT: plan.reshard
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4x6xf32> {plan.layout = #plan.layout<[<[<4>]>, <[<6, ["a"]>]>]>}, %l: tensor<4xi64> {plan.layout = #plan.layout<[<[<4>]>]>})
      -> (tensor<f32> {plan.layout = #plan.layout<[]>}, tensor<f32> {plan.layout = #plan.layout<[]>}, tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    %0:3 = train.softmax_cross_entropy %x, %l ignore -100 {plan.strategy = #plan.strategy<[<"classes", ["a"]>]>, plan.layouts = [#plan.layout<[]>, #plan.layout<[]>, #plan.layout<[<[<4>]>]>], train.id = "loss"} : (tensor<4x6xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
    return %0#0, %0#1, %0#2 : tensor<f32>, tensor<f32>, tensor<4xf32>
  }
}

// -----

// Its gradient moves nothing but the numbers of the classes, from the rank itself.
// CHECK-LABEL: @evaluate
// CHECK: %[[NUMBER:.*]] = train.iota 0 start 0.000000e+00 step 1.000000e+00 : tensor<6xi64>
// CHECK-NEXT: plan.reshard %[[NUMBER]] from <[<[<6>]>]> to <[<[<6, ["a"]>]>]>
// CHECK-NOT: plan.reshard
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%g: tensor<f32> {plan.layout = #plan.layout<[]>}, %x: tensor<4x6xf32> {plan.layout = #plan.layout<[<[<4>]>, <[<6, ["a"]>]>]>}, %l: tensor<4xi64> {plan.layout = #plan.layout<[<[<4>]>]>}, %s: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>})
      -> (tensor<4x6xf32> {plan.layout = #plan.layout<[<[<4>]>, <[<6, ["a"]>]>]>}) {
    %0 = train.softmax_cross_entropy_grad %g, %x, %l, %s ignore -100 {plan.strategy = #plan.strategy<[<"classes", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4>]>, <[<6, ["a"]>]>]>]} : (tensor<f32>, tensor<4x6xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}

// -----

// Features over one axis, rows over another: two reductions of rows, none of whole values.
// CHECK-LABEL: @evaluate
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>
// CHECK: %[[SUM:.*]] = train.reduce sum %[[X]] dims [1] : tensor<4x8xf32> -> tensor<4xf32> {plan.layouts = [#plan.layout<[<[<4, ["b"]>]>], unreduced = [<"a", sum>]>]
// CHECK: %[[AVERAGE:.*]] = train.div %[[SUM]]
// CHECK: %[[MEAN:.*]] = plan.reshard %[[AVERAGE]] from <[<[<4, ["b"]>]>], unreduced = [<"a", sum>]> to <[<[<4, ["b"]>]>]>
// CHECK: train.broadcast %[[MEAN]]
// CHECK: %[[SQUARES:.*]] = train.reduce sum
// CHECK: plan.reshard {{.*}} from <[<[<4, ["b"]>]>], unreduced = [<"a", sum>]> to <[<[<4, ["b"]>]>]>
// CHECK: train.rsqrt
// CHECK-NOT: plan.reshard
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  func.func @evaluate(%x: tensor<4x8xf32> {plan.layout = #plan.layout<[<[<4, ["b"]>]>, <[<8, ["a"]>]>]>}, %s: tensor<8xf32> {plan.layout = #plan.layout<[<[<8, ["a"]>]>]>})
      -> (tensor<4x8xf32> {plan.layout = #plan.layout<[<[<4, ["b"]>]>, <[<8, ["a"]>]>]>}) {
    %0:3 = train.layer_norm %x, %s epsilon 1.0e-5 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32> {plan.strategy = #plan.strategy<[<"d0", ["b"]>, <"row", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4, ["b"]>]>, <[<8, ["a"]>]>]>, #plan.layout<[<[<4, ["b"]>]>]>, #plan.layout<[<[<4, ["b"]>]>]>]}
    return %0#0 : tensor<4x8xf32>
  }
}

// -----

// The gradient of the scale is a sum over the rows' axis, which its consumer gets as the plan says; nobody reads that of
// the bias, so that nothing is left of it. The weight keeps its mark.
// CHECK: train.parameter {{.*}} @w {{.*}} train.norm_scale
// CHECK-LABEL: @evaluate
// CHECK: train.reduce sum %{{.*}} dims [0] : tensor<4x8xf32> -> tensor<8xf32> {plan.layouts = [#plan.layout<[<[<8, ["a"]>]>], unreduced = [<"b", sum>]>]
// CHECK-NOT: dims [0] : tensor<4x8xf32> -> tensor<8xf32>
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  train.parameter weight @w "w" : tensor<8xf32> from <none> {plan.layout = #plan.layout<[<[<8>]>]>, plan.master_layout = #plan.layout<[<[<8>]>]>}
  func.func @evaluate(%x: tensor<4x8xf32> {plan.layout = #plan.layout<[<[<4, ["b"]>]>, <[<8, ["a"]>]>]>})
      -> (tensor<8xf32> {plan.layout = #plan.layout<[<[<8, ["a"]>]>], unreduced = [<"b", sum>]>}) {
    %s = train.read @w : tensor<8xf32> {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<8>]>]>]}
    %0:3 = train.layer_norm %x, %s epsilon 1.0e-5 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32> {plan.strategy = #plan.strategy<[<"d0", ["b"]>]>, plan.layouts = [#plan.layout<[<[<4, ["b"]>]>, <[<8>]>]>, #plan.layout<[<[<4, ["b"]>]>]>, #plan.layout<[<[<4, ["b"]>]>]>]}
    %1:3 = train.layer_norm_grad %x, %x, %s, %0#1, %0#2 {plan.strategy = #plan.strategy<[<"d0", ["b"]>, <"row", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4, ["b"]>]>, <[<8, ["a"]>]>]>, #plan.layout<[<[<8, ["a"]>]>], unreduced = [<"b", sum>]>, #plan.layout<[<[<8, ["a"]>]>], unreduced = [<"b", sum>]>]} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
    return %1#1 : tensor<8xf32>
  }
}

// -----

// Root mean square and softmax, the row in blocks of two parts each.
// CHECK-LABEL: @evaluate
// CHECK: train.reduce sum {{.*}} unreduced = [<"a", sum>]
// CHECK: plan.reshard
// CHECK: train.rsqrt
// CHECK: %[[TOP:.*]] = train.reduce max
// CHECK-NEXT: plan.reshard %[[TOP]] from <[<[<4>]>], unreduced = [<"a", max>]> to <[<[<4>]>]>
// CHECK: train.exp {{.*}}#plan.layout<[<[<4>]>, <[<2>, <4, ["a"]>]>]>
// CHECK: %[[SUM:.*]] = train.reduce sum
// CHECK-NEXT: plan.reshard %[[SUM]] from <[<[<4>]>], unreduced = [<"a", sum>]> to <[<[<4>]>]>
// CHECK-NOT: plan.reshard
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4x8xf32> {plan.layout = #plan.layout<[<[<4>]>, <[<2>, <4, ["a"]>]>]>}, %s: tensor<8xf32> {plan.layout = #plan.layout<[<[<2>, <4, ["a"]>]>]>})
      -> (tensor<4x8xf32> {plan.layout = #plan.layout<[<[<4>]>, <[<2>, <4, ["a"]>]>]>}) {
    %0:2 = train.rms_norm %x, %s epsilon 1.0e-5 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32> {plan.strategy = #plan.strategy<[<"row", ["a"], blocks = 2>]>, plan.layouts = [#plan.layout<[<[<4>]>, <[<2>, <4, ["a"]>]>]>, #plan.layout<[<[<4>]>]>]}
    %1 = train.softmax %0#0 : tensor<4x8xf32> {plan.strategy = #plan.strategy<[<"row", ["a"], blocks = 2>]>, plan.layouts = [#plan.layout<[<[<4>]>, <[<2>, <4, ["a"]>]>]>]}
    return %1 : tensor<4x8xf32>
  }
}

// -----

// Keys in two parts and samples in two: each rank attends to its keys for its samples; the causal mask has the columns of
// its keys.
// CHECK-LABEL: @evaluate
// CHECK: train.compare less_equal {{.*}} tensor<2x4x2xi1>
// CHECK: %[[R:.*]], %[[L:.*]] = train.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} scale 5.000000e-01 {{.*}} plan.strategy = #plan.strategy<[<"batch", ["a", "b"]>]>{{.*}} -> (tensor<8x2x4x8xf32>, tensor<8x2x4xf32>)
// CHECK: train.reduce max {{.*}} dims [0] : tensor<2x4x2x4xf32>
// CHECK-NEXT: plan.reshard {{.*}} unreduced = [<"a", max>]
// CHECK: train.reduce sum {{.*}} dims [0] : tensor<2x4x2x4xf32>
// CHECK-NEXT: plan.reshard {{.*}} unreduced = [<"a", sum>]
// CHECK: train.reduce sum {{.*}} dims [0] : tensor<2x4x2x4x8xf32>
// CHECK: plan.reshard {{.*}} unreduced = [<"a", sum>]
// CHECK-NOT: plan.reshard
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  func.func @evaluate(%q: tensor<4x2x4x8xf32> {plan.layout = #plan.layout<[<[<4, ["b"]>]>, <[<2>]>, <[<4>]>, <[<8>]>]>}, %k: tensor<4x2x4x8xf32> {plan.layout = #plan.layout<[<[<4, ["b"]>]>, <[<2>]>, <[<4, ["a"]>]>, <[<8>]>]>})
      -> (tensor<4x2x4x8xf32> {plan.layout = #plan.layout<[<[<4, ["b"]>]>, <[<2>]>, <[<4>]>, <[<8>]>]>}) {
    %0:2 = train.attention %q, %k, %k scale 0.5 causal {plan.strategy = #plan.strategy<[<"batch", ["b"]>, <"keys", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4, ["b"]>]>, <[<2>]>, <[<4>]>, <[<8>]>]>, #plan.layout<[<[<4, ["b"]>]>, <[<2>]>, <[<4>]>]>]} : (tensor<4x2x4x8xf32>, tensor<4x2x4x8xf32>, tensor<4x2x4x8xf32>) -> (tensor<4x2x4x8xf32>, tensor<4x2x4xf32>)
    return %0#0 : tensor<4x2x4x8xf32>
  }
}

// -----

// In the gradient keys are an ordinary sum, once a mask says what is causal.
// CHECK-LABEL: @evaluate
// CHECK: %[[Q:.*]], %{{.*}}, %{{.*}} = train.attention_grad {{.*}} mask {{.*}} scale 5.000000e-01 {plan.layouts
// CHECK-SAME: plan.strategy = #plan.strategy<[<"keys", ["a"]>]>
// CHECK-NEXT: plan.reshard %[[Q]] from <[<[<2>]>, <[<2>]>, <[<4>]>, <[<8>]>], unreduced = [<"a", sum>]>
// CHECK-NOT: plan.reshard
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%q: tensor<2x2x4x8xf32> {plan.layout = #plan.layout<[<[<2>]>, <[<2>]>, <[<4>]>, <[<8>]>]>}, %k: tensor<2x2x4x8xf32> {plan.layout = #plan.layout<[<[<2>]>, <[<2>]>, <[<4, ["a"]>]>, <[<8>]>]>}, %l: tensor<2x2x4xf32> {plan.layout = #plan.layout<[<[<2>]>, <[<2>]>, <[<4>]>]>})
      -> (tensor<2x2x4x8xf32> {plan.layout = #plan.layout<[<[<2>]>, <[<2>]>, <[<4>]>, <[<8>]>]>}, tensor<2x2x4x8xf32> {plan.layout = #plan.layout<[<[<2>]>, <[<2>]>, <[<4, ["a"]>]>, <[<8>]>]>}) {
    %0:3 = train.attention_grad %q, %q, %k, %k output %q, %l scale 0.5 causal {plan.strategy = #plan.strategy<[<"keys", ["a"]>]>, plan.layouts = [#plan.layout<[<[<2>]>, <[<2>]>, <[<4>]>, <[<8>]>]>, #plan.layout<[<[<2>]>, <[<2>]>, <[<4, ["a"]>]>, <[<8>]>]>, #plan.layout<[<[<2>]>, <[<2>]>, <[<4, ["a"]>]>, <[<8>]>]>]} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>)
    return %0#0, %0#1 : tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>
  }
}

// -----

// Rows of a table in two blocks of two parts each, ids over another axis: each rank gives the rows that it has and leaves
// the sum to whoever wants it. Nothing but the first rows of its parts is cut.
// CHECK-LABEL: @evaluate
// CHECK-SAME: %[[T:[a-z0-9]+]]: tensor<8x4xf32>
// CHECK: %[[FIRST:.*]] = train.iota 0 start 0.000000e+00 step 2.000000e+00 : tensor<4xi64>
// CHECK-NEXT: %[[OWN:.*]] = plan.reshard %[[FIRST]] from <[<[<4>]>]> to <[<[<2>, <2, ["a"]>]>]>
// CHECK-NEXT: %[[ROWS:.*]] = train.embedding %[[T]], %{{.*}} first %[[OWN]] of 8 : {{.*}} {plan.layouts = [#plan.layout<[<[<6, ["b"]>]>, <[<4>]>], unreduced = [<"a", sum>]>], plan.strategy = #plan.strategy<[<"i0", ["b"]>, <"parts", ["a"], blocks = 2>]>
// CHECK-SAME: train.id = "tokens.split.1"
// CHECK-NOT: plan.reshard
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  func.func @evaluate(%t: tensor<8x4xf32> {plan.layout = #plan.layout<[<[<2>, <4, ["a"]>]>, <[<4>]>]>}, %i: tensor<6xi64> {plan.layout = #plan.layout<[<[<6, ["b"]>]>]>})
      -> (tensor<6x4xf32> {plan.layout = #plan.layout<[<[<6, ["b"]>]>, <[<4>]>], unreduced = [<"a", sum>]>}) {
    %0 = train.embedding %t, %i : tensor<8x4xf32>, tensor<6xi64> -> tensor<6x4xf32> {plan.strategy = #plan.strategy<[<"rows", ["a"], blocks = 2>, <"i0", ["b"]>]>, plan.layouts = [#plan.layout<[<[<6, ["b"]>]>, <[<4>]>], unreduced = [<"a", sum>]>], train.id = "tokens"}
    return %0 : tensor<6x4xf32>
  }
}

// -----

// Its gradient moves nothing over the axis of the rows.
// CHECK-LABEL: @evaluate
// CHECK: %[[FIRST:.*]] = train.iota 0 start 0.000000e+00 step 4.000000e+00 : tensor<2xi64>
// CHECK-NEXT: %[[OWN:.*]] = plan.reshard %[[FIRST]] from <[<[<2>]>]> to <[<[<2, ["a"]>]>]>
// CHECK-NEXT: train.embedding_grad %{{.*}}, %{{.*}} rows 8 first %[[OWN]] of 8 : {{.*}} {plan.layouts = [#plan.layout<[<[<2, ["a"]>, <4>]>, <[<4>]>], unreduced = [<"b", sum>]>], plan.strategy = #plan.strategy<[<"i0", ["b"]>, <"parts", ["a"]>]>
// CHECK-NOT: plan.reshard
// CHECK: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  func.func @evaluate(%g: tensor<6x4xf32> {plan.layout = #plan.layout<[<[<6, ["b"]>]>, <[<4>]>]>}, %i: tensor<6xi64> {plan.layout = #plan.layout<[<[<6, ["b"]>]>]>})
      -> (tensor<8x4xf32> {plan.layout = #plan.layout<[<[<8, ["a"]>]>, <[<4>]>], unreduced = [<"b", sum>]>}) {
    %0 = train.embedding_grad %i, %g rows 8 : tensor<6xi64>, tensor<6x4xf32> -> tensor<8x4xf32> {plan.strategy = #plan.strategy<[<"rows", ["a"]>, <"i0", ["b"]>]>, plan.layouts = [#plan.layout<[<[<8, ["a"]>]>, <[<4>]>], unreduced = [<"b", sum>]>]}
    return %0 : tensor<8x4xf32>
  }
}

// -----

// What reduces inside stays as it is where other factors are split.
// CHECK-LABEL: @evaluate
// CHECK-NEXT: train.softmax
// CHECK-NEXT: return
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4x8xf32> {plan.layout = #plan.layout<[<[<4, ["a"]>]>, <[<8>]>]>}) -> (tensor<4x8xf32> {plan.layout = #plan.layout<[<[<4, ["a"]>]>, <[<8>]>]>}) {
    %0 = train.softmax %x : tensor<4x8xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4, ["a"]>]>, <[<8>]>]>]}
    return %0 : tensor<4x8xf32>
  }
}

// -----

// Terms of a sum that are partial over different axes are summed by axes first.
// CHECK-LABEL: @evaluate
// CHECK: %[[A:.*]] = train.accumulate %{{.*}}, %{{.*}} {{.*}} unreduced = [<"a", sum>]
// CHECK: %[[R:.*]] = plan.reshard %[[A]]
// CHECK: train.accumulate %[[R]], %{{.*}} :
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4, ["a"]>]>]>}, %y: tensor<f32> {plan.layout = #plan.layout<[]>}) -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    %0 = train.square_sum %x : tensor<4xf32> -> tensor<f32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>, plan.layouts = [#plan.layout<[], unreduced = [<"a", sum>]>]}
    %1 = train.square_sum %x : tensor<4xf32> -> tensor<f32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>, plan.layouts = [#plan.layout<[], unreduced = [<"a", sum>]>]}
    %2 = train.accumulate %0, %1, %y : tensor<f32> {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[]>]}
    return %2 : tensor<f32>
  }
}
