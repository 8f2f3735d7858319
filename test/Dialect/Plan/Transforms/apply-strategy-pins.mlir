// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=8 strategy=zero1*megatron=2 pins=fc0=n0:model,relu0=whole,fc1=[8:model,3],layer1.weight=master:[6:model,3]" \
// RUN:   --plan-materialize-layouts --plan-verify-layouts | FileCheck %s
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=8 pins=layer0.weight=compute:[4:data,6]" | FileCheck %s --check-prefix=COPY
// RUN: windlass-opt %S/Inputs/mlp.mlir --plan-apply-strategy="ranks=4 strategy=megatron=2*ddp pins=layer0.weight=compute:[4,6:model]" | FileCheck %s --check-prefix=SPREAD

// A pinned operator keeps its strategy, though its operands arrive otherwise; a pinned value is found in its layout.
// CHECK: train.parameter weight @w1 {{.*}}plan.master_layout = #plan.layout<[<[<6, ["model"]>]>, <[<3>]>]>
// CHECK: train.parameter state @w1_m {{.*}}plan.layout = #plan.layout<[<[<6, ["model"]>]>, <[<3>]>]>
// CHECK-LABEL: @microbatch
// CHECK: train.matmul
// CHECK-SAME: plan.strategy = #plan.strategy<[<"n0", ["model"]>]>
// CHECK-SAME: train.id = "fc0"
// CHECK: plan.reshard {{.*}} from <[<[<8>]>, <[<6, ["model"]>]>]> to <[<[<8>]>, <[<6>]>]>
// CHECK: train.relu
// CHECK-SAME: plan.strategy = #plan.strategy<[]>
// What is pinned spreads: as the result is found by rows, the operator makes it by rows.
// CHECK: train.matmul
// CHECK-SAME: plan.layouts = [#plan.layout<[<[<8, ["model"]>]>, <[<3>]>]>], plan.strategy = #plan.strategy<[<"m0", ["model"]>]>
// CHECK-SAME: train.id = "fc1"

// The copy has the pinned layout; operators find it whole over the axes that split the data.
// COPY: train.parameter weight @w0 {{.*}}plan.layout = #plan.layout<[<[<4, ["data"]>]>, <[<6>]>]>
// COPY-LABEL: @microbatch
// COPY: train.read @w0 {{.*}}plan.layouts = [#plan.layout<[<[<4>]>, <[<6>]>]>]

// From a pinned copy splits spread to operators.
// SPREAD-LABEL: @microbatch
// SPREAD: train.matmul
// SPREAD-SAME: plan.strategy = #plan.strategy<[<"n0", ["model"]>]>
