// RUN: windlass-opt %s -split-input-file -verify-diagnostics -sched-verify-commands

// Two collectives that meet.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    %1 = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
    sched.launch fill on @compute ins() outs(%1) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.record 1 on @compute
    sched.wait 1 on @over
    sched.launch_collective all_reduce sum @all, %1 -> %1 : memref<4xf32> -> memref<4xf32>
    sched.record 11 on @over
    sched.wait 11 on @compute
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    %1 = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
    sched.launch fill on @compute ins() outs(%1) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.record 1 on @compute
    sched.wait 1 on @over
    sched.launch_collective all_reduce sum @all, %1 -> %1 : memref<4xf32> -> memref<4xf32>
    sched.record 11 on @over
    sched.wait 11 on @compute
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    %1 = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
    sched.launch fill on @compute ins() outs(%1) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.record 1 on @compute
    sched.wait 1 on @over
    // expected-error @below {{combines all_reduce sum of memref<4xf32> over [] and positions [0, 1], but position 0 combines nothing more over positions in a step}}
    sched.launch_collective all_reduce sum @all, %1 -> %1 : memref<4xf32> -> memref<4xf32>
    sched.record 11 on @over
    sched.wait 11 on @compute
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    %1 = sched.buffer @device_arena[64] : memref<4xf32> {sched.storage = 1 : i64}
    sched.launch fill on @compute ins() outs(%1) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.record 1 on @compute
    sched.wait 1 on @over
    sched.launch_collective all_reduce sum @all, %1 -> %1 : memref<4xf32> -> memref<4xf32>
    sched.record 11 on @over
    sched.wait 11 on @compute
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    %0 = sched.buffer @device_arena[0] : memref<4xf32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<4xf32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    // expected-error @below {{combines all_reduce sum of memref<4xf32> over [] and positions [0, 1], but position 0 combines all_reduce sum of memref<f32> over [] and positions [0, 1]}}
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<4xf32> -> memref<4xf32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    %1 = sched.buffer @device_arena[64] : memref<f32> {sched.storage = 1 : i64}
    sched.launch fill on @compute ins() outs(%1) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 1 on @compute
    sched.wait 1 on @over
    sched.launch_collective all_reduce sum @all, %1 -> %1 : memref<f32> -> memref<f32>
    sched.record 11 on @over
    sched.wait 11 on @compute
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    // expected-error @below {{combines over positions in a forward, but only reductions and updates may}}
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[<"a", 2>]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    // expected-error @below {{combines over positions on the mesh #plan.mesh<[]>, but that of position 0 is #plan.mesh<[<"a", 2>]>}}
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
}
}

// -----

// Position 0 would wait for the message, position 1 for the norm.
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    return
  }
  sched.schedule [#sched.action<forward>, #sched.action<send peer 1>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.arena @device_arena device bytes 256
  sched.stream @compute compute
  sched.stream @over communicator
  sched.communicator @all over [] and positions [0, 1] on @over
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} { return }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} {
    %0 = sched.buffer @device_arena[0] : memref<f32> {sched.storage = 0 : i64}
    sched.launch fill on @compute ins() outs(%0) {value = 1.0 : f64} : () -> memref<f32>
    sched.record 0 on @compute
    sched.wait 0 on @over
    // expected-error @below {{combines over positions before position 1 has sent and received all messages of the step}}
    sched.launch_collective all_reduce sum @all, %0 -> %0 : memref<f32> -> memref<f32>
    sched.record 10 on @over
    sched.wait 10 on @compute
    return
  }
  sched.schedule [#sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>, #sched.action<send chunk 1 peer 0>]
}
}
