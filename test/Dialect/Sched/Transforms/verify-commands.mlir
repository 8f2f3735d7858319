// RUN: windlass-opt %s -split-input-file -verify-diagnostics -sched-verify-commands="memory-limit=4096 host-memory-limit=8192"

sched.program @program on <[]> {
// Two values share bytes one after the other; a softmax runs in place.
sched.arena @device_arena device bytes 256
sched.stream @compute compute
sched.resource evaluate @e : tensor<f32> of tensor<f32> #plan.layout<[]> {arena = @device_arena, offset = 0 : i64}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  %e = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 3 : i64}
  sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
  sched.launch softmax on @compute ins(%a) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  sched.launch reduce on @compute ins(%a) outs(%e) {} : (memref<4xf32>) -> memref<f32>
  sched.launch fill on @compute ins() outs(%b) {value = 1.0 : f64} : () -> memref<4xf32>
  sched.launch reduce on @compute ins(%b) outs(%e) {} : (memref<4xf32>) -> memref<f32>
  return
}
}

// -----

module {
// expected-error @below {{needs 8192 bytes of device memory but the limit is 4096: use more ranks, a smaller micro-batch or a larger --memory-limit}}
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 8192
}
}

// -----

// expected-error @below {{has no arena of kind device}}
sched.program @program on <[]> {}

// -----

// expected-error @below {{has no sched.program}}
module {}

// -----

module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 256
}
// expected-error @below {{does not belong to the level of commands}}
func.func private @forward()
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{is no command: it must be lowered before}}
  %x = train.constant dense<1.0> : tensor<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
// expected-error @below {{must be one block without arguments and results at the level of commands}}
func.func @evaluate(%x: tensor<f32>) attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.resource parameter @a : tensor<32xf32> of tensor<32xf32> #plan.layout<[#plan.dim<[#plan.factor<32>]>]> {arena = @device_arena, offset = 0 : i64}
// expected-error @below {{overlaps @a}}
sched.resource parameter @b : tensor<32xf32> of tensor<32xf32> #plan.layout<[#plan.dim<[#plan.factor<32>]>]> {arena = @device_arena, offset = 64 : i64}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
// expected-error @below {{is placed in no arena}}
sched.resource parameter @a : tensor<32xf32> of tensor<32xf32> #plan.layout<[#plan.dim<[#plan.factor<32>]>]>
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 64
// expected-error @below {{ends at byte 128 but @device_arena has 64}}
sched.resource parameter @a : tensor<32xf32> of tensor<32xf32> #plan.layout<[#plan.dim<[#plan.factor<32>]>]> {arena = @device_arena, offset = 0 : i64}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 64
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{ends at byte 80 but @device_arena has 64}}
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 64
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{starts at byte 2, which is no multiple of its element's 4}}
  %a = sched.buffer @device_arena[2] : memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  // expected-error @below {{reads byte 0 before it is written}}
  sched.launch copy on @compute ins(%a) outs(%b) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @device_arena[8] : memref<4xf32> {sched.storage = 2 : i64}
  %c = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 3 : i64}
  sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
  sched.launch fill on @compute ins() outs(%b) {value = 1.0 : f64} : () -> memref<4xf32>
  // expected-error @below {{reads byte 8 of value 1 after value 2 overwrote it}}
  sched.launch copy on @compute ins(%a) outs(%c) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// A matrix product may not work in place, whatever the window.
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<2x2xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @device_arena[64] : memref<2x2xf32> {sched.storage = 2 : i64}
  %t = sched.buffer @device_arena[0] : memref<2x2xf32, strided<[1, 2]>> {sched.storage = 1 : i64}
  sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<2x2xf32>
  sched.launch fill on @compute ins() outs(%b) {value = 1.0 : f64} : () -> memref<2x2xf32>
  // expected-error @below {{writes over its operand 0, which it may not do in place}}
  sched.launch matmul on @compute ins(%a, %b) outs(%t) {batch_rank = 0 : i64, contract_rank = 1 : i64} : (memref<2x2xf32>, memref<2x2xf32>) -> memref<2x2xf32, strided<[1, 2]>>
  return
}
}

// -----

sched.program @program on <[]> {
// The stash lives from forward to backward; a transient does not live from backward to update.
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
  return
}
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  sched.launch copy on @compute ins(%a) outs(%b) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
  %b = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  %c = sched.buffer @device_arena[128] : memref<4xf32> {sched.storage = 3 : i64}
  // expected-error @below {{reads byte 64 before it is written}}
  sched.launch copy on @compute ins(%b) outs(%c) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

