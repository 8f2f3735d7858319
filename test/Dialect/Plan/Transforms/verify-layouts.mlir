// RUN: windlass-opt %s -verify-diagnostics -split-input-file --plan-verify-layouts

// expected-error @below {{has no plan.mesh: apply a strategy or a plan first}}
module {}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{plan.layout has no layout}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none>
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{argument 0 names axis "b", which the mesh}}
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4, ["b"]>]>]>}) {
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{argument 0 names axis "a" twice}}
  func.func @evaluate(%x: tensor<4x4xf32> {plan.layout = #plan.layout<[<[<4, ["a"]>]>, <[<4, ["a"]>]>]>}) {
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{argument 0 has a factor of size 3, which axis "a" of size 2 does not divide evenly}}
  func.func @evaluate(%x: tensor<3xf32> {plan.layout = #plan.layout<[<[<3, ["a"]>]>]>}) {
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"data", 2, replica>]>} {
  // expected-error @below {{argument 0 names axis "data", on which each member has values of its own}}
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4, ["data"]>]>]>}) {
    return
  }
}

// -----

// Replicas may have several axes, whatever their names and places.
module attributes {plan.mesh = #plan.mesh<[<"hosts", 2, replica>, <"a", 2>, <"inside", 2, replica>]>} {
  // expected-error @below {{argument 0 names axis "inside", on which each member has values of its own}}
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4, ["inside"]>]>]>}) {
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{plan.master_layout is kept on host, but only what parameters keep from step to step may be elsewhere than on the device: in the host's memory and, of master copies, on its disk (--offload)}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>] memory = host>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{is a running statistic that is kept on the host, where nothing averages}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {momentum = 0.9 : f64, trainable, plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>]>, plan.gradient_layout = #plan.layout<[<[<4>]>]>, plan.state_memory = #plan<memory_kind host>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{accumulates its gradient on the host, but its master copy, which the gradient updates, is on the device}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {trainable, plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>]>, plan.gradient_layout = #plan.layout<[<[<4>]>]>, plan.gradient_memory = #plan<memory_kind host>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{accumulates its gradient on the host in the layout #plan.layout<[<[<4>]>], unreduced = [<"a", sum>]>, but its master copy has #plan.layout<[<[<4>]>]>: only gradients that each micro-batch brings to the master copy's layout can be there}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {trainable, plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>]>, plan.gradient_layout = #plan.layout<[<[<4>]>], unreduced = [<"a", sum>]>, plan.gradient_memory = #plan<memory_kind host>, plan.state_memory = #plan<memory_kind host>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{brings its optimizer's state to the device to update it, but the state is there from step to step}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {trainable, plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>]>, plan.gradient_layout = #plan.layout<[<[<4>]>]>, plan.updates_on_device}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{keeps the weight that operators read on the host, but its master copy, of which that is made, is on the device}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {trainable, plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>]>, plan.gradient_layout = #plan.layout<[<[<4>]>]>, plan.compute_memory = #plan<memory_kind host>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{keeps the weight that operators read on the host in the layout #plan.layout<[<[<4>]>]>, but its master copy has #plan.layout<[<[<4, ["a"]>]>]>: only weights of which ranks keep just what they update can be there}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {trainable, plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4, ["a"]>]>]>, plan.gradient_layout = #plan.layout<[<[<4>]>]>, plan.compute_memory = #plan<memory_kind host>, plan.state_memory = #plan<memory_kind host>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{argument 0 is kept on disk, but only what parameters keep from step to step}}
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>] memory = disk>}) {
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{argument 0 has a layout whose factors multiply to 6 on a dim of size 4}}
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<2>, <3>]>]>}) {
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{has no plan.strategy}}
    %0 = train.exp %x : tensor<4xf32>
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{has 0 plan.layouts but 1 results}}
    %0 = train.exp %x : tensor<4xf32> {plan.strategy = #plan.strategy<[]>}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{takes operand 0 as #plan.layout<[<[<4>]>]> but needs it as #plan.layout<[<[<4, ["a"]>]>]>}}
    %0 = train.exp %x : tensor<4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4, ["a"]>]>]>]}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{makes result 0 as #plan.layout<[<[<4>]>]> but its layout is #plan.layout<[<[<4, ["a"]>]>]>}}
    %0 = train.exp %x : tensor<4xf32> {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<4, ["a"]>]>]>]}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{has no factor "rows", which its strategy splits}}
    %0 = train.exp %x : tensor<4xf32> {plan.strategy = #plan.strategy<[<"rows", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 3>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{has factor "d0" of size 4, which axis "a" of size 3 does not divide evenly}}
    %0 = train.exp %x : tensor<4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<1x1x2xf32> {plan.layout = #plan.layout<[<[<1>]>, <[<1>]>, <[<2>]>]>},
                      %w: tensor<1x1x3xf32> {plan.layout = #plan.layout<[<[<1>]>, <[<1>]>, <[<3>]>]>}) {
    // expected-error @below {{has factor "space" of size 2, of which its strategy makes parts of 1; its windows need parts of at least 2}}
    %0 = train.convolution %x, %w strides [1] dilations [1] pads [1, 1] {plan.strategy = #plan.strategy<[<"space", ["a"]>]>, plan.layouts = [#plan.layout<[<[<1>]>, <[<1>]>, <[<2, ["a"]>]>]>]} : (tensor<1x1x2xf32>, tensor<1x1x3xf32>) -> tensor<1x1x2xf32>
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4x4xf32> {plan.layout = #plan.layout<[<[<4>]>, <[<4>]>]>}) {
    // expected-error @below {{cannot split its factor "d0"}}
    %0 = train.iota 0 start 0.0 step 1.0 : tensor<4xf32> {plan.strategy = #plan.strategy<[<"d0", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4, ["a"]>]>]>]}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4x4xf32> {plan.layout = #plan.layout<[<[<4>]>, <[<4, ["a"]>]>]>}) {
    // expected-error @below {{is split along factor "row", which it reduces inside: run plan-decompose-split-reductions before}}
    %0 = train.softmax %x : tensor<4x4xf32> {plan.strategy = #plan.strategy<[<"row", ["a"]>]>, plan.layouts = [#plan.layout<[<[<4>]>, <[<4>]>]>]}
    return
  }
}

// -----

// A sum of parts may not go through an op that is not linear.
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>], unreduced = [<"a", sum>]>}) {
    // expected-error @below {{takes operand 0 as}}
    %0 = train.exp %x : tensor<4xf32> {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    return
  }
}

// -----

// @update receives a gradient as it was accumulated.
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>]>, plan.gradient_layout = #plan.layout<[<[<4>]>], unreduced = [<"a", sum>]>}
  // expected-error @below {{argument 0 has another layout than its weight's plan.gradient_layout}}
  func.func @update(%g: tensor<4xf32> {train.gradient = @w, plan.layout = #plan.layout<[<[<4>]>]>}) {
    return
  }
}

// -----

// What is recomputed is a segment.
module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @microbatch(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{is to be recomputed, but is in no segment}}
    %0 = train.exp %x : tensor<4xf32> {plan.strategy = #plan.strategy<[] segment = 0>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @microbatch(%x: tensor<4xf32> {plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{belongs to block 'h.0', whose recomputed operators do not form segments}}
    %0 = train.exp %x : tensor<4xf32> {plan.segment = #plan.segment<"h.0", "">, plan.strategy = #plan.strategy<[] segment = 0>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    %1 = train.exp %0 : tensor<4xf32> {plan.segment = #plan.segment<"h.0", "">, plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<4>]>]>]}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{plan.layout is flat, as only gradients and master copies of parameters may be, and their values in @update}}
  train.parameter weight @w "w" : tensor<3xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<3>]>] flat = ["a"]>, plan.master_layout = #plan.layout<[<[<3>]>] flat = ["a"]>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{argument 0 is flat}}
  func.func @evaluate(%x: tensor<3xf32> {plan.layout = #plan.layout<[<[<3>]>] flat = ["a"]>}) {
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @evaluate(%x: tensor<3xf32> {plan.layout = #plan.layout<[<[<3>]>]>}) {
    // expected-error @below {{result 0 is flat}}
    %0 = train.exp %x : tensor<3xf32> {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<3>]>] flat = ["a"]>]}
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{plan.master_layout names axis "b", which the mesh}}
  train.parameter weight @w "w" : tensor<3xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<3>]>]>, plan.master_layout = #plan.layout<[<[<3>]>] flat = ["b"]>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{plan.master_layout names axis "a" twice}}
  train.parameter weight @w "w" : tensor<4x3xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<4>]>, <[<3>]>]>, plan.master_layout = #plan.layout<[<[<4, ["a"]>]>, <[<3>]>] flat = ["a"]>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{plan.master_layout is flat, but a scalar has nothing to shard}}
  train.parameter weight @w "w" : tensor<f32> from #train.source<none> {plan.layout = #plan.layout<[]>, plan.master_layout = #plan.layout<[] flat = ["a"]>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  func.func @update(%x: tensor<4xf32> {train.gradient = @w, plan.layout = #plan.layout<[<[<4>]>]>}) {
    // expected-error @below {{cannot split its factor "flat" in blocks}}
    %0 = train.square_sum %x : tensor<4xf32> -> tensor<f32> {plan.strategy = #plan.strategy<[<"flat", ["a"], blocks = 2>]>, plan.layouts = [#plan.layout<[]>]}
    return
  }
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {plan.gradient_layout = #plan.layout<[<[<4>]>]>, plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>]>}
}

