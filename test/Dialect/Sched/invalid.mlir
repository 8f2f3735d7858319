// RUN: windlass-opt %s -split-input-file -verify-diagnostics

sched.program @program on <[]> {
// Resources.

// expected-error @below {{local type 'tensor<4xf32>' and global type 'tensor<4x2xf32>' differ in rank}}
sched.resource input @x : tensor<4xf32> of tensor<4x2xf32> <[<[<4>]>, <[<2>]>]>
}

// -----

sched.program @program on <[]> {
// Flat parts have one dim, not another number of them.
// expected-error @below {{local type 'tensor<4x1xf32>' and global type 'tensor<4x2x2xf32>' differ in rank}}
sched.resource state @x : tensor<4x1xf32> of tensor<4x2x2xf32> <[<[<4>]>, <[<2>]>, <[<2>]>] flat = ["data"]>
}

// -----

sched.program @program on <[]> {
// expected-error @below {{'sched.resource' op has a layout of 0 dims but type 'tensor<4xf32>'}}
sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[]>
}

// -----

sched.program @program on <[]> {
// expected-error @below {{'sched.resource' op has a layout whose factors multiply to 6 on a dim of size 4}}
sched.resource input @x : tensor<4xf32> of tensor<4xf32> <[<[<2>, <3>]>]>
}

// -----

sched.program @program on <[]> {
// expected-error @below {{needs both an arena and an offset, or neither}}
sched.resource value @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena}
}

// -----

sched.program @program on <[]> {
// expected-error @below {{needs both an arena and an offset, or neither}}
sched.resource value @x : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {offset = 0 : i64}
}

// -----

sched.program @program on <[]> {
// expected-error @below {{attribute 'type' failed to satisfy constraint}}
sched.resource value @x : tensor<?xf32> of tensor<4xf32> <[<[<4>]>]>
}

// -----

func.func private @w()
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.load' op names @w, which is no sched.resource of the program}}
  %0 = sched.load @w : tensor<4xf32>
  return
}

// -----

sched.program @program on <[]> {
sched.resource value @w : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.load' op has type 'tensor<4xf32>' but @w holds 'tensor<2xf32>'}}
  %0 = sched.load @w : tensor<4xf32>
  return
}
}

// -----

func.func private @w()
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.store' op names @w, which is no sched.resource of the program}}
  sched.store @w, %x : tensor<4xf32>
  return
}

// -----

sched.program @program on <[]> {
sched.resource value @w : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.store' op has type 'tensor<4xf32>' but @w holds 'tensor<2xf32>'}}
  sched.store @w, %x : tensor<4xf32>
  return
}
}

// -----

func.func private @w()
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.add_to' op names @w, which is no sched.resource of the program}}
  sched.add_to @w, %x : tensor<4xf32>
  return
}

// -----

sched.program @program on <[]> {
sched.resource value @w : tensor<2xf32> of tensor<2xf32> <[<[<2>]>]>
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.add_to' op has type 'tensor<4xf32>' but @w holds 'tensor<2xf32>'}}
  sched.add_to @w, %x : tensor<4xf32>
  return
}
}

// -----

// Collectives on local tensors.

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{makes 'tensor<4xf32>' of 'tensor<4xf32>', 'tensor<4xf32>'; an all_reduce keeps the types of its operands}}
  %0 = sched.all_reduce sum %x, %x over ["data"] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{receives 'tensor<2xf32>' where members send 'tensor<4xf32>'}}
  %0 = sched.permute %x to [1, 0] over ["data"] : tensor<4xf32> -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.permute' op sends to array<i64: 1, 1>: every member must receive from one member}}
  %0 = sched.permute %x to [1, 1] over ["data"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.permute' op sends to array<i64: 0, 2>: every member must receive from one member}}
  %0 = sched.permute %x to [0, 2] over ["data"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.permute' op sends to array<i64: -1, 0>: every member must receive from one member}}
  %0 = sched.permute %x to [-1, 0] over ["data"] : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

sched.program @program on <[]> {
// Maps.

func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function} { return %x : f32 }
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{has 1 operands but dims for 2}}
  %0 = sched.map @s(%x) dims [array<i64: 0>, array<i64: 0>] : (tensor<4xf32>) -> tensor<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) attributes {sched.scalar_function} { return }
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{needs a result}}
  sched.map @s(%x) dims [array<i64: 0>] : (tensor<4xf32>) -> ()
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> (f32, f32) attributes {sched.scalar_function} { return %x, %x : f32, f32 }
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{has results of types 'tensor<4xf32>' and 'tensor<2xf32>', which differ in shape}}
  %0:2 = sched.map @s(%x) dims [array<i64: 0>] : (tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>)
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function} { return %x : f32 }
func.func @f(%x: tensor<4x2xf32>) {
  // expected-error @below {{needs one dim of the iteration space for each dim of operand 0, 'tensor<4x2xf32>', but has array<i64: 0>}}
  %0 = sched.map @s(%x) dims [array<i64: 0>] : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function} { return %x : f32 }