// A collective that does not wait for what it reduces.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
    // expected-error @below {{reads byte 0 without waiting for its write on stream 0}}
    sched.launch_collective all_reduce sum @c, %a -> %a : memref<4xf32> -> memref<4xf32>
    return
  }
}
}

// -----

// A collective of two pairs that fills some bytes twice.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
    %b = sched.buffer @device_arena[16] : memref<2xf32> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[64] : memref<8xf32> {sched.storage = 3 : i64}
    %d = sched.buffer @device_arena[96] : memref<4xf32> {sched.storage = 4 : i64}
    %over_c = sched.buffer @device_arena[80] : memref<4xf32> {sched.storage = 5 : i64}
    %over_a = sched.buffer @device_arena[8] : memref<4xf32> {sched.storage = 6 : i64}
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.launch fill on @compute ins() outs(%b) {value = 1.0 : f64} : () -> memref<2xf32>
    sched.record 0 on @compute
    sched.wait 0 on @over_data
    // expected-error @below {{writes results 0 and 1 to the same bytes}}
    sched.launch_collective all_gather sum @c, %a, %b -> %c, %over_c : memref<4xf32>, memref<2xf32> -> memref<8xf32>, memref<4xf32>
    return
  }
}
}

// -----

// One pair fills what the other reads.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
    %b = sched.buffer @device_arena[16] : memref<2xf32> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[64] : memref<8xf32> {sched.storage = 3 : i64}
    %d = sched.buffer @device_arena[96] : memref<4xf32> {sched.storage = 4 : i64}
    %over_c = sched.buffer @device_arena[80] : memref<4xf32> {sched.storage = 5 : i64}
    %over_a = sched.buffer @device_arena[8] : memref<4xf32> {sched.storage = 6 : i64}
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.launch fill on @compute ins() outs(%b) {value = 1.0 : f64} : () -> memref<2xf32>
    sched.record 0 on @compute
    sched.wait 0 on @over_data
    // expected-error @below {{writes over its operand 0, which it may not do in place}}
    sched.launch_collective all_gather sum @c, %a, %b -> %c, %over_a : memref<4xf32>, memref<2xf32> -> memref<8xf32>, memref<4xf32>
    return
  }
}
}

// -----

// A pair whose whole is not that of two members.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
    %b = sched.buffer @device_arena[16] : memref<2xf32> {sched.storage = 2 : i64}
    %c = sched.buffer @device_arena[64] : memref<8xf32> {sched.storage = 3 : i64}
    %d = sched.buffer @device_arena[96] : memref<4xf32> {sched.storage = 4 : i64}
    %e = sched.buffer @device_arena[128] : memref<8xf32> {sched.storage = 5 : i64}
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.launch fill on @compute ins() outs(%b) {value = 1.0 : f64} : () -> memref<2xf32>
    sched.record 0 on @compute
    sched.wait 0 on @over_data
    // expected-error @below {{makes 'memref<8xf32>' of 'memref<2xf32>' among 2 members}}
    sched.launch_collective all_gather sum @c, %a, %b -> %c, %e : memref<4xf32>, memref<2xf32> -> memref<8xf32>, memref<8xf32>
    return
  }
}
}

// -----

// An exchange of rows as of four members among two; all ranks have their buffers at the same places.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.arena @device_arena device bytes 1024
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %part = sched.buffer @device_arena[0] : memref<1x4xf32> {sched.storage = 1 : i64}
    %choices = sched.buffer @device_arena[64] : memref<4x1xi64> {sched.storage = 2 : i64}
    %all = sched.buffer @device_arena[128] : memref<4x4xf32> {sched.storage = 3 : i64}
    %scratch = sched.buffer @device_arena[256] : memref<64xf32> {sched.storage = 4 : i64}
    sched.launch fill on @compute ins() outs(%part) {value = 1.0 : f64} : () -> memref<1x4xf32>
    sched.launch fill on @compute ins() outs(%choices) {value = 1.0 : f64} : () -> memref<4x1xi64>
    sched.record 0 on @compute
    sched.wait 0 on @over_data
    // expected-error @below {{makes 4 rows of 1 among 2 members}}
    sched.launch_collective gather_rows sum @c, %part, %choices -> %all, %scratch experts 4 : memref<1x4xf32>, memref<4x1xi64> -> memref<4x4xf32>, memref<64xf32>
    return
  }
}
}

// -----

