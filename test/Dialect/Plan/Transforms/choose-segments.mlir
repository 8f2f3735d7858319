// RUN: windlass-opt %S/Inputs/blocks.mlir -train-differentiate -train-add-optimizer=optimizer=sgd -train-mark-repeats -train-mark-segments -plan-apply-strategy=ranks=2 -plan-choose-segments=steps=0 | FileCheck %s --check-prefix=NONE
// RUN: windlass-opt %S/Inputs/blocks.mlir -train-differentiate -train-add-optimizer=optimizer=sgd -train-mark-repeats -train-mark-segments -plan-apply-strategy=ranks=2 -plan-choose-segments=steps=1 | windlass-opt | FileCheck %s --check-prefix=ONE
// RUN: windlass-opt %S/Inputs/blocks.mlir -train-differentiate -train-add-optimizer=optimizer=sgd -train-mark-repeats -train-mark-segments -plan-apply-strategy=ranks=2 -plan-choose-segments=steps=5 | FileCheck %s --check-prefix=PARTS
// RUN: windlass-opt %S/Inputs/blocks.mlir -train-differentiate -train-add-optimizer=optimizer=sgd -train-mark-repeats -train-mark-segments -plan-apply-strategy=ranks=2 -plan-choose-segments | FileCheck %s --check-prefix=ALL
// RUN: windlass-opt %s -verify-diagnostics -plan-choose-segments

// NONE-NOT: segment = {{[0-9]}}

// The tail frees three values for one matmul, the others one or two.
// ONE-LABEL: @microbatch
// ONE-NOT: segment = {{[0-9]}}
// ONE: train.matmul {{.*}} segment = 4>, train.id = "tail.0/matmul.0"
// ONE: train.mul {{.*}} segment = 4>, train.id = "tail.0/mul.1"
// ONE-NOT: segment = {{[0-9]}}

// Each part for itself.
// PARTS: train.softmax {{.*}} segment = 0>, train.id = "h.0/softmax.0"
// PARTS: train.tanh {{.*}} segment = 1>, train.id = "h.0/tanh.0"
// PARTS: train.softmax {{.*}} segment = 2>, train.id = "h.1/softmax.0"
// PARTS: train.tanh {{.*}} segment = 3>, train.id = "h.1/tanh.0"

// Then blocks as one.
// ALL: train.softmax {{.*}} segment = 0>, train.id = "h.0/softmax.0"
// ALL: train.tanh {{.*}} segment = 0>, train.id = "h.0/tanh.0"
// ALL: train.softmax {{.*}} segment = 2>, train.id = "h.1/softmax.0"
// ALL: train.tanh {{.*}} segment = 2>, train.id = "h.1/tanh.0"

// expected-error @below {{has no plan.mesh}}
module {}
