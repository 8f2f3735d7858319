// RUN: sed 's/micro_batches = /bf16_gradients, micro_batches = /' %S/../../Dialect/Plan/Transforms/Inputs/mlp.mlir > %t.mlir
// RUN: windlass-opt %t.mlir --plan-apply-strategy="ranks=2" --plan-materialize-layouts --plan-to-sched | FileCheck %s --check-prefix=TWO
// RUN: windlass-opt %t.mlir --plan-apply-strategy="ranks=8" --plan-materialize-layouts --plan-to-sched | FileCheck %s --check-prefix=ONE
// RUN: windlass-opt %t.mlir --plan-apply-strategy="ranks=1 offload=gradients" --plan-materialize-layouts --plan-to-sched | FileCheck %s --check-prefix=HOST
// RUN: windlass-opt %t.mlir --plan-apply-strategy="ranks=1" --plan-materialize-layouts --plan-to-sched | FileCheck %s --check-prefix=ALONE
// RUN: windlass-opt %S/../../Dialect/Sched/Transforms/Inputs/gpt.mlir --train-differentiate=micro-batches=2 --train-add-optimizer --train-lower-precision="precision=bf16 bf16-gradients" --plan-apply-strategy="ranks=2 strategy=zero1" --plan-materialize-layouts --plan-to-sched | FileCheck %s --check-prefix=PRODUCT

// A rank with two micro-batches adds in f32, and rounds the sums for their reduction.
// TWO: sched.resource gradient @[[G:gradient_w0]] : tensor<4x6xf32>
// TWO-LABEL: func.func @backward
// TWO-NOT: bf16
// TWO-LABEL: func.func @reduce
// TWO: sched.all_reduce {{.*}} (tensor<f32>) -> tensor<f32>
// TWO: %[[SUM:.*]] = sched.load @[[G]] : tensor<4x6xf32>
// TWO: %[[ROUNDED:.*]] = train.cast %[[SUM]] : tensor<4x6xf32> -> tensor<4x6xbf16>
// TWO: %[[ALL:.*]]:3 = sched.all_reduce {{.*}} %[[ROUNDED]]{{.*}} tensor<4x6xbf16>
// TWO: %[[WIDE:.*]] = train.cast %[[ALL]]#2 : tensor<4x6xbf16> -> tensor<4x6xf32>
// TWO: sched.store @[[G]], %[[WIDE]]

// One with one micro-batch keeps what it sends.
// ONE: sched.resource gradient @[[G:gradient_w0]] : tensor<4x6xbf16>
// ONE-LABEL: func.func @backward
// ONE: %[[ROUNDED:.*]] = train.cast %{{.*}} : tensor<4x6xf32> -> tensor<4x6xbf16>
// ONE: sched.add_to @[[G]], %[[ROUNDED]]
// ONE-LABEL: func.func @reduce
// ONE-NOT: train.cast
// ONE-LABEL: func.func @update
// ONE: %[[SENT:.*]] = sched.load @[[G]] : tensor<4x6xbf16>
// ONE: train.square_sum %[[SENT]]
// ONE: %[[WIDE:.*]] = train.cast %[[SENT]]
// ONE-NEXT: train.sgd {{.*}}%[[WIDE]]

// The host adds in f32 what comes in bf16.
// HOST: sched.resource gradient @[[G:gradient_w0]] : tensor<4x6xf32>
// HOST-LABEL: func.func @backward
// HOST: %[[ROUNDED:.*]] = train.cast %{{.*}} : tensor<4x6xf32> -> tensor<4x6xbf16>
// HOST: %[[THERE:.*]] = sched.move %[[ROUNDED]] to host
// HOST: %[[WIDE:.*]] = train.cast %[[THERE]]
// HOST: sched.add_to @[[G]], %[[WIDE]]

// Nothing travels.
// ALONE-NOT: train.cast

// Products and sums round what they make; norms, which have other results, leave it to a conversion.
// PRODUCT: sched.resource gradient @gradient_wp_1 : tensor<64x16xbf16>
// PRODUCT-LABEL: func.func @backward
// PRODUCT: %[[SCALE:.*]] = train.cast %{{.*}} : tensor<16xf32> -> tensor<16xbf16>
// PRODUCT-NEXT: sched.add_to @gradient_lnf, %[[SCALE]]
// PRODUCT: %[[SUM:[0-9]+]] = train.reduce sum {{.*}} dims [0, 1] : tensor<4x8x16xbf16> -> tensor<16xbf16>
// PRODUCT-NEXT: sched.add_to @gradient_bp_1, %[[SUM]]
// PRODUCT: %[[G:[0-9]+]] = train.matmul {{.*}} contract [0, 1] x [0, 1] : tensor<4x8x64xbf16>, tensor<4x8x16xbf16> -> tensor<64x16xbf16>
// PRODUCT-NEXT: sched.add_to @gradient_wp_1, %[[G]]
