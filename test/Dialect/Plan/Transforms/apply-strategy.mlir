// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=1" | FileCheck %s --check-prefix=ONE
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=2" | FileCheck %s --check-prefix=DATA
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=8 strategy=ddp bucket-bytes=100" | FileCheck %s
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=3" 2>&1 | FileCheck %s --check-prefix=UNEVEN
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=0" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="strategy=zero9" 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="bucket-bytes=0" 2>&1 | FileCheck %s --check-prefix=BUCKET

// ONE: plan.mesh = #plan.mesh<[]>
// ONE-NOT: ["batch"]
// ONE-NOT: unreduced

// Groups share nothing inside @microbatch; gradients are sums over them from @update on.
// DATA: plan.mesh = #plan.mesh<[<"data", 2, replica>]>
// DATA: train.parameter weight @w0 {{.*}}plan.gradient_layout = #plan.layout<{{.*}}, unreduced = [<"data", sum>]>
// DATA-LABEL: @microbatch
// DATA-NOT: "data"
// DATA-LABEL: @update
// DATA-SAME: unreduced = [<"data", sum>]

// CHECK: plan.bucket_bytes = 100 : i64, plan.mesh = #plan.mesh<[<"data", 4, replica>, <"batch", 2, batch>]>
// CHECK: train.parameter weight @b0 {{.*}}plan.gradient_layout = #plan.layout<[<[<6>]>], unreduced = [<"data", sum>, <"batch", sum>]>
// CHECK-SAME: plan.layout = #plan.layout<[<[<6>]>]>, plan.master_layout = #plan.layout<[<[<6>]>]>
// CHECK-LABEL: @init
// CHECK: train.iota {{.*}}plan.strategy = #plan.strategy<[]>
// CHECK-LABEL: @microbatch(%arg0: tensor<8x4xf32> {plan.layout = #plan.layout<[<[<8, ["batch"]>]>, <[<4>]>]>
// CHECK: train.read @w0
// CHECK-SAME: plan.strategy = #plan.strategy<[]>
// CHECK: train.matmul
// CHECK-SAME: plan.strategy = #plan.strategy<[<"m0", ["batch"]>]>
// What depends on weights only is whole, but repeated for the rank's rows only.
// CHECK: train.add
// CHECK-SAME: plan.strategy = #plan.strategy<[]>
// CHECK: train.broadcast
// CHECK-SAME: plan.strategy = #plan.strategy<[<"d0", ["batch"]>]>
// CHECK: train.softmax_cross_entropy
// CHECK-SAME: plan.layouts = [#plan.layout<[], unreduced = [<"batch", sum>]>, #plan.layout<[], unreduced = [<"batch", sum>]>, #plan.layout<[<[<8, ["batch"]>]>]>]
// CHECK: train.reduce
// CHECK-SAME: unreduced = [<"batch", sum>]
// CHECK-LABEL: @update
// CHECK-NOT: plan.strategy<[<
// CHECK: return

// UNEVEN: error: 3 ranks cannot share 4 micro-batches of batch 8 evenly: use 1, 2, 4, 8, 16 or 32 ranks, or --micro-batches 6
// ZERO: error: cannot plan for 0 ranks
// NAME: error: strategy 'zero9' has a part 'zero9', which is not known: use ddp, zero1, zero2, zero3, megatron
// BUCKET: error: buckets of 0 bytes hold nothing
