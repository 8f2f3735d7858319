// RUN: windlass-opt %s -split-input-file -sched-update-early | FileCheck %s
// RUN: windlass-opt %s -split-input-file -sched-update-early -sched-lower-to-commands -sched-verify-commands | FileCheck %s --check-prefix=L5

// What the host holds of @a and @c is updated in @reduce, in the order in which the backward makes their gradients, with
// what both need before. @b, which the device updates, and what is computed from two gradients stay.
#vector = #plan.layout<[<[<8>]>]>
#host = #plan.layout<[<[<8>]>] memory = host>
module {
sched.program @program on <[]> {
  sched.resource parameter @weight_a : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource parameter @weight_c : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource parameter @weight_b : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource master @master_a : tensor<8xf32> of tensor<8xf32> #host
  sched.resource master @master_c : tensor<8xf32> of tensor<8xf32> #host
  sched.resource state @momentum_a : tensor<8xf32> of tensor<8xf32> #host
  sched.resource state @momentum_b : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource state @momentum_c : tensor<8xf32> of tensor<8xf32> #host
  sched.resource gradient @gradient_a : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource gradient @gradient_b : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource gradient @gradient_c : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource scalar @rate : tensor<f32> of tensor<f32> <[] memory = host> {scalar = #train<hyperparameter learning_rate>}
  sched.resource scalar @device_rate : tensor<f32> of tensor<f32> <[]> {scalar = #train<hyperparameter learning_rate>}
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
  func.func @forward() -> tensor<8xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %a = sched.load @weight_a : tensor<8xf32>
    return %a : tensor<8xf32>
  }
  // The gradient of @c is final behind the first instance, but its weight is read in the second.
  // L5-LABEL: func.func @backward
  // L5: sched.launch softmax on @compute {{.*}} {plan.repeat = #plan.repeat<"block", 1>
  // L5: sched.launch copy on @d2h {{.*}} {plan.repeat = #plan.repeat<"block", 1>, sched.in_last
  // L5: sched.launch sgd on @host {{.*}} {plan.repeat = #plan.repeat<"block", 1>, sched.in_last, train.id = "step.c"}
  // L5-NOT: launch copy on @h2d
  // L5: sched.launch softmax on @compute {{.*}} {plan.repeat = #plan.repeat<"block", 0>
  // L5-NOT: sched.launch softmax
  // L5: sched.launch copy on @h2d_updates {{.*}} {plan.repeat = #plan.repeat<"block", 0>, sched.in_last
  // L5: sched.launch copy on @d2h {{.*}} {plan.repeat = #plan.repeat<"block", 0>, sched.in_last
  // L5: sched.launch sgd on @host {{.*}} sched.in_last, train.id = "step.a"}
  // The last softmax reads the weight @a, which the forward has handed on.
  // L5: sched.launch softmax on @compute
  // L5: sched.launch copy on @h2d_updates {{.*}}sched.in_last
  // L5-LABEL: func.func @reduce
  // L5: sched.wait {{.*}} on @compute
  // L5-LABEL: func.func @update
  // L5-NOT: @host
  // L5: sched.launch sgd on @compute
  func.func @backward(%y: tensor<8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %c = train.softmax %y : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 1>}
    sched.add_to @gradient_c, %c : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 1>}
    %w = sched.load @weight_c : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 0>}
    %a = train.softmax %w : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 0>}
    sched.add_to @gradient_a, %a : tensor<8xf32> {plan.repeat = #plan.repeat<"block", 0>}
    %b = train.softmax %y : tensor<8xf32>
    sched.add_to @gradient_b, %b : tensor<8xf32>
    return
  }
  // CHECK-LABEL: func.func @reduce
  // CHECK-NEXT: %[[RATE:.*]] = sched.load @rate
  // CHECK: %[[C:.*]] = sched.load @gradient_c
  // CHECK: sched.move %[[C]] to host
  // CHECK: train.sgd {{.*}}%[[RATE]]{{.*}} {train.id = "step.c"}
  // CHECK: sched.store @master_c
  // CHECK: %[[NEW:.*]] = sched.load @master_c
  // CHECK: sched.move %[[NEW]] to device
  // CHECK: sched.store @weight_c
  // CHECK: sched.store @momentum_c
  // CHECK: sched.load @gradient_a
  // CHECK: sched.store @master_a
  // CHECK: sched.store @weight_a
  // CHECK: sched.store @momentum_a
  // CHECK-NEXT: return
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  // CHECK-LABEL: func.func @update
  // CHECK-NEXT: sched.load @gradient_a
  // CHECK-NEXT: sched.load @gradient_b
  // CHECK-NEXT: train.square_sum
  // CHECK-NEXT: train.square_sum
  // CHECK-NEXT: train.accumulate
  // CHECK-NEXT: sched.store @norm
  // CHECK-NOT: sched.store @{{[a-z]*}}_{{[ac]}}
  // CHECK: sched.store @momentum_b
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %ga = sched.load @gradient_a : tensor<8xf32>
    %gb = sched.load @gradient_b : tensor<8xf32>
    %sa = train.square_sum %ga : tensor<8xf32> -> tensor<f32>
    %sb = train.square_sum %gb : tensor<8xf32> -> tensor<f32>
    %s = train.accumulate %sa, %sb : tensor<f32>
    sched.store @norm, %s : tensor<f32>
    %r = sched.load @rate : tensor<f32>
    %ma = sched.load @master_a : tensor<8xf32>
    %va = sched.load @momentum_a : tensor<8xf32>
    %ha = sched.move %ga to host : tensor<8xf32>
    %na, %pa = train.sgd %ma, %va, %ha, %r, %r, %r, %r {train.id = "step.a"} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    sched.store @master_a, %na : tensor<8xf32>
    %nma = sched.load @master_a : tensor<8xf32>
    %da = sched.move %nma to device : tensor<8xf32>
    sched.store @weight_a, %da : tensor<8xf32>
    sched.store @momentum_a, %pa : tensor<8xf32>
    %rb = sched.load @device_rate : tensor<f32>
    %mb = sched.load @weight_b : tensor<8xf32>
    %vb = sched.load @momentum_b : tensor<8xf32>
    %nb, %pb = train.sgd %mb, %vb, %gb, %rb, %rb, %rb, %rb {train.id = "step.b"} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    sched.store @weight_b, %nb : tensor<8xf32>
    sched.store @momentum_b, %pb : tensor<8xf32>
    %gc = sched.load @gradient_c : tensor<8xf32>
    %mc = sched.load @master_c : tensor<8xf32>
    %vc = sched.load @momentum_c : tensor<8xf32>
    %hc = sched.move %gc to host : tensor<8xf32>
    %nc, %pc = train.sgd %mc, %vc, %hc, %r, %r, %r, %r {train.id = "step.c"} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    sched.store @master_c, %nc : tensor<8xf32>
    %nmc = sched.load @master_c : tensor<8xf32>
    %dc = sched.move %nmc to device : tensor<8xf32>
    sched.store @weight_c, %dc : tensor<8xf32>
    sched.store @momentum_c, %pc : tensor<8xf32>
    return
  }
  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