// A reader that does not wait for the collective.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.record 0 on @compute
    sched.wait 0 on @over_data
    sched.launch_collective all_reduce sum @c, %a -> %a : memref<4xf32> -> memref<4xf32>
    sched.record 1 on @over_data
    // expected-error @below {{reads byte 0 without waiting for its write on stream 1}}
    sched.launch softmax on @compute ins(%a) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{waits for event 3, which nothing has recorded}}
  sched.wait 3 on @compute
  return
}
}

// -----

module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_model communicator
  // expected-error @below {{names axis 'model', which the mesh does not have}}
  sched.communicator @c over ["model"] on @over_model
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
    sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.record 0 on @compute
    sched.wait 0 on @over_model
    sched.launch_collective all_reduce sum @c, %a -> %a : memref<4xf32> -> memref<4xf32>
    return
  }
}
}

// -----

sched.program @program on <[]> {
// An optimizer step works in place on weight and state, and may write the weight in 16 bits beside.
sched.arena @device_arena device bytes 512
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %w = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  %m = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  %g = sched.buffer @device_arena[128] : memref<4xf32> {sched.storage = 3 : i64}
  %s = sched.buffer @device_arena[192] : memref<f32> {sched.storage = 4 : i64}
  %h = sched.buffer @device_arena[256] : memref<4xbf16> {sched.storage = 5 : i64}
  sched.launch fill on @compute ins() outs(%w) {value = 1.0 : f64} : () -> memref<4xf32>
  sched.launch fill on @compute ins() outs(%m) {value = 1.0 : f64} : () -> memref<4xf32>
  sched.launch fill on @compute ins() outs(%g) {value = 1.0 : f64} : () -> memref<4xf32>
  sched.launch fill on @compute ins() outs(%s) {value = 1.0 : f64} : () -> memref<f32>
  sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m, %h) {} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xbf16>)
  // expected-error @below {{writes over its operand 2, which it may not do in place}}
  sched.launch sgd on @compute ins(%w, %m, %g, %s, %s, %s, %s) outs(%w, %m, %g) {} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
// A norm may write the sum and its result over terms, of whatever value, but no statistics; its gradient goes over what is
// added to it, and later micro-batches add to its parameters' gradients only.
sched.arena @device_arena device bytes 1024
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 2 : i64}
  %y = sched.buffer @device_arena[128] : memref<4x8xf32> {sched.storage = 3 : i64}
  %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 4 : i64}
  %r = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 5 : i64}
  %d = sched.buffer @device_arena[384] : memref<8xf32> {sched.storage = 6 : i64}
  %over = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 7 : i64}
  %z = sched.buffer @device_arena[448] : memref<4x8xf32> {sched.storage = 8 : i64}
  sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4x8xf32>
  sched.launch fill on @compute ins() outs(%b) {value = 1.0 : f64} : () -> memref<4x8xf32>
  sched.launch fill on @compute ins() outs(%s) {value = 1.0 : f64} : () -> memref<8xf32>
  sched.launch add_rms_norm on @compute ins(%a, %b, %s) outs(%a, %y, %r) {epsilon = 1.0e-5 : f64, terms = 2 : i64} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>, memref<4xf32>)
  sched.launch rms_norm_grad on @compute ins(%y, %y, %s, %r, %a) outs(%a, %d) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4x8xf32>) -> (memref<4x8xf32>, memref<8xf32>)
  sched.launch rms_norm_grad on @compute ins(%y, %y, %s, %r, %a) outs(%a, %d) {} accumulate : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>, memref<4x8xf32>) -> (memref<4x8xf32>, memref<8xf32>)
  // expected-error @below {{writes over its operand 0, which it may not do in place}}
  sched.launch add_rms_norm on @compute ins(%a, %y, %s) outs(%z, %b, %over) {epsilon = 1.0e-5 : f64, terms = 2 : i64} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>) -> (memref<4x8xf32>, memref<4x8xf32>, memref<4xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 1024
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 1 : i64}
  %s = sched.buffer @device_arena[256] : memref<8xf32> {sched.storage = 4 : i64}
  %r = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 5 : i64}
  %d = sched.buffer @device_arena[384] : memref<8xf32> {sched.storage = 6 : i64}
  sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4x8xf32>
  sched.launch fill on @compute ins() outs(%s) {value = 1.0 : f64} : () -> memref<8xf32>
  sched.launch fill on @compute ins() outs(%r) {value = 1.0 : f64} : () -> memref<4xf32>
  // expected-error @below {{writes over its operand 0, which it may not do in place}}
  sched.launch rms_norm_grad on @compute ins(%a, %a, %s, %r) outs(%a, %d) {} : (memref<4x8xf32>, memref<4x8xf32>, memref<8xf32>, memref<4xf32>) -> (memref<4x8xf32>, memref<8xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.resource parameter @a : tensor<32xf32> of tensor<32xf32> <[<[<32>]>]> {arena = @device_arena, offset = 0 : i64}
// expected-error @below {{overlaps @a}}
sched.resource parameter @b : tensor<32xf32> of tensor<32xf32> <[<[<32>]>]> {arena = @device_arena, offset = 0 : i64}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.resource parameter @a : tensor<32xf32> of tensor<32xf32> <[<[<32>]>]> {arena = @device_arena, offset = 64 : i64}
// expected-error @below {{overlaps @a}}
sched.resource parameter @b : tensor<32xf32> of tensor<32xf32> <[<[<32>]>]> {arena = @device_arena, offset = 0 : i64}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
// expected-error @below {{does not belong to the level of commands}}
builtin.module @inner {}
}

