// RUN: windlass-opt --sched-to-emitc %s | FileCheck %s

// Rows of tokens go to the members with their experts, and come back as sums: results and scratch first, then what is read.

// CHECK: WINDLASS_TRY(gather_rows(communicator_1, communicator_of(c, 0), at([[ALL:.*]]), at([[SCRATCH:.*]]), at([[PART:.*]]), at([[CHOICES:.*]]), 8));
// CHECK: WINDLASS_TRY(scatter_rows(communicator_1, communicator_of(c, 0), at([[PART]]), at([[SCRATCH]]), at([[ALL]]), at([[CHOICES]]), 8));

module {
sched.program @program on <[<"model", 4>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_model communicator
  sched.communicator @communicator_0 over ["model"] on @over_model exchanges
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} { return }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %part = sched.buffer @device_arena[0] : memref<2x4xf32>
    %all = sched.buffer @device_arena[256] : memref<8x4xf32>
    %choices = sched.buffer @device_arena[512] : memref<8x1xi64>
    %scratch = sched.buffer @device_arena[768] : memref<32xf32>
    sched.launch_collective gather_rows sum @communicator_0, %part, %choices -> %all, %scratch experts 8 : memref<2x4xf32>, memref<8x1xi64> -> memref<8x4xf32>, memref<32xf32>
    sched.launch_collective scatter_rows sum @communicator_0, %all, %choices -> %part, %scratch, %all experts 8 : memref<8x4xf32>, memref<8x1xi64> -> memref<2x4xf32>, memref<32xf32>, memref<8x4xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} { return }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} { return }
}
}
