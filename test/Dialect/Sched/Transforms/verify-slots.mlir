// RUN: windlass-opt %s -split-input-file -verify-diagnostics -sched-verify-commands

// Slots are part of an arena of their own: what is in them belongs to their chunk, what is outside does not.

module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[128] count 3 bytes 128
  sched.stream @compute compute
  sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @slots, offset = 0 : i64}
  sched.resource gradient @g : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena, offset = 0 : i64}
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @slots[0] : memref<4xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @slots[64] : memref<4xf32> {sched.storage = 2 : i64}
    sched.launch softmax on @compute ins(%x) outs(%y) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %y = sched.buffer @slots[64] : memref<4xf32> {sched.storage = 2 : i64}
    %g = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 3 : i64}
    sched.launch copy on @compute ins(%y) outs(%g) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<forward>, #sched.action<forward>, #sched.action<repeat x 3 of 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

// The stash of another micro-batch would be at the same bytes of the arena.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[128] count 2 bytes 128
  sched.stream @compute compute
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %y = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
    sched.launch fill on @compute ins() outs(%y) {value = 1.0 : f64} : () -> memref<4xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %y = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
    %z = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 3 : i64}
    // expected-error @below {{reads byte 64 before it is written, in @device_arena}}
    sched.launch copy on @compute ins(%y) outs(%z) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
}
}

// -----

module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[0] count 2 bytes 128
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{keeps 3 micro-batches of chunk 0 in flight, but the chunk has 2 slots}}
  sched.schedule [#sched.action<forward>, #sched.action<forward>, #sched.action<forward>, #sched.action<repeat x 3 of 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

// What a backward hands to its weight gradient has slots of its own, as many as wait for theirs.

module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 1024
  sched.slots @slots chunk 0 in @device_arena[128] count 2 bytes 128
  sched.slots @handed handed chunk 0 in @device_arena[384] count 2 bytes 64
  sched.stream @compute compute
  sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @slots, offset = 0 : i64}
  sched.resource gradient @g : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena, offset = 0 : i64}
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @slots[0] : memref<4xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @handed[0] : memref<4xf32> {sched.storage = 2 : i64}
    sched.launch softmax on @compute ins(%x) outs(%y) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func @weight_gradient() attributes {sched.step = #sched.step<weight_gradient, chunk 0>} {
    %y = sched.buffer @handed[0] : memref<4xf32> {sched.storage = 2 : i64}
    %g = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 3 : i64}
    sched.launch copy on @compute ins(%y) outs(%g) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<forward>, #sched.action<input_gradient>, #sched.action<input_gradient>, #sched.action<weight_gradient>, #sched.action<weight_gradient>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 1024
  sched.slots @slots chunk 0 in @device_arena[128] count 2 bytes 128
  sched.slots @handed handed chunk 0 in @device_arena[384] count 1 bytes 64
  sched.stream @compute compute
  sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @slots, offset = 0 : i64}
  sched.resource gradient @g : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena, offset = 0 : i64}
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @slots[0] : memref<4xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @handed[0] : memref<4xf32> {sched.storage = 2 : i64}
    sched.launch softmax on @compute ins(%x) outs(%y) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func @weight_gradient() attributes {sched.step = #sched.step<weight_gradient, chunk 0>} {
    %y = sched.buffer @handed[0] : memref<4xf32> {sched.storage = 2 : i64}
    %g = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 3 : i64}
    sched.launch copy on @compute ins(%y) outs(%g) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  // expected-error @below {{hands on 2 backwards of chunk 0 at a time, but @handed has room for 1}}
  sched.schedule [#sched.action<forward>, #sched.action<forward>, #sched.action<input_gradient>, #sched.action<input_gradient>, #sched.action<weight_gradient>, #sched.action<weight_gradient>, #sched.action<reduce>, #sched.action<update>]
}
}

// -----

module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 1024
  sched.slots @slots chunk 0 in @device_arena[128] count 2 bytes 128
  sched.slots @handed handed chunk 0 in @device_arena[384] count 2 bytes 64
  sched.stream @compute compute
  sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @slots, offset = 0 : i64}
  sched.resource gradient @g : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena, offset = 0 : i64}
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    // expected-error @below {{is in @handed, which only backwards and weight gradients have}}
    %y = sched.buffer @handed[0] : memref<4xf32> {sched.storage = 2 : i64}
    return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @slots[0] : memref<4xf32> {sched.storage = 1 : i64}
    %y = sched.buffer @handed[0] : memref<4xf32> {sched.storage = 2 : i64}
    sched.launch softmax on @compute ins(%x) outs(%y) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func @weight_gradient() attributes {sched.step = #sched.step<weight_gradient, chunk 0>} {
    %y = sched.buffer @handed[0] : memref<4xf32> {sched.storage = 2 : i64}
    %g = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 3 : i64}
    sched.launch copy on @compute ins(%y) outs(%g) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<forward>, #sched.action<input_gradient>, #sched.action<input_gradient>, #sched.action<weight_gradient>, #sched.action<weight_gradient>, #sched.action<reduce>, #sched.action<update>]
}
}
// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  // expected-error @below {{ends at byte 640 but @device_arena has 512}}
  sched.slots @slots chunk 0 in @device_arena[0] count 5 bytes 128
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @first chunk 0 in @device_arena[0] count 2 bytes 128
  // expected-error @below {{overlaps @first}}
  sched.slots @second chunk 1 in @device_arena[192] count 2 bytes 128
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @first chunk 0 in @device_arena[0] count 1 bytes 128
  // expected-error @below {{is of chunk 0, as is @first}}
  sched.slots @second chunk 0 in @device_arena[128] count 1 bytes 128
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[0] count 2 bytes 128
  // expected-error @below {{overlaps the slots @slots, which it does not name as its arena}}
  sched.resource parameter @w : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena, offset = 64 : i64}
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[0] count 2 bytes 128
  // expected-error @below {{is in @device_arena, but belongs to the slots @slots}}
  sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena, offset = 256 : i64}
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[0] count 2 bytes 128
  // expected-error @below {{is in @slots, but exists once, outside slots}}
  sched.resource parameter @w : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @slots, offset = 0 : i64}
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[0] count 2 bytes 128
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    // expected-error @below {{ends at byte 144 but @slots has 128}}
    %y = sched.buffer @slots[128] : memref<4xf32>
    return
  }
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[0] count 2 bytes 128
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    // expected-error @below {{is in the slots of chunk 0, which only its forward, backward and evaluate have}}
    %y = sched.buffer @slots[0] : memref<4xf32>
    return
  }
}

// -----

module attributes {sched.placement = #sched.placement<[0, 0]>} {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 512
  sched.slots @slots chunk 0 in @device_arena[0] count 2 bytes 128
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} {
    // expected-error @below {{is in the slots of chunk 0, which only its forward, backward and evaluate have}}
    %y = sched.buffer @slots[0] : memref<4xf32>
    return
  }
}
}
