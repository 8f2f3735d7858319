// Two positions in turn, written by hand: each runs two commands for each of the four micro-batches, which wait for each
// other and for two messages.
// RUN: split-file %s %t
// RUN: windlass-opt --simulate-schedule %t/two.mlir %t/cluster.json | FileCheck %s --match-full-lines

// A command moves 16,000 bytes at 85 % of 1 GB/s after a launch of 4 us; a message has 8,000 bytes, 1 GB/s, 1.65 * 2 us and
// a launch of 8 us. The step is 16 * 22.82 us + 8 * 19.3 us.
// CHECK: time       0.520 ms per step, uncalibrated: 100.0 % of the costs analytic
// CHECK-NEXT: position 0 busy 0.337 ms, idle 35.1 % of the step
// CHECK-NEXT:            forward 0.091 ms: compute 0.091 ms
// CHECK-NEXT:            backward 0.068 ms: compute 0.068 ms
// CHECK-NEXT:            last backward 0.023 ms: compute 0.023 ms
// CHECK-NEXT:            messages 0.337 ms: messages with position 1 0.154 ms
// CHECK-NEXT: position 1 busy 0.337 ms, idle 35.1 % of the step
// CHECK-NEXT:            forward 0.091 ms: compute 0.091 ms
// CHECK-NEXT:            backward 0.068 ms: compute 0.068 ms
// CHECK-NEXT:            last backward 0.023 ms: compute 0.023 ms
// CHECK-NEXT:            messages 0.314 ms: messages with position 0 0.154 ms
// CHECK-NEXT: bottleneck compute of position 0, busy 35.1 % of the step

// RUN: windlass-opt --simulate-schedule %t/two.mlir %t/cluster.json --json | FileCheck %s --check-prefix=JSON
// JSON: "predicted_seconds": 0.00051{{.*}},
// JSON: "positions": [
// JSON: "busy_seconds": 0.00033{{.*}},
// JSON-NEXT: "bubble_share": 0.35{{.*}},
// JSON-NEXT: "stream_busy_seconds": {
// JSON-NEXT:   "compute": 0.00018{{.*}},
// JSON-NEXT:   "messages with position 1": 0.00015{{.*}}
// JSON: "windows": [
// JSON: "position": 1,
// JSON-NEXT: "name": "forward",
// JSON: "bottleneck": "compute",
// JSON-NEXT: "bottleneck_position": 0

// Devices of one host exchange messages in less.
// RUN: sed 's/"count": 2, "devices": 1/"count": 1, "devices": 2/; s/"latency_s": 2e-6/"latency_s": 1e-6/' %t/cluster.json > %t/host.json
// RUN: windlass-opt --simulate-schedule %t/two.mlir %t/host.json | FileCheck %s --check-prefix=HOST
// HOST: time       0.496 ms per step

// RUN: not windlass-opt --simulate-schedule %t/two.mlir %t/none.json 2>&1 | FileCheck %s --check-prefix=FILE
// FILE: none.json
// RUN: sed 's/#sched.action<send peer 1>, #sched.action<receive peer 1>/#sched.action<receive peer 1>, #sched.action<send peer 1>/' %t/two.mlir > %t/waits.mlir
// RUN: not windlass-opt --simulate-schedule %t/waits.mlir %t/cluster.json 2>&1 | FileCheck %s --check-prefix=WAITS
// WAITS: error: 'sched.schedule' op never ends: position 0 waits for position 1 to send the gradient of micro-batch 0

//--- cluster.json
{"version": 2,
 "device_types": {"d": {"backend": "cuda", "memory_bytes": 1000000, "memory_bandwidth_bytes_per_s": 1000000000,
                        "peak_flops_per_s": {"f32": 1000000000000}}},
 "hosts": [{"count": 2, "devices": 1, "device_type": "d", "memory_bytes": 1000000, "device_link": {}}],
 "link_tiers": [{"name": "network", "devices": 2, "latency_s": 2e-6, "bandwidth_bytes_per_s": 1000000000, "efficiency": 1}]}

//--- two.mlir
module attributes {sched.placement = #sched.placement<[0, 1]>} {
sched.program @first on <[]> {
  sched.arena @arena device bytes 32000
  sched.stream @compute compute
  sched.resource input @x : tensor<2000xf32> of tensor<2000xf32> <[<[<2000>]>]> {arena = @arena, offset = 0 : i64, logical_name = "x"}
  sched.resource sent @act : tensor<2000xf32> of tensor<2000xf32> <[<[<2000>]>]> {arena = @arena, offset = 8000 : i64, peer = 1 : i64}
  sched.resource received @d_act : tensor<2000xf32> of tensor<2000xf32> <[<[<2000>]>]> {arena = @arena, offset = 16000 : i64, peer = 1 : i64}
  sched.resource gradient @g : tensor<2000xf32> of tensor<2000xf32> <[<[<2000>]>]> {arena = @arena, offset = 24000 : i64}
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @arena[0] : memref<2000xf32>
    %a = sched.buffer @arena[8000] : memref<2000xf32>
    sched.launch copy on @compute ins(%x) outs(%a) {} : (memref<2000xf32>) -> memref<2000xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %d = sched.buffer @arena[16000] : memref<2000xf32>
    %g = sched.buffer @arena[24000] : memref<2000xf32>
    sched.launch copy on @compute ins(%d) outs(%g) {} : (memref<2000xf32>) -> memref<2000xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} { return }
  sched.schedule [#sched.action<repeat x 4 of 4>, #sched.action<forward>, #sched.action<send peer 1>, #sched.action<receive peer 1>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
sched.program @second position 1 on <[]> {
  sched.arena @arena device bytes 16000
  sched.stream @compute compute
  sched.resource received @act : tensor<2000xf32> of tensor<2000xf32> <[<[<2000>]>]> {arena = @arena, chunk = 1 : i64, offset = 0 : i64, peer = 0 : i64}
  sched.resource sent @d_act : tensor<2000xf32> of tensor<2000xf32> <[<[<2000>]>]> {arena = @arena, chunk = 1 : i64, offset = 8000 : i64, peer = 0 : i64}
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 1>} {
    %a = sched.buffer @arena[0] : memref<2000xf32>
    sched.launch_map @twice on @compute ins(%a) outs(%a) : (memref<2000xf32>) -> memref<2000xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 1>} {
    %a = sched.buffer @arena[0] : memref<2000xf32>
    %d = sched.buffer @arena[8000] : memref<2000xf32>
    sched.launch copy on @compute ins(%a) outs(%d) {} : (memref<2000xf32>) -> memref<2000xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 1>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 1>} { return }
  sched.schedule [#sched.action<repeat x 4 of 4>, #sched.action<receive chunk 1 peer 0>, #sched.action<forward chunk 1>, #sched.action<backward chunk 1>, #sched.action<send chunk 1 peer 0>, #sched.action<reduce chunk 1>, #sched.action<update chunk 1>]
  func.func private @twice(%x: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %x : f32
    return %0 : f32
  }
}
}
