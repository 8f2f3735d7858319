// RUN: windlass-opt %s | windlass-opt | FileCheck %s
// RUN: windlass-opt %s --emit-bytecode | windlass-opt | FileCheck %s

// What a module says of its plan: meshes of two axes and of none.
// CHECK: module @two_axes attributes {plan.bucket_bytes = 4096 : i64, plan.mesh = #plan.mesh<[<"data", 2, replica>, <"the model", 4>]>, plan.prefetch_bytes = 0 : i64}
module @two_axes attributes {plan.mesh = #plan.mesh<[<"data", 2, replica>, <"the model", 4>]>, plan.bucket_bytes = 4096 : i64, plan.prefetch_bytes = 0 : i64} {}
// CHECK: module @pipeline attributes {plan.pipeline = #plan.pipeline<positions = 2, schedule = "interleaved", begins = ["a", "b", "c"]>}
module @pipeline attributes {plan.pipeline = #plan.pipeline<positions = 2, schedule = "interleaved", begins = ["a", "b", "c"]>} {}
// CHECK: module @one_device attributes {plan.mesh = #plan.mesh<[]>}
module @one_device attributes {plan.mesh = #plan.mesh<[]>} {}

// CHECK-LABEL: func.func @reshard
func.func @reshard(%x: tensor<8x6xf32>, %s: tensor<f32>) {
  // Of a dim of two factors, one of which two axes split, outermost first.
  // CHECK: plan.reshard %{{.*}} from <[<[<8>]>, <[<6>]>]> to <[<[<8, ["data", "model"]>]>, <[<3>, <2, ["inner"]>]>]> : tensor<8x6xf32>
  %0 = plan.reshard %x from <[<[<8>]>, <[<6>]>]> to <[<[<8, ["data", "model"]>]>, <[<3>, <2, ["inner"]>]>]> : tensor<8x6xf32>
  // Flat, unreduced in each way, and in another memory.
  // CHECK: plan.reshard %{{.*}} from <[<[<8>]>, <[<6>]>] flat = ["data"] memory = host> to <[<[<8>]>, <[<6>]>], unreduced = [<"data", sum>, <"model", max>, <"inner", min>]> : tensor<8x6xf32>
  %1 = plan.reshard %0 from <[<[<8>]>, <[<6>]>] flat = ["data"] memory = host> to <[<[<8>]>, <[<6>]>], unreduced = [<"data", sum>, <"model", max>, <"inner", min>]> : tensor<8x6xf32>
  // CHECK: plan.reshard %{{.*}} from <[<[<8>]>, <[<6>]>] flat = ["data", "model"], unreduced = [<"inner", sum>] memory = disk> to <[<[<8>]>, <[<6>]>]> : tensor<8x6xf32>
  %2 = plan.reshard %1 from <[<[<8>]>, <[<6>]>] flat = ["data", "model"], unreduced = [<"inner", sum>] memory = disk> to <[<[<8>]>, <[<6>]>] memory = device> : tensor<8x6xf32>
  // CHECK: plan.reshard %{{.*}} from <[], unreduced = [<"data", sum>]> to <[]> : tensor<f32> {train.id = "loss.reshard"}
  %3 = plan.reshard %s from <[], unreduced = [<"data", sum>]> to <[]> : tensor<f32> {train.id = "loss.reshard"}
  return
}

// CHECK-LABEL: func.func @planned
// CHECK-SAME: tensor<6xf32> {plan.layout = #plan.layout<[<[<6, ["data"]>]>]>}) -> (tensor<6xf32> {plan.layout = #plan.layout<[<[<6>]>]>})
func.func @planned(%x: tensor<6xf32> {plan.layout = #plan.layout<[<[<6, ["data"]>]>]>}) -> (tensor<6xf32> {plan.layout = #plan.layout<[<[<6>]>]>}) {
  // CHECK: plan.layouts = [#plan.layout<[<[<6>]>]>], plan.repeat = #plan.repeat<"layers", 2>, plan.segment = #plan.segment<"layers.2", "mlp">, plan.strategy = #plan.strategy<[<"d0", ["data", "model"]>] segment = 3>
  %0 = train.relu %x : tensor<6xf32> {plan.layouts = [#plan.layout<[<[<6>]>]>], plan.repeat = #plan.repeat<"layers", 2>, plan.segment = #plan.segment<"layers.2", "mlp">, plan.strategy = #plan.strategy<[<"d0", ["data", "model"]>] segment = 3>}
  // CHECK: plan.strategy = #plan.strategy<[<"d0", ["data"], blocks = 3>, <"n0", ["model"]>]>
  %1 = train.exp %0 : tensor<6xf32> {plan.strategy = #plan.strategy<[<"d0", ["data"], blocks = 3>, <"n0", ["model"], blocks = 1>]>}
  // CHECK: plan.strategy = #plan.strategy<[] segment = 0>
  %2 = train.exp %1 : tensor<6xf32> {plan.strategy = #plan.strategy<[] segment = 0>}
  // CHECK: plan.strategy = #plan.strategy<[]>
  %3 = train.exp %2 : tensor<6xf32> {plan.strategy = #plan.strategy<[] segment = -1>}
  return %3 : tensor<6xf32>
}
