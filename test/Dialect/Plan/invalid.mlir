// RUN: windlass-opt %s -split-input-file -verify-diagnostics

// Meshes.

// expected-error @below {{axis "data" has size 0; an axis has at least one member}}
// expected-error @below {{failed to parse Plan_MeshAttr parameter 'axes'}}
module attributes {plan.mesh = #plan.mesh<[<"data", 0>]>} {}

// -----

// expected-error @below {{expected one of [model, replica, batch, expert]}}
// expected-error @below {{failed to parse Plan_MeshAttr parameter 'axes'}}
// expected-error @below {{failed to parse Plan_AxisAttr parameter 'role'}}
module attributes {plan.mesh = #plan.mesh<[<"data", 2, data>]>} {}

// -----

// expected-error @below {{a mesh has axis "data" twice}}
module attributes {plan.mesh = #plan.mesh<[<"data", 2>, <"model", 2>, <"data", 4>]>} {}

// -----

// expected-error @below {{a mesh has 2^63 ranks or more}}
module attributes {plan.mesh = #plan.mesh<[<"data", 4611686018427387904>, <"model", 2>]>} {}

// -----

// Pipelines.

// expected-error @below {{a pipeline has 1 positions; it has at least 2}}
module attributes {plan.pipeline = #plan.pipeline<positions = 1, schedule = "1f1b", begins = ["a"]>} {}

// -----

// expected-error @below {{a pipeline of 3 positions has 2 chunks; each position runs at least one}}
module attributes {plan.pipeline = #plan.pipeline<positions = 3, schedule = "1f1b", begins = ["a"]>} {}

// -----

// Layouts that do not fit their value.

func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @below {{'plan.reshard' op has a layout of 1 dims but type 'tensor<4x4xf32>'}}
  %0 = plan.reshard %x from <[<[<4>]>]> to <[<[<4>]>, <[<4>]>]> : tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @below {{'plan.reshard' op has a layout whose factors multiply to 8 on a dim of size 4}}
  %0 = plan.reshard %x from <[<[<4>]>, <[<4>]>]> to <[<[<4>]>, <[<4>, <2>]>]> : tensor<4x4xf32>
  return
}

// -----

// A product that would come out right in 64 bits.
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{has a layout whose factors multiply to 2^63 or more on a dim of size 4}}
  %0 = plan.reshard %x from <[<[<4611686018427387905>, <4>]>]> to <[<[<4>]>]> : tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{a factor of a dim has size -2; it is at least 0}}
  // expected-error @below {{failed to parse Plan_DimLayoutAttr parameter 'factors'}}
  // expected-error @below {{failed to parse Plan_LayoutAttr parameter 'dims'}}
  %0 = plan.reshard %x from <[<[<-2>, <-2>]>]> to <[<[<4>]>]> : tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{failed to verify that all of {input, result} have same type}}
  %0 = "plan.reshard"(%x) <{from = #plan.layout<[<[<4>]>]>, to = #plan.layout<[<[<4>]>]>}> : (tensor<4xf32>) -> tensor<4xf16>
  return
}

// -----

// Attributes that cannot be read.

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected one of [device, host, disk] for where a value is kept, got: tape}}
  // expected-error @below {{failed to parse Plan_LayoutAttr parameter 'memory'}}
  %0 = plan.reshard %x from <[<[<4>]>] memory = tape> to <[<[<4>]>]> : tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{expected ::windlass::train::ReductionKind to be one of: sum, max, min}}
  // expected-error @below {{failed to parse Plan_UnreducedAttr parameter 'kind'}}
  // expected-error @below {{failed to parse Plan_LayoutAttr parameter 'unreduced'}}
  %0 = plan.reshard %x from <[<[<4>]>], unreduced = [<"data", mean>]> to <[<[<4>]>]> : tensor<4xf32>
  return
}