func.func @f(%x: tensor<4x2xf32>) {
  // expected-error @below {{needs one dim of the iteration space for each dim of operand 0, 'tensor<4x2xf32>', but has [0, 1]}}
  %0 = sched.map @s(%x) dims [[0, 1]] : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function} { return %x : f32 }
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @below {{has dims array<i64: 1, 0> of operand 0, which must increase and be dims of the iteration space of 'tensor<4x4xf32>'}}
  %0 = sched.map @s(%x) dims [array<i64: 1, 0>] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function} { return %x : f32 }
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @below {{has dims array<i64: 0, 0> of operand 0, which must increase and be dims of the iteration space of 'tensor<4x4xf32>'}}
  %0 = sched.map @s(%x) dims [array<i64: 0, 0>] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function} { return %x : f32 }
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @below {{has dims array<i64: 0, 2> of operand 0, which must increase and be dims of the iteration space of 'tensor<4x4xf32>'}}
  %0 = sched.map @s(%x) dims [array<i64: 0, 2>] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function} { return %x : f32 }
func.func @f(%x: tensor<4x4xf32>) {
  // expected-error @below {{has dims array<i64: -1, 0> of operand 0, which must increase and be dims of the iteration space of 'tensor<4x4xf32>'}}
  %0 = sched.map @s(%x) dims [array<i64: -1, 0>] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} { return %x : f32 }
func.func @f(%x: tensor<4x2xf32>, %y: tensor<4xf32>) {
  // expected-error @below {{has operand 1 with 4 elements along dim 1 of the iteration space, which has 2}}
  %0 = sched.map @s(%x, %y) dims [array<i64: 0, 1>, array<i64: 1>] : (tensor<4x2xf32>, tensor<4xf32>) -> tensor<4x2xf32>
  return
}
}

// -----

// A function without the mark.
func.func private @s(%x: f32) -> f32 { return %x : f32 }
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.map' op names @s, which is no scalar function of the program}}
  %0 = sched.map @s(%x) dims [array<i64: 0>] : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f64) -> f32 attributes {sched.scalar_function}
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.map' op operands or results do not fit @s of type '(f64) -> f32'}}
  %0 = sched.map @s(%x) dims [array<i64: 0>] : (tensor<4xf32>) -> tensor<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> (f32, f32) attributes {sched.scalar_function}
