// RUN: windlass-opt %s -split-input-file -verify-diagnostics -sched-verify-async

// Collectives over some positions.

// Some positions meet in reductions, then all in updates.
module attributes {sched.placement = #sched.placement<[0, 1, 2]>} {
sched.program @p0 position 0 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %4 = train.constant dense<1.0> : tensor<f32>
    %5 = sched.all_reduce sum %4 over [] and positions [0, 1] : (tensor<f32>) -> tensor<f32>
    %6 = train.constant dense<1.0> : tensor<f32>
    %7 = sched.all_reduce sum %6 over [] and positions [0, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %11 = train.constant dense<1.0> : tensor<f32>
    %12 = sched.all_reduce sum %11 over [] and positions [0, 1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  sched.schedule [#sched.action<forward chunk 0>, #sched.action<send chunk 0 peer 1>, #sched.action<receive chunk 0 peer 1>, #sched.action<backward chunk 0>, #sched.action<reduce chunk 0>, #sched.action<update chunk 0>]
}
sched.program @p1 position 1 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} {
    %4 = train.constant dense<1.0> : tensor<f32>
    %5 = sched.all_reduce sum %4 over [] and positions [0, 1] : (tensor<f32>) -> tensor<f32>
    %6 = train.constant dense<1.0> : tensor<f32>
    %7 = sched.all_reduce sum %6 over [] and positions [1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    %11 = train.constant dense<1.0> : tensor<f32>
    %12 = sched.all_reduce sum %11 over [] and positions [0, 1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<send chunk 1 peer 2>, #sched.action<receive chunk 1 peer 2>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
sched.program @p2 position 2 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 2>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 2>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 2>} {
    %4 = train.constant dense<1.0> : tensor<f32>
    %5 = sched.all_reduce sum %4 over [] and positions [0, 2] : (tensor<f32>) -> tensor<f32>
    %6 = train.constant dense<1.0> : tensor<f32>
    %7 = sched.all_reduce sum %6 over [] and positions [1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 2>} {
    %11 = train.constant dense<1.0> : tensor<f32>
    %12 = sched.all_reduce sum %11 over [] and positions [0, 1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  sched.schedule [#sched.action<receive chunk 2 peer 1>, #sched.action<forward chunk 2>, #sched.action<backward chunk 2>, #sched.action<send chunk 2 peer 1>, #sched.action<reduce chunk 2>, #sched.action<update chunk 2>]
}
}

// -----

// Each waits for the next one.
module attributes {sched.placement = #sched.placement<[0, 1, 2]>} {
sched.program @p0 position 0 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %5 = train.constant dense<1.0> : tensor<f32>
    // expected-error @below {{combines sum of tensor<f32> over [] and positions [0, 1], but position 1 combines sum of tensor<f32> over [] and positions [1, 2] before it}}
    %6 = sched.all_reduce sum %5 over [] and positions [0, 1] : (tensor<f32>) -> tensor<f32>
    %7 = train.constant dense<1.0> : tensor<f32>
    %8 = sched.all_reduce sum %7 over [] and positions [0, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    return
  }
  sched.schedule [#sched.action<forward chunk 0>, #sched.action<send chunk 0 peer 1>, #sched.action<receive chunk 0 peer 1>, #sched.action<backward chunk 0>, #sched.action<reduce chunk 0>, #sched.action<update chunk 0>]
}
sched.program @p1 position 1 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} {
    %4 = train.constant dense<1.0> : tensor<f32>
    %5 = sched.all_reduce sum %4 over [] and positions [1, 2] : (tensor<f32>) -> tensor<f32>
    %6 = train.constant dense<1.0> : tensor<f32>
    %7 = sched.all_reduce sum %6 over [] and positions [0, 1] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<send chunk 1 peer 2>, #sched.action<receive chunk 1 peer 2>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
sched.program @p2 position 2 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 2>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 2>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 2>} {
    %4 = train.constant dense<1.0> : tensor<f32>
    %5 = sched.all_reduce sum %4 over [] and positions [0, 2] : (tensor<f32>) -> tensor<f32>
    %6 = train.constant dense<1.0> : tensor<f32>
    %7 = sched.all_reduce sum %6 over [] and positions [1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 2>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 2 peer 1>, #sched.action<forward chunk 2>, #sched.action<backward chunk 2>, #sched.action<send chunk 2 peer 1>, #sched.action<reduce chunk 2>, #sched.action<update chunk 2>]
}
}

// -----

// A position does not come.
module attributes {sched.placement = #sched.placement<[0, 1, 2]>} {
sched.program @p0 position 0 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %5 = train.constant dense<1.0> : tensor<f32>
    // expected-error @below {{combines sum of tensor<f32> over [] and positions [0, 1, 2], but position 1 combines nothing more over positions in a step}}
    %6 = sched.all_reduce sum %5 over [] and positions [0, 1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    return
  }
  sched.schedule [#sched.action<forward chunk 0>, #sched.action<send chunk 0 peer 1>, #sched.action<receive chunk 0 peer 1>, #sched.action<backward chunk 0>, #sched.action<reduce chunk 0>, #sched.action<update chunk 0>]
}
sched.program @p1 position 1 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<send chunk 1 peer 2>, #sched.action<receive chunk 1 peer 2>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
sched.program @p2 position 2 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 2>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 2>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 2>} {
    %4 = train.constant dense<1.0> : tensor<f32>
    %5 = sched.all_reduce sum %4 over [] and positions [0, 1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 2>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 2 peer 1>, #sched.action<forward chunk 2>, #sched.action<backward chunk 2>, #sched.action<send chunk 2 peer 1>, #sched.action<reduce chunk 2>, #sched.action<update chunk 2>]
}
}

// -----

// A position that is not its own.
module attributes {sched.placement = #sched.placement<[0, 1, 2]>} {
sched.program @p0 position 0 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %5 = train.constant dense<1.0> : tensor<f32>
    // expected-error @below {{combines sum of tensor<f32> over [] and positions [1, 2], but stands in position 0}}
    %6 = sched.all_reduce sum %5 over [] and positions [1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    return
  }
  sched.schedule [#sched.action<forward chunk 0>, #sched.action<send chunk 0 peer 1>, #sched.action<receive chunk 0 peer 1>, #sched.action<backward chunk 0>, #sched.action<reduce chunk 0>, #sched.action<update chunk 0>]
}
sched.program @p1 position 1 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} {
    %4 = train.constant dense<1.0> : tensor<f32>
    %5 = sched.all_reduce sum %4 over [] and positions [1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<send chunk 1 peer 2>, #sched.action<receive chunk 1 peer 2>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
sched.program @p2 position 2 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 2>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 2>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 2>} {
    %4 = train.constant dense<1.0> : tensor<f32>
    %5 = sched.all_reduce sum %4 over [] and positions [1, 2] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 2>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 2 peer 1>, #sched.action<forward chunk 2>, #sched.action<backward chunk 2>, #sched.action<send chunk 2 peer 1>, #sched.action<reduce chunk 2>, #sched.action<update chunk 2>]
}
}

// -----

// Positions in no order.
module attributes {sched.placement = #sched.placement<[0, 1, 2]>} {
sched.program @p0 position 0 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %5 = train.constant dense<1.0> : tensor<f32>
    // expected-error @below {{combines sum of tensor<f32> over [] and positions [1, 0], but names must ascend from 0 to 2}}
    %6 = sched.all_reduce sum %5 over [] and positions [1, 0] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    return
  }
  sched.schedule [#sched.action<forward chunk 0>, #sched.action<send chunk 0 peer 1>, #sched.action<receive chunk 0 peer 1>, #sched.action<backward chunk 0>, #sched.action<reduce chunk 0>, #sched.action<update chunk 0>]
}
sched.program @p1 position 1 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<send chunk 1 peer 2>, #sched.action<receive chunk 1 peer 2>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
sched.program @p2 position 2 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 2>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 2>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 2>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 2>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 2 peer 1>, #sched.action<forward chunk 2>, #sched.action<backward chunk 2>, #sched.action<send chunk 2 peer 1>, #sched.action<reduce chunk 2>, #sched.action<update chunk 2>]
}
}

// -----

// A position that is none.
module attributes {sched.placement = #sched.placement<[0, 1, 2]>} {
sched.program @p0 position 0 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %5 = train.constant dense<1.0> : tensor<f32>
    // expected-error @below {{combines sum of tensor<f32> over [] and positions [0, 3], but names must ascend from 0 to 2}}
    %6 = sched.all_reduce sum %5 over [] and positions [0, 3] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    return
  }
  sched.schedule [#sched.action<forward chunk 0>, #sched.action<send chunk 0 peer 1>, #sched.action<receive chunk 0 peer 1>, #sched.action<backward chunk 0>, #sched.action<reduce chunk 0>, #sched.action<update chunk 0>]
}
sched.program @p1 position 1 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<send chunk 1 peer 2>, #sched.action<receive chunk 1 peer 2>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
sched.program @p2 position 2 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 2>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 2>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 2>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 2>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 2 peer 1>, #sched.action<forward chunk 2>, #sched.action<backward chunk 2>, #sched.action<send chunk 2 peer 1>, #sched.action<reduce chunk 2>, #sched.action<update chunk 2>]
}
}

// -----

// No position.
module attributes {sched.placement = #sched.placement<[0, 1, 2]>} {
sched.program @p0 position 0 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %5 = train.constant dense<1.0> : tensor<f32>
    // expected-error @below {{combines sum of tensor<f32> over [] and positions [], but names must ascend from 0 to 2}}
    %6 = sched.all_reduce sum %5 over [] and positions [] : (tensor<f32>) -> tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    return
  }
  sched.schedule [#sched.action<forward chunk 0>, #sched.action<send chunk 0 peer 1>, #sched.action<receive chunk 0 peer 1>, #sched.action<backward chunk 0>, #sched.action<reduce chunk 0>, #sched.action<update chunk 0>]
}
sched.program @p1 position 1 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<send chunk 1 peer 2>, #sched.action<receive chunk 1 peer 2>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
sched.program @p2 position 2 on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 2>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 2>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 2>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 2>} {
    return
  }
  sched.schedule [#sched.action<receive chunk 2 peer 1>, #sched.action<forward chunk 2>, #sched.action<backward chunk 2>, #sched.action<send chunk 2 peer 1>, #sched.action<reduce chunk 2>, #sched.action<update chunk 2>]
}
}