// -----

sched.program @program on <[]> {
// A function of a step has a body.
sched.arena @device_arena device bytes 256
// expected-error @below {{must be one block without arguments and results at the level of commands}}
func.func private @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{has type 'memref<?xf32>': shape and strides must be static, strides not negative}}
  %a = sched.buffer @device_arena[0] : memref<?xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{has type 'memref<4xf32, strided<[-1]>>': shape and strides must be static, strides not negative}}
  %a = sched.buffer @device_arena[0] : memref<4xf32, strided<[-1]>>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{has 9 dims but the runtime's views have at most 8}}
  %a = sched.buffer @device_arena[0] : memref<1x1x1x1x1x1x1x1x1xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @device_arena[8] : memref<2xf32> {sched.storage = 1 : i64}
  %x = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  sched.launch fill on @compute ins() outs(%x) {value = 1.0 : f64} : () -> memref<4xf32>
  // expected-error @below {{writes results 0 and 1 to the same bytes}}
  sched.launch rms_norm on @compute ins(%x, %x) outs(%a, %b) {epsilon = 1.0e-5 : f64} : (memref<4xf32>, memref<4xf32>) -> (memref<4xf32>, memref<2xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.resource parameter @a : tensor<32xf32> of tensor<32xf32> <[<[<32>]>]> {arena = @device_arena, offset = 0 : i64}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  // expected-error @below {{of value 2 touches @a, which is value 1}}
  %b = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
// expected-error @below {{runs reduce of chunk 0, of which there is no function}}
sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
// expected-error @below {{runs the backward of micro-batch 1 of chunk 0 before its forward, at action 2}}
sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<backward>, #sched.action<forward>, #sched.action<reduce>, #sched.action<update>]
}

// -----

// What the last backward begins, the reduction waits for; a copy that it has made lives until then.
module {
sched.program @program on <[#plan.axis<"data", 2>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  sched.resource gradient @g : tensor<4xf32> of tensor<4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>]> {arena = @device_arena, offset = 0 : i64}
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %g = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
    %c = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
    sched.launch fill on @compute ins() outs(%g) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.launch copy on @compute ins(%g) outs(%c) {} {sched.in_last} : (memref<4xf32>) -> memref<4xf32>
    sched.record 0 on @compute {sched.in_last}
    sched.wait 0 on @over_data {sched.in_last}
    sched.launch_collective all_reduce sum @c, %c -> %c {sched.in_last} : memref<4xf32> -> memref<4xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %g = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
    %c = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
    sched.record 1 on @over_data
    sched.wait 1 on @compute
    sched.launch copy on @compute ins(%c) outs(%g) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
}
}

// -----

// The same where the other backwards do not write what all of them read.
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %c = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
    %d = sched.buffer @device_arena[128] : memref<4xf32> {sched.storage = 3 : i64}
    sched.launch fill on @compute ins() outs(%c) {value = 1.0 : f64} {sched.in_last} : () -> memref<4xf32>
    // expected-error @below {{reads byte 64 before it is written}}
    sched.launch copy on @compute ins(%c) outs(%d) {} : (memref<4xf32>) -> memref<4xf32>
    return
  }
}
}

// -----

sched.program @program on <[]> {
func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
// expected-error @below {{is #sched.step<update, chunk 0>, as is @update}}
func.func @again() attributes {sched.step = #sched.step<update, chunk 0>} { return }
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
  // expected-error @below {{is marked sched.in_last outside of the end of a backward}}
  sched.record 0 on @compute {sched.in_last}
  return
}
}