// -----

// A range is no sum.
module attributes {plan.mesh = #plan.mesh<[<"a", 2>, <"b", 2>]>} {
  // expected-error @below {{a value that is not partial over axis 'b' cannot become so}}
  train.parameter weight @w "w" : tensor<3xf32> from #train.source<none> {plan.gradient_layout = #plan.layout<[<[<3>]>] flat = ["a"], unreduced = [<"b", sum>]>, plan.layout = #plan.layout<[<[<3>]>]>, plan.master_layout = #plan.layout<[<[<3>]>]>}
  func.func @microbatch() -> (tensor<f32> {plan.layout = #plan.layout<[]>}, tensor<3xf32> {train.gradient = @w, plan.layout = #plan.layout<[<[<3>]>]>}) {
    %0 = train.constant {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[]>]} dense<0.0> : tensor<f32>
    %1 = train.constant {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[<[<3>]>]>]} dense<0.0> : tensor<3xf32>
    return %0, %1 : tensor<f32>, tensor<3xf32>
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{argument 0 is of type 'f32', which can have no layout}}
  func.func @evaluate(%x: f32 {plan.layout = #plan.layout<[]>}) {
    return
  }
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  // expected-error @below {{plan.master_layout is #plan.layout<[<[<4>]>], unreduced = [<"a", sum>]>, but only gradients may be partial sums}}
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>], unreduced = [<"a", sum>]>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  train.parameter weight @w "w" : tensor<4xf32> from #train.source<none> {plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4, ["a"]>]>]>}
  // expected-error @below {{has layout #plan.layout<[<[<4>]>]>, but state of the type of its weight has that of the master copy, and other state is whole: #plan.layout<[<[<4, ["a"]>]>]>}}
  train.parameter state @m "w/m" : tensor<4xf32> from #train.source<none> {of = @w, plan.layout = #plan.layout<[<[<4>]>]>, plan.master_layout = #plan.layout<[<[<4>]>]>}
}

// -----

module attributes {plan.mesh = #plan.mesh<[<"a", 2>]>} {
  train.parameter weight @w "w" : tensor<f32> from #train.source<none> {plan.layout = #plan.layout<[]>, plan.master_layout = #plan.layout<[]>}
  // expected-error @below {{result 1 is the gradient of no weight with a plan.gradient_layout}}
  func.func @microbatch() -> (tensor<f32> {plan.layout = #plan.layout<[]>}, tensor<f32> {train.gradient = @w, plan.layout = #plan.layout<[]>}) {
    %0 = train.constant {plan.strategy = #plan.strategy<[]>, plan.layouts = [#plan.layout<[]>]} dense<0.0> : tensor<f32>
    return %0, %0 : tensor<f32>, tensor<f32>
  }
}