func.func @f(%x: tensor<4xf32>) {
  // expected-error @below {{'sched.map' op operands or results do not fit @s of type '(f32) -> (f32, f32)'}}
  %0 = sched.map @s(%x) dims [array<i64: 0>] : (tensor<4xf32>) -> tensor<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// The schedule.

// expected-error @below {{holds "forward" instead of a #sched.action}}
sched.schedule [#sched.action<forward>, "forward"]
}

// -----

sched.program @program on <[]> {
// expected-error @below {{there is no action 'offload'}}
sched.schedule [#sched.action<offload>]
}

// -----

sched.program @program on <[]> {
// expected-error @below {{gives send the peer chunk -1; a send or receive has one, and nothing else}}
sched.schedule [#sched.action<send>]
}

// -----

sched.program @program on <[]> {
// expected-error @below {{gives forward the peer chunk 1; a send or receive has one, and nothing else}}
sched.schedule [#sched.action<forward peer 1>]
}

// -----

sched.program @program on <[]> {
// expected-error @below {{gives backward the micro-batch 1048576 of at most 1048576}}
sched.schedule [#sched.action<backward micro_batch 1048576>]
}

// -----

sched.program @program on <[]> {
// expected-error @below {{gives reduce a count of 2 and a length of 0, which only a repeat has}}
sched.schedule [#sched.action<reduce x 2>]
}

// -----

sched.program @program on <[]> {
// expected-error @below {{runs chunk -1, but chunks count from 0}}
sched.schedule [#sched.action<update chunk -1>]
}

// -----

sched.program @program on <[]> {
// expected-error @below {{repeats 3 actions 2 times, but only 2 follow}}
sched.schedule [#sched.action<repeat x 2 of 3>, #sched.action<forward>, #sched.action<backward>]
}

// -----

sched.program @program on <[]> {
// expected-error @below {{repeats 1 actions 2 times, but only an action has a peer chunk or a micro-batch}}
sched.schedule [#sched.action<repeat micro_batch 1 x 2 of 1>, #sched.action<forward>]
}

// -----

sched.program @program on <[]> {
// Arenas and commands.

// expected-error @below {{has -1 bytes; an allocation has at least 0}}
sched.arena @device_arena device bytes -1
}

// -----

sched.program @program on <[]> {
sched.stream @compute compute
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{accumulate and accumulate_after_first exclude each other}}
  sched.launch softmax on @compute ins(%a) outs(%a) {} accumulate accumulate_after_first : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

func.func @f() {
  // expected-error @below {{'sched.buffer' op result #0 must be memref of}}
  %a = sched.buffer @device_arena[0] : memref<4xi8>
  return
}

// -----

sched.program @program on <[]> {
sched.stream @compute compute
func.func private @s(%x: f32) attributes {sched.scalar_function}
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch_map' op writes nothing}}
  sched.launch_map @s on @compute ins(%a) outs() : (memref<4xf32>) -> ()
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @compute compute
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function}
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  %b = sched.buffer @device_arena[256] : memref<4x1xf32>
  // expected-error @below {{has buffers of types 'memref<4xf32>' and 'memref<4x1xf32>', which differ in shape}}
  sched.launch_map @s on @compute ins(%a) outs(%b) : (memref<4xf32>) -> memref<4x1xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @compute compute
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch_map' op names @s, which is no scalar function of the program}}
  sched.launch_map @s on @compute ins(%a) outs(%a) : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @compute compute
func.func private @s(%x: f32) -> f16 attributes {sched.scalar_function}
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch_map' op operands or results do not fit @s of type '(f32) -> f16'}}
  sched.launch_map @s on @compute ins(%a) outs(%a) : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.arena @c device bytes 64
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{names @c, which is no sched.communicator of the program}}
  sched.launch_collective all_reduce sum @c, %a -> %a : memref<4xf32> -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  %b = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{an all_reduce works in place: its two buffers must be one}}
  sched.launch_collective all_reduce sum @c, %a -> %b : memref<4xf32> -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{does not say where members send to, as a permute must}}
  sched.launch_collective permute sum @c, %a -> %a : memref<4xf32> -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{says where members send to, as only a permute does}}
  sched.launch_collective all_to_all sum @c, %a -> %a to [1, 0] : memref<4xf32> -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch_collective' op sends to array<i64: 0, 0>: every member must receive from one member}}
  sched.launch_collective permute sum @c, %a -> %a to [0, 0] : memref<4xf32> -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
// Streams and events.

// expected-error @below {{expected ::windlass::sched::StreamKind to be one of: compute, communicator, h2d, d2h, host}}
// expected-error @below {{failed to parse Sched_StreamKindAttr parameter 'value'}}
sched.stream @s disk {note}
}

// -----

sched.program @program on <[]> {
// expected-error @below {{'sched.communicator' op names @s, which is no sched.stream of the program}}
sched.communicator @c over ["data"] on @s
}

// -----

sched.program @program on <[]> {
sched.stream @s compute
// expected-error @below {{'sched.communicator' op names @s, a stream of kind compute, but collectives run on one of kind communicator}}
sched.communicator @c over ["data"] on @s
}

// -----

sched.program @program on <[]> {
sched.arena @s device bytes 64
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch' op names @s, which is no sched.stream of the program}}
  sched.launch fill on @s ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function}
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch_map' op names @compute, which is no sched.stream of the program}}
  sched.launch_map @s on @compute ins(%a) outs(%a) : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @s communicator
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch' op is a kernel on @s, a stream of kind communicator, which runs collectives only}}
  sched.launch fill on @s ins() outs(%a) {value = 1.0 : f64} : () -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @fetch h2d
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch' op is a kernel on @fetch, a stream of kind h2d, which runs copies only}}
  sched.launch softmax on @fetch ins(%a) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @fetch h2d
func.func @f() {
  %a = sched.buffer @host_arena[0] : memref<4xbf16>
  %b = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch' op copies 'memref<4xbf16>' to 'memref<4xf32>'; between memories, operand and result are dense and of one type}}
  sched.launch copy on @fetch ins(%a) outs(%b) {} : (memref<4xbf16>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @flush d2h
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4x2xf32, strided<[4, 1]>>
  %b = sched.buffer @host_arena[0] : memref<4x2xf32, strided<[4, 1]>>
  // expected-error @below {{'sched.launch' op copies 'memref<4x2xf32, strided<[4, 1]>>' to 'memref<4x2xf32, strided<[4, 1]>>'; between memories, operand and result are dense and of one type}}
  sched.launch copy on @flush ins(%a) outs(%b) {} : (memref<4x2xf32, strided<[4, 1]>>) -> memref<4x2xf32, strided<[4, 1]>>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @host host
func.func @f() {
  %a = sched.buffer @host_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch' op runs on @host, a stream of kind host, but kernel 'softmax' runs on devices only}}
  sched.launch softmax on @host ins(%a) outs(%a) {} : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @flush d2h
func.func private @s(%x: f32) -> f32 attributes {sched.scalar_function}
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  // expected-error @below {{'sched.launch_map' op is a kernel on @flush, a stream of kind d2h, which runs copies only}}
  sched.launch_map @s on @flush ins(%a) outs(%a) : (memref<4xf32>) -> memref<4xf32>
  return
}
}

// -----

func.func @f() {
  // expected-error @below {{'sched.record' op names @s, which is no sched.stream of the program}}
  sched.record 0 on @s
  return
}

// -----

func.func @f() {
  // expected-error @below {{'sched.wait' op names @s, which is no sched.stream of the program}}
  sched.wait 0 on @s
  return
}

// -----

sched.program @program on <[]> {
sched.stream @compute compute
func.func @f() {
  // expected-error @below {{'sched.record' op attribute 'event' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  sched.record -1 on @compute
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @compute compute
func.func @f() {
  // expected-error @below {{'sched.wait' op attribute 'event' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  sched.wait -1 on @compute
  return
}
}

// -----

sched.program @program on <[]> {
// Functions of a step.

// expected-error @below {{has a sched.step that is no #sched.step}}
func.func @forward() attributes {sched.step = 1 : i64} { return }
}

// -----

sched.program @program on <[]> {
// expected-error @below {{is no function, but has sched.step}}
sched.stream @compute compute {sched.step = #sched.step<forward, chunk 0>}
}

// -----

sched.program @program on <[]> {
// expected-error @below {{has both sched.step and sched.scalar_function}}
func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>, sched.scalar_function} { return }
}

// -----

sched.program @program on <[]> {
// expected-error @below {{is of chunk -1, but chunks count from 0}}
func.func @forward() attributes {sched.step = #sched.step<forward, chunk -1>} { return }
}

// -----

// Programs and placements.

// expected-error @below {{is of position -1, but positions count from 0}}
sched.program @program position -1 on <[]> {}

// -----

// expected-error @below {{has a sched.placement that is no #sched.placement}}
module attributes {sched.placement = [0]} {}

// -----

sched.program @program on <[]> {
  // expected-error @below {{names chunk 1, but only inputs, and what is sent or received, are of one}}
  sched.resource value @x : tensor<f32> of tensor<f32> <[]> {chunk = 1 : i64}
}

// -----

sched.program @program on <[]> {
  // expected-error @below {{names a peer, but is neither sent nor received}}
  sched.resource input @x : tensor<f32> of tensor<f32> <[]> {peer = 1 : i64}
}

// -----

sched.program @program on <[]> {
  // expected-error @below {{names no peer, the chunk at the other end}}
  sched.resource sent @x : tensor<f32> of tensor<f32> <[]>
}

// -----

// Slots.

sched.program @program on <[]> {
  // expected-error @below {{names @other, which is no sched.arena of the program}}
  sched.slots @slots chunk 0 in @other[0] count 1 bytes 64
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 64
  // expected-error @below {{is of chunk -1, but chunks are numbered from 0 to 65535}}
  sched.slots @slots chunk -1 in @device_arena[0] count 1 bytes 64
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 64
  // expected-error @below {{has 0 slots, but a chunk has 1 to 4194304}}
  sched.slots @slots chunk 0 in @device_arena[0] count 0 bytes 64
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 64
  // expected-error @below {{begins at byte 0 with 9223372036854775744 bytes to a slot: both are at least 0, and the last slot ends before 2^49}}
  sched.slots @slots chunk 0 in @device_arena[0] count 2 bytes 9223372036854775744
}

// -----

sched.program @program on <[]> {
  sched.arena @device_arena device bytes 64
  // expected-error @below {{begins at byte 32 with 64 bytes to a slot, which are no multiples of 64}}
  sched.slots @slots chunk 0 in @device_arena[32] count 1 bytes 64
}

// -----

sched.program @program on <[#plan.axis<"data", 2>]> {
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{'sched.all_gather' op moves nothing: it needs an operand}}
  "sched.all_gather"() <{axes = ["data"], dim = 0 : i64}> : () -> ()
  return
}
}

// -----

sched.program @program on <[#plan.axis<"data", 2>]> {
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{'sched.all_gather' op moves 2 values to 1: each needs a place of its own}}
  %b = sched.all_gather %a, %a dim 0 over ["data"] : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  return
}
}

// -----

sched.program @program on <[#plan.axis<"data", 2>]> {
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{'sched.reduce_scatter' op moves 1 values to 2: each needs a place of its own}}
  %b:2 = sched.reduce_scatter %a dim 0 over ["data"] : tensor<4xf32> -> tensor<2xf32>, tensor<2xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  %b = sched.buffer @device_arena[64] : memref<4xf32>
  // expected-error @below {{moves 2 values, but only an all_gather or a reduce_scatter may move several}}
  sched.launch_collective all_to_all sum @c, %a, %b -> %a, %b : memref<4xf32>, memref<4xf32> -> memref<4xf32>, memref<4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %a = sched.buffer @device_arena[0] : memref<4xf32>
  %b = sched.buffer @device_arena[64] : memref<4xf32>
  // expected-error @below {{moves 65 values, but one command moves at most 64: use several}}
  sched.launch_collective all_gather sum @c, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a -> %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b :
    memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32> ->
    memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>
  return
}
}

// -----

func.func @f(%x: tensor<4x8xf32>, %choices: tensor<8x2xi64>) {
  // expected-error @below {{exchanges rows of 'tensor<8x4xf32>' and 'tensor<4x8xf32>' for choices of 'tensor<8x2xi64>' among 4 experts, which do not fit together}}
  %0 = sched.gather_rows %x for %choices of 4 over ["data"] : (tensor<4x8xf32>, tensor<8x2xi64>) -> tensor<8x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %choices: tensor<4x2xi64>) {
  // expected-error @below {{exchanges rows of 'tensor<8x8xf32>' and 'tensor<4x8xf32>' for choices of 'tensor<4x2xi64>' among 4 experts, which do not fit together}}
  %0 = sched.gather_rows %x for %choices of 4 over ["data"] : (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%x: tensor<8x8xf32>, %choices: tensor<8x2xi64>) {
  // expected-error @below {{exchanges rows of 'tensor<8x8xf32>' and 'tensor<3x8xf32>' for choices of 'tensor<8x2xi64>' among 4 experts, which do not fit together}}
  %0 = sched.scatter_rows %x for %choices of 4 over ["data"] : (tensor<8x8xf32>, tensor<8x2xi64>) -> tensor<3x8xf32>
  return
}

// -----

func.func @f(%x: tensor<8x8xf32>, %choices: tensor<8x2xi64>) {
  // expected-error @below {{exchanges rows of 'tensor<8x8xf32>' and 'tensor<4x8xf32>' for choices of 'tensor<8x2xi64>' among 3 experts, which do not fit together}}
  %0 = sched.scatter_rows %x for %choices of 3 over ["data"] : (tensor<8x8xf32>, tensor<8x2xi64>) -> tensor<4x8xf32>
  return
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %part = sched.buffer @device_arena[0] : memref<2x4xf32>
  %all = sched.buffer @device_arena[0] : memref<4x4xf32>
  %small = sched.buffer @device_arena[0] : memref<19xf32>
  %scratch = sched.buffer @device_arena[0] : memref<20xf32>
  %choices = sched.buffer @device_arena[0] : memref<4x1xi64>
  // expected-error @below {{does not say how many experts there are, as an exchange of rows must}}
  sched.launch_collective gather_rows sum @c, %part, %choices -> %all, %scratch : memref<2x4xf32>, memref<4x1xi64> -> memref<4x4xf32>, memref<20xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %part = sched.buffer @device_arena[0] : memref<2x4xf32>
  %all = sched.buffer @device_arena[0] : memref<4x4xf32>
  %small = sched.buffer @device_arena[0] : memref<19xf32>
  %scratch = sched.buffer @device_arena[0] : memref<20xf32>
  %choices = sched.buffer @device_arena[0] : memref<4x1xi64>
  // expected-error @below {{says how many experts there are, as only an exchange of rows does}}
  sched.launch_collective all_gather sum @c, %part -> %all experts 2 : memref<2x4xf32> -> memref<4x4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %part = sched.buffer @device_arena[0] : memref<2x4xf32>
  %all = sched.buffer @device_arena[0] : memref<4x4xf32>
  %small = sched.buffer @device_arena[0] : memref<19xf32>
  %scratch = sched.buffer @device_arena[0] : memref<20xf32>
  %choices = sched.buffer @device_arena[0] : memref<4x1xi64>
  // expected-error @below {{says where members send to, as only a permute does}}
  sched.launch_collective gather_rows sum @c, %part, %choices -> %all, %scratch to [1, 0] experts 2 : memref<2x4xf32>, memref<4x1xi64> -> memref<4x4xf32>, memref<20xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %part = sched.buffer @device_arena[0] : memref<2x4xf32>
  %all = sched.buffer @device_arena[0] : memref<4x4xf32>
  %small = sched.buffer @device_arena[0] : memref<19xf32>
  %scratch = sched.buffer @device_arena[0] : memref<20xf32>
  %choices = sched.buffer @device_arena[0] : memref<4x1xi64>
  // expected-error @below {{moves 1 values to 2; it reads rows and choices and fills rows and a scratch}}
  sched.launch_collective gather_rows sum @c, %part -> %all, %scratch experts 2 : memref<2x4xf32> -> memref<4x4xf32>, memref<20xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %part = sched.buffer @device_arena[0] : memref<2x4xf32>
  %all = sched.buffer @device_arena[0] : memref<4x4xf32>
  %small = sched.buffer @device_arena[0] : memref<19xf32>
  %scratch = sched.buffer @device_arena[0] : memref<20xf32>
  %choices = sched.buffer @device_arena[0] : memref<4x1xi64>
  // expected-error @below {{moves 2 values to 2; it reads rows and choices and fills rows and a scratch, and overwrites the rows that it reads}}
  sched.launch_collective scatter_rows sum @c, %all, %choices -> %part, %scratch experts 2 : memref<4x4xf32>, memref<4x1xi64> -> memref<2x4xf32>, memref<20xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %part = sched.buffer @device_arena[0] : memref<2x4xf32>
  %all = sched.buffer @device_arena[0] : memref<4x4xf32>
  %small = sched.buffer @device_arena[0] : memref<19xf32>
  %scratch = sched.buffer @device_arena[0] : memref<20xf32>
  %choices = sched.buffer @device_arena[0] : memref<4x1xi64>
  // expected-error @below {{overwrites other rows than it reads}}
  sched.launch_collective scatter_rows sum @c, %all, %choices -> %part, %scratch, %part experts 2 : memref<4x4xf32>, memref<4x1xi64> -> memref<2x4xf32>, memref<20xf32>, memref<2x4xf32>
  return
}
}

// -----

sched.program @program on <[]> {
sched.stream @over_data communicator
sched.communicator @c over ["data"] on @over_data
func.func @f() {
  %part = sched.buffer @device_arena[0] : memref<2x4xf32>
  %all = sched.buffer @device_arena[0] : memref<4x4xf32>
  %small = sched.buffer @device_arena[0] : memref<19xf32>
  %scratch = sched.buffer @device_arena[0] : memref<20xf32>
  %choices = sched.buffer @device_arena[0] : memref<4x1xi64>
  // expected-error @below {{has a scratch of 'memref<19xf32>'; it needs 20 elements of the rows' type}}
  sched.launch_collective gather_rows sum @c, %part, %choices -> %all, %small experts 2 : memref<2x4xf32>, memref<4x1xi64> -> memref<4x4xf32>, memref<19xf32>
  return
}
}