// -----

sched.program @program on <[]> {
// Two arenas, with the same offsets for resources, for values that live at one time, and for an operand and a result of
// one command. Copies move what one arena holds to the other one, and what lies outside of the device's is computed with
// by the host; events order all of them.
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 8192
sched.stream @compute compute
sched.stream @fetch h2d
sched.stream @flush d2h
sched.stream @host host
sched.resource evaluate @e : tensor<f32> of tensor<f32> #plan.layout<[]> {arena = @device_arena, offset = 0 : i64}
sched.resource state @m : tensor<4xf32> of tensor<4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>]> {arena = @host_arena, offset = 0 : i64}
func.func private @twice(%x: f32) -> f32 attributes {sched.scalar_function} {
  %0 = train.add %x, %x : f32
  return %0 : f32
}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %m = sched.buffer @host_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  %a = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  %b = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 3 : i64}
  %e = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 4 : i64}
  sched.launch copy on @fetch ins(%m) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  sched.record 0 on @fetch
  sched.wait 0 on @compute
  sched.wait 0 on @flush
  sched.launch reduce on @compute ins(%a) outs(%e) {} : (memref<4xf32>) -> memref<f32>
  sched.launch copy on @flush ins(%a) outs(%b) {} : (memref<4xf32>) -> memref<4xf32>
  sched.record 1 on @flush
  sched.wait 1 on @host
  sched.launch_map @twice on @host ins(%b) outs(%b) : (memref<4xf32>) -> memref<4xf32>
  sched.launch_map @twice on @host ins(%b) outs(%m) : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// The same without the event that orders the copy back behind the first.
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 8192
sched.stream @fetch h2d
sched.stream @flush d2h
sched.resource state @m : tensor<4xf32> of tensor<4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>]> {arena = @host_arena, offset = 0 : i64}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %m = sched.buffer @host_arena[0] : memref<4xf32> {sched.storage = 1 : i64}
  %a = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  %b = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 3 : i64}
  sched.launch copy on @fetch ins(%m) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  // expected-error @below {{reads byte 64 without waiting for its write on stream 0}}
  sched.launch copy on @flush ins(%a) outs(%b) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// The other arena holds nothing at that offset.
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 256
sched.stream @compute compute
sched.stream @fetch h2d
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
  %c = sched.buffer @device_arena[128] : memref<4xf32> {sched.storage = 2 : i64}
  sched.launch fill on @compute ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
  // expected-error @below {{reads byte 64 before it is written, in @host_arena}}
  sched.launch copy on @fetch ins(%b) outs(%c) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// What a stream's commands may read and write.
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 256
sched.stream @compute compute
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %b = sched.buffer @host_arena[64] : memref<4xf32>
  // expected-error @below {{reads @host_arena, of kind host, but on a stream of kind compute commands read memory of kind device}}
  sched.launch copy on @compute ins(%b) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 256
sched.stream @fetch h2d
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %b = sched.buffer @host_arena[64] : memref<4xf32>
  // expected-error @below {{reads @device_arena, of kind device, but on a stream of kind h2d commands read memory of kind host}}
  sched.launch copy on @fetch ins(%a) outs(%b) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 256
sched.stream @flush d2h
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %b = sched.buffer @device_arena[128] : memref<4xf32>
  // expected-error @below {{writes @device_arena, of kind device, but on a stream of kind d2h commands write memory of kind host}}
  sched.launch copy on @flush ins(%a) outs(%b) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @host host
func.func private @one() -> f32 attributes {sched.scalar_function} {
  %0 = arith.constant 1.0 : f32
  return %0 : f32
}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  // expected-error @below {{writes @device_arena, of kind device, but on a stream of kind host commands write memory of kind host}}
  sched.launch_map @one on @host ins() outs(%a) : () -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 256
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %b = sched.buffer @host_arena[64] : memref<4xf32>
  // expected-error @below {{reads @host_arena, of kind host, but on a stream of kind communicator commands read memory of kind device}}
  sched.launch_collective all_reduce sum @c, %b -> %b : memref<4xf32> -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
// expected-error @below {{is a second stream of kind compute}}
sched.stream @other compute
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @over_data communicator
sched.communicator @a over ["data"] on @over_data
// expected-error @below {{runs on @over_data, the stream of @a}}
sched.communicator @b over ["data"] on @over_data
}

// -----

