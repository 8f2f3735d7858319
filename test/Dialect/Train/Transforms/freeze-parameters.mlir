// RUN: windlass-opt %s --train-freeze-parameters="patterns=embed.*,*.bias" | FileCheck %s
// RUN: windlass-opt %s --train-freeze-parameters | FileCheck %s --check-prefix=NONE
// RUN: not windlass-opt %s --train-freeze-parameters="patterns=embed.*,head.*" 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not windlass-opt %s --train-freeze-parameters="patterns=fc[" 2>&1 | FileCheck %s --check-prefix=GLOB

// What is frozen neither trains nor decays, and says why; names are logical ones.
// CHECK: train.parameter weight @w0 "embed.weight" : tensor<4x2xf32> from <packed> {reason = "frozen"}
// CHECK: train.parameter weight @w1 "fc.weight" : tensor<2x2xf32> from <packed> {decays, trainable}
// CHECK: train.parameter weight @w2 "fc.bias" : tensor<2xf32> from <packed> {reason = "frozen"}
// CHECK: train.parameter buffer @w3 "embed.mask" : tensor<4xf32> from <packed> {reason = "frozen"}

// NONE-COUNT-2: {decays, trainable}
// NONE: "fc.bias" : tensor<2xf32> from <packed> {trainable}
// NONE-NOT: reason

// MISSING: error: freeze pattern 'head.*' matches no parameter; 'windlass check -v' lists their names
// GLOB: error: freeze pattern 'fc[' is not a glob
train.parameter weight @w0 "embed.weight" : tensor<4x2xf32> from <packed> {trainable, decays}
train.parameter weight @w1 "fc.weight" : tensor<2x2xf32> from <packed> {trainable, decays}
train.parameter weight @w2 "fc.bias" : tensor<2xf32> from <packed> {trainable}
train.parameter buffer @w3 "embed.mask" : tensor<4xf32> from <packed>