// The step of @a reads a norm of two gradients, as with clipping. The norm, which stays, reads the master copy of @b as
// it is before the step of @b.
#vector = #plan.layout<[<[<8>]>]>
#host = #plan.layout<[<[<8>]>] memory = host>
module {
sched.program @program on <[]> {
  sched.resource master @master_a : tensor<8xf32> of tensor<8xf32> #host
  sched.resource master @master_b : tensor<8xf32> of tensor<8xf32> #host
  sched.resource state @momentum_a : tensor<8xf32> of tensor<8xf32> #host
  sched.resource state @momentum_b : tensor<8xf32> of tensor<8xf32> #host
  sched.resource gradient @gradient_a : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource gradient @gradient_b : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource scalar @rate : tensor<f32> of tensor<f32> <[] memory = host> {scalar = #train<hyperparameter learning_rate>}
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> <[]>
  func.func @forward() -> tensor<8xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %y = train.constant dense<2.0> : tensor<8xf32>
    return %y : tensor<8xf32>
  }
  func.func @backward(%y: tensor<8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %a = train.softmax %y : tensor<8xf32>
    sched.add_to @gradient_a, %a : tensor<8xf32>
    %b = train.softmax %y : tensor<8xf32>
    sched.add_to @gradient_b, %b : tensor<8xf32>
    return
  }
  // CHECK-LABEL: func.func @reduce
  // CHECK-NEXT: return
  // L5-LABEL: func.func @reduce
  // L5-NEXT: return
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %ga = sched.load @gradient_a : tensor<8xf32>
    %gb = sched.load @gradient_b : tensor<8xf32>
    %mb = sched.load @master_b : tensor<8xf32>
    %hb = sched.move %gb to host : tensor<8xf32>
    %hg = sched.move %ga to host : tensor<8xf32>
    %sa = train.square_sum %hg : tensor<8xf32> -> tensor<f32>
    %sb = train.square_sum %mb : tensor<8xf32> -> tensor<f32>
    %ss = train.square_sum %hb : tensor<8xf32> -> tensor<f32>
    %s = train.accumulate %sa, %sb, %ss : tensor<f32>
    %there = sched.move %s to device : tensor<f32>
    sched.store @norm, %there : tensor<f32>
    %r = sched.load @rate : tensor<f32>
    %ma = sched.load @master_a : tensor<8xf32>
    %va = sched.load @momentum_a : tensor<8xf32>
    %na, %pa = train.sgd %ma, %va, %hg, %r, %r, %r, %s {train.id = "step.a"} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    sched.store @master_a, %na : tensor<8xf32>
    sched.store @momentum_a, %pa : tensor<8xf32>
    %vb = sched.load @momentum_b : tensor<8xf32>
    %nb, %pb = train.sgd %mb, %vb, %hb, %r, %r, %r, %r {train.id = "step.b"} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    sched.store @master_b, %nb : tensor<8xf32>
    sched.store @momentum_b, %pb : tensor<8xf32>
    return
  }
  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}