sched.program @program on <[]> {
// Transients of every arena are forgotten.
sched.arena @device_arena device bytes 256
sched.stream @host host
sched.stream @fetch h2d
sched.arena @host_arena host bytes 256
func.func private @one() -> f32 attributes {sched.scalar_function} {
  %0 = arith.constant 1.0 : f32
  return %0 : f32
}
func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
  %b = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
  sched.launch_map @one on @host ins() outs(%b) : () -> memref<4xf32>
  return
}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %b = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
  %c = sched.buffer @device_arena[128] : memref<4xf32> {sched.storage = 2 : i64}
  // expected-error @below {{reads byte 64 before it is written, in @host_arena}}
  sched.launch copy on @fetch ins(%b) outs(%c) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @host host
sched.stream @fetch h2d
sched.arena @host_arena host bytes 256
func.func private @one() -> f32 attributes {sched.scalar_function} {
  %0 = arith.constant 1.0 : f32
  return %0 : f32
}
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
  %b = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 2 : i64}
  %c = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 3 : i64}
  sched.launch_map @one on @host ins() outs(%a) : () -> memref<4xf32>
  sched.launch_map @one on @host ins() outs(%b) : () -> memref<4xf32>
  sched.record 0 on @host
  sched.wait 0 on @fetch
  // expected-error @below {{reads byte 64 of value 1 after value 2 overwrote it, in @host_arena}}
  sched.launch copy on @fetch ins(%a) outs(%c) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 64
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{ends at byte 80 but @host_arena has 64}}
  %a = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  // expected-error @below {{lies in @host_arena, which is no arena of the program}}
  %a = sched.buffer @host_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 256
sched.resource state @a : tensor<4xf32> of tensor<4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>]> {arena = @host_arena, offset = 0 : i64}
// expected-error @below {{overlaps @a}}
sched.resource state @b : tensor<4xf32> of tensor<4xf32> #plan.layout<[#plan.dim<[#plan.factor<4>]>]> {arena = @host_arena, offset = 8 : i64}
}

// -----

// Each kind of memory has a limit of its own, and no sum over arenas counts.
// expected-error @below {{needs 16384 bytes of host memory but the limit is 8192: use more ranks, a smaller micro-batch or a larger limit}}
sched.program @program on <[]> {
sched.arena @device_arena device bytes 4096
sched.arena @host_arena host bytes 16384
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 256
// expected-error @below {{is a second arena of kind host}}
sched.arena @more_host_memory host bytes 256
}

// -----

sched.program @program on <[]> {
// What is read from a disk arrives on the host.
sched.arena @device_arena device bytes 256
sched.arena @file disk bytes 256
sched.stream @read disk_read
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @device_arena[64] : memref<4xf32>
  %b = sched.buffer @file[64] : memref<4xf32>
  // expected-error @below {{writes @device_arena, of kind device, but on a stream of kind disk_read commands write memory of kind host}}
  sched.launch copy on @read ins(%b) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.arena @host_arena host bytes 256
sched.arena @file disk bytes 256
sched.stream @write disk_write
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %a = sched.buffer @host_arena[64] : memref<4xf32>
  %b = sched.buffer @file[64] : memref<4xf32>
  // expected-error @below {{reads @file, of kind disk, but on a stream of kind disk_write commands read memory of kind host}}
  sched.launch copy on @write ins(%b) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

// Names of arenas mean nothing.
sched.program @program on <[]> {
sched.arena @a host bytes 256
sched.arena @b device bytes 256
sched.stream @compute compute
sched.stream @flush d2h
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  %b = sched.buffer @b[64] : memref<4xf32> {sched.storage = 1 : i64}
  %a = sched.buffer @a[64] : memref<4xf32> {sched.storage = 2 : i64}
  sched.launch fill on @compute ins() outs(%b) {value = 1.0 : f64} : () -> memref<4xf32>
  sched.record 0 on @compute
  sched.wait 0 on @flush
  sched.launch copy on @flush ins(%b) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.arena @device_arena device bytes 256
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
// expected-error @below {{has no sched.schedule}}
sched.program @second position 1 on <[]> {
  sched.arena @device_arena device bytes 256
}
}

// -----

// A wait for the first record that a queue still holds would end at the second.
sched.program @program on <[]> {
sched.arena @device_arena device bytes 256
sched.stream @compute compute
sched.stream @h2d h2d
func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
  sched.record 0 on @h2d
  sched.wait 0 on @compute
  // expected-error @below {{of event 0 is on @compute, but another is on @h2d: give each stream its own events}}
  sched.record 0 on @compute
  return
}
}
