// RUN: windlass-opt %s -verify-diagnostics -split-input-file --plan-to-sched

// expected-error @below {{has no plan.mesh}}
module {}

// -----

// expected-error @below {{has no @microbatch}}
module attributes {plan.mesh = #plan.mesh<[]>} {
  func.func @update() { return }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @microbatch(%x: tensor<6xf32> {train.input = "x", plan.layout = #plan.layout<[<[<6>]>]>}) -> (tensor<6xf32> {plan.layout = #plan.layout<[<[<6>]>]>}) {
    // expected-error @below {{a value that is not partial over axis 'a' cannot become so}}
    %0 = plan.reshard %x from <[<[<6>]>]> to <[<[<6>]>], unreduced = [<"a", sum>]> : tensor<6xf32>
    return %x : tensor<6xf32>
  }
  func.func @update() -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    %0 = train.constant {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[]>]} dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{has no layouts}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<4>]>]>}
  func.func @microbatch(%x: tensor<f32> {train.input = "x", plan.layout = #plan.layout<[]>}) -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    return %x : tensor<f32>
  }
  func.func @update() -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    %0 = train.constant {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[]>]} dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[]>} {
  func.func @microbatch(%x: tensor<4xf32> {train.input = "x", plan.layout = #plan.layout<[<[<4>]>]>}) -> (tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    %0 = train.exp %x : tensor<4xf32> {train.id = "e", plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    %1 = train.stash %0 : tensor<4xf32> {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    // expected-error @below {{uses a value of the forward pass that no train.stash hands over}}
    %2 = train.neg %0 : tensor<4xf32> {train.forward = "e", plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    return %0 : tensor<4xf32>
  }
  func.func @update() -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    %0 = train.constant {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[]>]} dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

// expected-error @below {{has 3 micro-batches per step, which 2 replicas cannot share evenly}}
module attributes {plan.mesh = #plan.mesh<[<"data", 2, replica>]>, train.settings = {micro_batches = 3 : i64}} {
  func.func @microbatch(%x: tensor<f32> {train.input = "x", plan.layout = #plan.layout<[]>}) -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    return %x : tensor<f32>
  }
  func.func @update() -> (tensor<f32> {plan.layout = #plan.layout<[]>}) {
    %0 = train.constant {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[]>]} dense<0.0> : tensor<f32>
    return %0 : tensor<f32>
  }
}