// -----

// The device waits for a weight from the host by the gather that follows the copy, so that the weight may be updated
// beside the next operators. The step of @norm, whose gradient is summed over the ranks behind the backward, reads the
// same rate, which is no reason to wait.
#vector = #plan.layout<[<[<8>]>]>
#host = #plan.layout<[<[<8>]>] memory = host>
#split = #plan.layout<[<[<8, ["data"]>]>]>
#split_host = #plan.layout<[<[<8, ["data"]>]>] memory = host>
module {
sched.program @program on <[<"data", 2>]> {
  sched.resource parameter @weight : tensor<4xf32> of tensor<8xf32> #split_host
  sched.resource state @momentum : tensor<4xf32> of tensor<8xf32> #split_host
  sched.resource master @norm : tensor<8xf32> of tensor<8xf32> #host
  sched.resource state @norm_momentum : tensor<8xf32> of tensor<8xf32> #host
  sched.resource gradient @norm_gradient : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource reduced @norm_reduced : tensor<8xf32> of tensor<8xf32> #vector
  sched.resource gradient @gradient : tensor<4xf32> of tensor<8xf32> #split_host
  sched.resource gradient @gradient_b : tensor<4xf32> of tensor<8xf32> #split_host
  sched.resource gradient @gradient_c : tensor<4xf32> of tensor<8xf32> #split_host
  sched.resource gradient @unused : tensor<4xf32> of tensor<8xf32> #split_host
  sched.resource scalar @rate : tensor<f32> of tensor<f32> <[] memory = host> {scalar = #train<hyperparameter learning_rate>}
  func.func @forward() -> tensor<8xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = train.constant dense<2.0> : tensor<8xf32>
    return %x : tensor<8xf32>
  }
  // L5-LABEL: func.func @backward
  // L5: sched.launch copy on @h2d
  // L5: sched.launch_collective{{ +}}all_gather
  // L5: sched.launch sgd on @host {{.*}}sched.in_last, train.id = "step"}
  // L5: sched.launch softmax {{.*}}train.id = "last"
  // L5: return
  // L5-LABEL: func.func @reduce
  // L5: sched.launch sgd on @host {{.*}}train.id = "norm_step"}
  func.func @backward(%y: tensor<8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %n = train.softmax %y : tensor<8xf32>
    sched.add_to @norm_gradient, %n : tensor<8xf32>
    %part = sched.load @weight : tensor<4xf32>
    %here = sched.move %part to device : tensor<4xf32>
    %w = sched.all_gather %here dim 0 over ["data"] : tensor<4xf32> -> tensor<8xf32>
    %a = train.softmax %w : tensor<8xf32>
    %ga = sched.reduce_scatter %a dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    %ta = sched.move %ga to host : tensor<4xf32>
    sched.add_to @gradient, %ta : tensor<4xf32>
    %b = train.softmax %y : tensor<8xf32>
    %gb = sched.reduce_scatter %b dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    %tb = sched.move %gb to host : tensor<4xf32>
    sched.add_to @gradient_b, %tb : tensor<4xf32>
    %c = train.softmax %b : tensor<8xf32>
    %gc = sched.reduce_scatter %c dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    %tc = sched.move %gc to host : tensor<4xf32>
    sched.add_to @gradient_c, %tc : tensor<4xf32>
    %d = train.softmax %c : tensor<8xf32> {train.id = "last"}
    %gd = sched.reduce_scatter %d dim 0 over ["data"] : tensor<8xf32> -> tensor<4xf32>
    %td = sched.move %gd to host : tensor<4xf32>
    sched.store @unused, %td : tensor<4xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %part = sched.load @norm_gradient : tensor<8xf32>
    %sum = sched.all_reduce sum %part over ["data"] : (tensor<8xf32>) -> tensor<8xf32>
    sched.store @norm_reduced, %sum : tensor<8xf32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %gn = sched.load @norm_reduced : tensor<8xf32>
    %hn = sched.move %gn to host : tensor<8xf32>
    %mn = sched.load @norm : tensor<8xf32>
    %vn = sched.load @norm_momentum : tensor<8xf32>
    %rn = sched.load @rate : tensor<f32>
    %nn, %pn = train.sgd %mn, %vn, %hn, %rn, %rn, %rn, %rn {train.id = "norm_step"} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
    sched.store @norm, %nn : tensor<8xf32>
    sched.store @norm_momentum, %pn : tensor<8xf32>
    %g = sched.load @gradient : tensor<4xf32>
    %m = sched.load @weight : tensor<4xf32>
    %v = sched.load @momentum : tensor<4xf32>
    %r = sched.load @rate : tensor<f32>
    %n, %p = train.sgd %m, %v, %g, %r, %r, %r, %r {train.id = "step"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    sched.store @weight, %n : tensor<4xf32>
    sched.store @momentum, %p : tensor<4xf32>
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}
