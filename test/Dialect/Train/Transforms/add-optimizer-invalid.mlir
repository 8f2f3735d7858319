// RUN: not windlass-opt %s -train-add-optimizer=optimizer=adagrad 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not windlass-opt %s -train-add-optimizer=micro-batches=3 2>&1 | FileCheck %s --check-prefix=BATCHES
// RUN: not windlass-opt %s -train-add-optimizer=no-decay=missing* 2>&1 | FileCheck %s --check-prefix=PATTERN
// RUN: not windlass-opt %s -train-add-optimizer=no-decay=[a 2>&1 | FileCheck %s --check-prefix=GLOB
// RUN: not windlass-opt %s -train-add-optimizer -train-add-optimizer 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not windlass-opt %s -train-freeze-parameters=patterns=* -train-add-optimizer 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: not windlass-opt %s -train-freeze-parameters=patterns=missing 2>&1 | FileCheck %s --check-prefix=FREEZE

// KIND: error: there is no optimizer 'adagrad'; choose one of adamw, adafactor, adam, lamb, lion, muon, sgd
// BATCHES: error: the gradients are of 2 micro-batches per step, but the optimizer is asked for 3; give both passes one number
// PATTERN: error: no-decay pattern 'missing*' matches no parameter; 'windlass check -v' lists their names
// GLOB: error: no-decay pattern '[a' is not a glob
// TWICE: error: there is a function @update already
// NOTHING: error: there is no trainable parameter to update
// FREEZE: error: freeze pattern 'missing' matches no parameter
module attributes {train.settings = {micro_batches = 2 : i64}} {
  train.parameter weight @w "w" : tensor<2x3xf32> from <packed> {trainable}
}
