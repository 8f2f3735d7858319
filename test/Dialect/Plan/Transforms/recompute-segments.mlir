// RUN: windlass-opt %S/Inputs/blocks.mlir -train-differentiate -train-add-optimizer=optimizer=sgd -train-mark-repeats -train-mark-segments -plan-apply-strategy=ranks=2 -plan-choose-segments=steps=5 -plan-recompute-segments -plan-materialize-layouts -plan-verify-layouts | FileCheck %s
// RUN: windlass-opt %S/Inputs/blocks.mlir -train-differentiate -train-add-optimizer=optimizer=sgd -train-mark-repeats -train-mark-segments -plan-apply-strategy=ranks=2 -plan-choose-segments -plan-recompute-segments | FileCheck %s --check-prefix=BLOCKS
// RUN: windlass-opt %S/Inputs/blocks.mlir -train-differentiate -train-add-optimizer=optimizer=sgd -train-mark-repeats -train-mark-segments -plan-apply-strategy=ranks=2 -plan-choose-segments=steps=0 -plan-recompute-segments | FileCheck %s --check-prefix=NONE
// RUN: windlass-opt %s -verify-diagnostics -plan-recompute-segments

// What goes from part to part stays stashed, and so does the mask, which belongs to none.
// CHECK-LABEL: func.func @microbatch
// CHECK-NOT: plan.segment
// CHECK-DAG: train.stash {{.*}}train.id = "h.1/add.2.stash"
// CHECK-DAG: train.stash {{.*}}train.id = "h.1/add.1.stash"
// CHECK-DAG: train.stash {{.*}}train.id = "h.0/add.2.stash"
// CHECK-DAG: train.stash {{.*}}train.id = "h.0/add.1.stash"
// CHECK-DAG: %[[X:.*]] = train.stash {{.*}}train.id = "in/matmul.0.stash"
// CHECK-DAG: %[[MASK:.*]] = train.stash {{.*}}train.id = "h.0/mask.0.stash"
// CHECK-NOT: train.stash
// The last first; of the MLP half not its sum, which nothing reads.
// CHECK: train.matmul {{.*}}train.forward = "tail.0/matmul.0", train.id = "tail.0/matmul.0.recompute"
// CHECK: train.tanh {{.*}}train.id = "h.1/tanh.0.recompute"
// CHECK-NEXT: train.tanh_grad
// CHECK-NOT: h.1/add.2.recompute
// CHECK: train.softmax {{.*}}train.id = "h.1/softmax.0.recompute"
// CHECK: train.tanh {{.*}}train.id = "h.0/tanh.0.recompute"
// One read serves copy and adjoint.
// CHECK: %[[READ:.*]] = train.read @w0 {{.*}}train.id = "read.0.again"
// CHECK-NEXT: %[[MATMUL:.*]] = train.matmul %[[X]], %[[READ]] {{.*}}plan.repeat = #plan.repeat<"h", 0>{{.*}}train.id = "h.0/matmul.0.recompute"
// CHECK-NEXT: %[[ADD:.*]] = train.add %[[MATMUL]], %[[MASK]]
// CHECK-NEXT: %[[SOFTMAX:.*]] = train.softmax %[[ADD]]
// CHECK-NEXT: %[[SIGMOID:.*]] = train.sigmoid %[[SOFTMAX]]
// CHECK-NEXT: %[[INNER:.*]] = train.sigmoid_grad %[[SIGMOID]]
// CHECK-NEXT: %[[GRADIENT:.*]] = train.softmax_grad %[[SOFTMAX]], %[[INNER]]
// CHECK-NEXT: train.matmul %[[GRADIENT]], %[[READ]]
// CHECK-NOT: train.read @w0
// CHECK-LABEL: func.func @evaluate

// As one: the sum between the parts is recomputed, the stash is smaller by it.
// BLOCKS-LABEL: func.func @microbatch
// BLOCKS-NOT: "h.1/add.1.stash"
// BLOCKS-NOT: "h.0/add.1.stash"
// BLOCKS: train.add {{.*}}train.id = "h.1/add.1.recompute"
// BLOCKS: train.add {{.*}}train.id = "h.0/add.1.recompute"

// NONE-NOT: recompute
// NONE-NOT: plan.segment

// expected-error @below {{has no plan.mesh}}
module {}
