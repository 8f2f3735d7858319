// RUN: windlass-opt %s -verify-diagnostics -split-input-file --sched-verify-async
// RUN: windlass-opt %S/../../Plan/Transforms/Inputs/mlp.mlir --plan-apply-strategy="ranks=8" --plan-materialize-layouts --plan-to-sched --sched-verify-async
// RUN: windlass-opt %S/../../Plan/Transforms/Inputs/mlp.mlir --plan-apply-strategy="ranks=1" --plan-materialize-layouts --plan-to-sched --sched-verify-async --sched-fuse-elementwise --sched-verify-async

// expected-error @below {{has no sched.program}}
module {}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{runs backward of chunk 0, of which there is no function}}
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

// Functions are found by role and chunk, whatever their symbols.
module {
sched.program @program on <[]> {
  func.func @update() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @forward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @a() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @b() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  // expected-error @below {{is of chunk 1, which position 0 does not run}}
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
// expected-error @below {{has no sched.schedule}}
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{reduces chunk 0 before the backward of micro-batch 0, at action 1}}
  sched.schedule [#sched.action<forward>, #sched.action<reduce>, #sched.action<backward>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{reduces chunk 0 before the backward of micro-batch 1, at action 3}}
  sched.schedule [#sched.action<repeat x 2 of 1>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

// A repeat in a repeat.
module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<repeat x 2 of 3>, #sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{runs weight_gradient of chunk 0, of which there is no function}}
  sched.schedule [#sched.action<forward>, #sched.action<repeat x 2 of 2>, #sched.action<input_gradient>, #sched.action<weight_gradient>]
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{has more than 4194304 actions}}
  sched.schedule [#sched.action<repeat x 100000000 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{does not reduce chunk 0 in 'forward backward'}}
  sched.schedule [#sched.action<forward>, #sched.action<backward>]
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  // expected-error @below {{takes another stash than the forward returns}}
  func.func @backward(%x: tensor<2xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() -> tensor<2xf32> attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func @backward(%x: tensor<2xf32>) -> tensor<2xf32> attributes {sched.step = #sched.step<backward, chunk 0>} { return %x : tensor<2xf32> }
  // expected-error @below {{takes other values than the forward and the backward return}}
  func.func @weight_gradient(%x: tensor<2xf32>) attributes {sched.step = #sched.step<weight_gradient, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<input_gradient>, #sched.action<weight_gradient>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @weight_gradient() attributes {sched.step = #sched.step<weight_gradient, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{runs a whole backward of chunk 0, but the chunk has two functions for it}}
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  // expected-error @below {{takes 1 values: only a backward takes any}}
  func.func @reduce(%x: tensor<2xf32>) attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  // expected-error @below {{is of type 'tensor<4xf32>', but its layout makes it 'tensor<2xf32>'}}
  sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4, ["a"]>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  // expected-error @below {{names axis "a" twice}}
  sched.resource master @x : tensor<1xf32> of tensor<4xf32> <[<[<4, ["a"]>]>] flat = ["a"]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  // expected-error @below {{is of type 'tensor<2xf32>', but its layout makes it 'tensor<3xf32>'}}
  sched.resource master @x : tensor<2xf32> of tensor<5x1xf32> <[<[<5>]>, <[<1>]>] flat = ["a"]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  // expected-error @below {{local type 'tensor<2xf32>' and global type 'tensor<4x1xf32>' differ in rank}}
  sched.resource master @x : tensor<2xf32> of tensor<4x1xf32> <[<[<4, ["a"]>]>, <[<1>]>]>
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  // expected-error @below {{names axis "b", which the mesh #plan.mesh<[<"a", 2>]> does not have}}
  sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4, ["b"]>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<4xf32> <[<[<4, ["a"]>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{does not belong to L4: reshards are collectives here}}
    %1 = plan.reshard %0 from <[<[<2>]>]> to <[<[<2>]>]> : tensor<2xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<4xf32> <[<[<4, ["a"]>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{still has "plan.strategy"}}
    %1 = train.exp %0 : tensor<2xf32> {plan.strategy = #plan.strategy<[]>}
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<4xf32> <[<[<4, ["a"]>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{but 2 members make 'tensor<4xf32>'}}
    %1 = sched.all_gather %0 dim 0 over ["a"] : tensor<2xf32> -> tensor<6xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<4xf32> <[<[<4, ["a"]>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{names axis "c", which the mesh #plan.mesh<[<"a", 2>]> does not have}}
    %1 = sched.all_reduce sum %0 over ["c"] : (tensor<2xf32>) -> tensor<2xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    // expected-error @below {{does not belong to L4}}
    %0 = sched.buffer @device_arena[0] : memref<4xf32>
    return
  }
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{does not belong to L4}}
  func.func @microbatch() { return }
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
  // expected-error @below {{stands beside another schedule}}
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{runs forward with chunk 1 of 1}}
  sched.schedule [#sched.action<forward chunk 1>]
}
}

// -----

module {
sched.program @program on <[<"a", 3>]> {
  // expected-error @below {{has a factor of size 4, which axis "a" does not divide evenly}}
  sched.resource input @x : tensor<1xf32> of tensor<4xf32> <[<[<4, ["a"]>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  // expected-error @below {{has an arena, which belongs to L5}}
  sched.resource input @x : tensor<2xf32> of tensor<4xf32> <[<[<4, ["a"]>]>]> {arena = @device_arena, offset = 0 : i64}
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{does not belong to L4}}
  sched.arena @device_arena device bytes 64
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  // expected-error @below {{is #sched.step<forward, chunk 0>, as is @forward}}
  func.func @again() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  // expected-error @below {{returns 1 values: only a forward returns any, and a backward in two parts}}
  func.func @update() -> tensor<2xf32> attributes {sched.step = #sched.step<update, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{names no axis}}
    %1 = sched.all_reduce sum %0 over [] : (tensor<2xf32>) -> tensor<2xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{names axis "a" twice}}
    %1 = sched.permute %0 to [0, 1, 2, 3] over ["a", "a"] : tensor<2xf32> -> tensor<2xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{names dim 1 of 'tensor<2xf32>'}}
    %1 = sched.all_gather %0 dim 1 over ["a"] : tensor<2xf32> -> tensor<4xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{names dim 1 of 'tensor<2xf32>'}}
    %1 = sched.own_part %0 dim 1 over ["a"] : tensor<2xf32> -> tensor<1xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2xf32>
    // expected-error @below {{splits and joins dim 0}}
    %1 = sched.all_to_all %0 split 0 concat 0 over ["a"] : tensor<2xf32> -> tensor<2xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<3xf32> of tensor<3xf32> <[<[<3>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<3xf32>
    // expected-error @below {{splits a dim of size 3 among 2 members}}
    %1 = sched.reduce_scatter %0 dim 0 over ["a"] : tensor<3xf32> -> tensor<1xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}

// -----

module {
sched.program @program on <[]> {
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
// expected-error @below {{does not belong to L4: a module has parameters and programs}}
func.func private @loose()
}

// -----

module {
sched.program @program on <[]> {
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]>
  sched.resource master @m : tensor<8xf32> of tensor<8xf32> <[<[<8>]>] memory = host>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.load @w : tensor<8xf32>
    %m = sched.load @m : tensor<8xf32>
    // expected-error @below {{has operands in memory of kind device and of kind host: bring them to one with sched.move}}
    %s = train.add %w, %m : tensor<8xf32>
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]>
  sched.resource master @m : tensor<8xf32> of tensor<8xf32> <[<[<8>]>] memory = disk>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %m = sched.load @m : tensor<8xf32>
    // expected-error @below {{reads memory of kind disk, where nothing computes: bring it to the host with sched.move}}
    %s = train.square_sum %m : tensor<8xf32> -> tensor<f32>
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]>
  sched.resource master @m : tensor<8xf32> of tensor<8xf32> <[<[<8>]>] memory = host>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.load @w : tensor<8xf32>
    %m = sched.load @m : tensor<8xf32>
    // expected-error @below {{writes a value in memory of kind host to @w, which is of kind device}}
    sched.store @w, %m : tensor<8xf32>
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]>
  sched.resource master @m : tensor<8xf32> of tensor<8xf32> <[<[<8>]>] memory = host>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.load @w : tensor<8xf32>
    %m = sched.load @m : tensor<8xf32>
    // expected-error @below {{moves a value in memory of kind device to kind device: values move between the device and the host, and between the host and the disk}}
    %s = sched.move %w to device : tensor<8xf32>
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]>
  sched.resource master @m : tensor<8xf32> of tensor<8xf32> <[<[<8>]>] memory = host>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.load @w : tensor<8xf32>
    %m = sched.load @m : tensor<8xf32>
    // expected-error @below {{reads memory of kind host, but runs on devices only}}
    %s = train.softmax %m : tensor<8xf32>
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  sched.resource parameter @w : tensor<8xf32> of tensor<8xf32> <[<[<8>]>]>
  sched.resource master @m : tensor<8xf32> of tensor<8xf32> <[<[<8>]>] memory = host>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.load @w : tensor<8xf32>
    %m = sched.load @m : tensor<8xf32>
    %h = sched.move %w to host : tensor<8xf32>
    sched.add_to @m, %h : tensor<8xf32>
    %q = train.square_sum %m : tensor<8xf32> -> tensor<f32>
    %p = train.accumulate %q, %q : tensor<f32>
    %s = train.add %h, %m : tensor<8xf32>
    %d = sched.move %s to device : tensor<8xf32>
    sched.store @w, %d : tensor<8xf32>
    sched.store @m, %s : tensor<8xf32>
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[<"a", 2>]> {
  sched.resource input @x : tensor<2x3xf32> of tensor<2x3xf32> <[<[<2>]>, <[<3>]>]>
  sched.resource input @choices : tensor<8x1xi64> of tensor<8x1xi64> <[<[<8>]>, <[<1>]>]>
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.load @x : tensor<2x3xf32>
    %1 = sched.load @choices : tensor<8x1xi64>
    // expected-error @below {{exchanges rows of 4 members, but there are 2}}
    %2 = sched.gather_rows %0 for %1 of 4 over ["a"] : (tensor<2x3xf32>, tensor<8x1xi64>) -> tensor<8x3xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}
}
