// RUN: windlass-opt %s -split-input-file -verify-diagnostics -sched-lower-to-commands

sched.program @program on <[]> {
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %x = train.constant dense<1.0> : tensor<4xf32>
  // expected-error @below {{is element-wise and in no sched.map: run sched-fuse-elementwise first}}
  %y = train.exp %x : tensor<4xf32>
  %z = train.softmax %y : tensor<4xf32>
  %s = train.reduce sum %z dims [0] : tensor<4xf32> -> tensor<f32>
  sched.store @e, %s : tensor<f32>
  return
}
sched.resource evaluate @e : tensor<f32> of tensor<f32> #plan.layout<[]>
}

// -----

sched.program @program on <[]> {
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{has no command: it must be lowered before sched-lower-to-commands}}
  %x = train.hyperparameter learning_rate : tensor<f32>
  sched.store @e, %x : tensor<f32>
  return
}
sched.resource evaluate @e : tensor<f32> of tensor<f32> #plan.layout<[]>
}

// -----

sched.program @program on <[]> {
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %x = train.constant dense<1.0> : tensor<f32>
  // expected-error @below {{adds to @e twice in one function: only the first micro-batch may overwrite it}}
  sched.add_to @e, %x : tensor<f32>
  sched.add_to @e, %x : tensor<f32>
  return
}
sched.resource evaluate @e : tensor<f32> of tensor<f32> #plan.layout<[]>
}

// -----

module {
// expected-error @below {{has one of @forward and @backward: a step needs both}}
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    return
  }
}
}

// -----

module {
sched.program @program on <[]> {
  // expected-error @below {{is a part of a backward, but there is no @backward}}
  func.func @weight_gradient() attributes {sched.step = #sched.step<weight_gradient, chunk 0>} {
    return
  }
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    return
  }
  // expected-error @below {{takes 1 values but the forward pass returns 0}}
  func.func @backward(%x: tensor<4xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    return
  }
}
}

// -----

sched.program @program on <[]> {
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{but the runtime's views have at most 8 dims}}
  %x = train.constant dense<1.0> : tensor<1x1x1x1x1x1x1x1x2xf32>
  %s = train.reduce sum %x dims [0, 1, 2, 3, 4, 5, 6, 7, 8] : tensor<1x1x1x1x1x1x1x1x2xf32> -> tensor<f32>
  sched.store @e, %s : tensor<f32>
  return
}
sched.resource evaluate @e : tensor<f32> of tensor<f32> #plan.layout<[]>
}

// -----

sched.program @program on <[]> {
sched.resource value @w : tensor<4x6xf32> of tensor<4x6xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<6>]>]>
sched.resource value @o : tensor<4x7xf32> of tensor<4x7xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<7>]>]>
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
  %w = sched.load @w : tensor<4x6xf32>
  // expected-error @below {{makes 'tensor<4x7xf32>' of 'tensor<4x6xf32>': the parts do not fit}}
  %g = sched.all_gather %w dim 1 over ["model"] : tensor<4x6xf32> -> tensor<4x7xf32>
  sched.store @o, %g : tensor<4x7xf32>
  return
}
}

// -----

sched.program @program position 1 on <[]> {
  // expected-error @below {{is of position 1, but chunks are placed on 1 positions only}}
  sched.schedule [#sched.action<forward>]
}
