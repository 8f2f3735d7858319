// RUN: windlass-opt %s -split-input-file -verify-diagnostics --sched-verify-async

// Two chunks on two positions, two micro-batches in flight on the first.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Programs stand in the order of positions.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
// expected-error @below {{is of position 2, but is number 1 of the programs, which stand in the order of positions}}
sched.program @second position 2 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Each position has a program.
// expected-error @below {{has no placement of its 2 programs}}
module attributes {sched.placement = #sched.placement<[0, 2]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// A peer is a neighbour.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  // expected-error @below {{names peer 3, which is no neighbour of chunk 0}}
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 3 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Inputs are of a chunk of the position.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  // expected-error @below {{is of chunk 1, which position 0 does not run}}
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64}
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// The backward takes inputs from its slot.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    // expected-error @below {{loads @x, a resource of kind input, in a backward}}
    %again = sched.load @x : tensor<2xf32>
    %p = train.mul %d, %again : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// A gradient is received for the backward.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    // expected-error @below {{loads @d_out, a resource of kind received with that peer, in a forward}}
    %x = sched.load @d_out : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// What is sent is written only.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    // expected-error @below {{loads @out, a resource of kind sent with that peer, in a backward}}
    %d = sched.load @out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// The backward writes gradients only.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    // expected-error @below {{writes @out, a resource of kind sent with that peer, in a backward}}
    sched.store @out, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Each value sent is received.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  // expected-error @below {{is sent to chunk 1, which receives 0 values}}
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource input @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Each value received is sent.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource gradient @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  // expected-error @below {{is received from chunk 0, which sends 0 values}}
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Each send has a receive.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{position 0 receives the gradient of micro-batch 1 from chunk 1 to chunk 0, which position 1 never sends, at action 6}}
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 3>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Messages need no buffer.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{never ends: position 0 waits for position 1 to receive the activation of micro-batch 1 from chunk 0 to chunk 1, at action 3; position 1 waits for position 0 to receive the gradient of micro-batch 0 from chunk 1 to chunk 0, at action 3}}
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<send peer 1>, #sched.action<repeat x 2 of 2>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Both sides have one type.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  // expected-error @below {{has type 'tensor<2xf32>' but @in of chunk 1 has 'tensor<3xf32>'}}
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<3xf32> of tensor<3xf32> <[<[<3>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %z = sched.load @in : tensor<3xf32>
    %y = train.slice %z from [0] sizes [2] : tensor<3xf32> -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Both sides have one layout.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[<"data", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  // expected-error-re @below {{has layout {{.*}} but @in of chunk 1 has {{.*}}: a value has one layout on both sides of a border}}
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[<"data", 2>]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>], unreduced = [<"data", sum>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Neighbours on one position hand values over without messages.
module attributes {sched.placement = #sched.placement<[0, 0, 1]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  // expected-error @below {{names peer 1, which is on the position of chunk 0 too}}
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// A function uses what is of its chunk.
module attributes {sched.placement = #sched.placement<[0, 1, 0]>} {
sched.program @first on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 2 : i64}
  sched.resource sent @out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource received @d_out : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {peer = 1 : i64}
  sched.resource gradient @g : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    // expected-error @below {{uses @x of chunk 2 in a function of chunk 0}}
    %x = sched.load @x : tensor<2xf32>
    sched.store @out, %x : tensor<2xf32>
    return %x : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.load @d_out : tensor<2xf32>
    %p = train.mul %d, %x : tensor<2xf32>
    sched.add_to @g, %p : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<forward>, #sched.action<receive peer 1>, #sched.action<send peer 1>, #sched.action<backward>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.resource received @in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  sched.resource sent @d_in : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]> {chunk = 1 : i64, peer = 0 : i64}
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 1>} {
    %y = sched.load @in : tensor<2xf32>
    return %y : tensor<2xf32>
  }
  func.func @backward(%y: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 1>} {
    sched.store @d_in, %y : tensor<2xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 2 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}
