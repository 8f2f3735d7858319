// RUN: windlass-opt %s -train-differentiate="micro-batches=2 scales-loss=true" -train-add-optimizer="clip=true" -train-lower-precision=precision=f16 -train-verify-functions | FileCheck %s
// RUN: windlass-opt %s -train-differentiate=scales-loss=true -train-add-optimizer=optimizer=sgd -train-lower-precision=precision=f16 -train-verify-functions | FileCheck %s --check-prefix=SGD
// RUN: not windlass-opt %s -train-differentiate -train-add-optimizer -train-lower-precision=precision=f16 2>&1 | FileCheck %s --check-prefix=PLAIN

// PLAIN: error: f16 cannot hold the gradients of a loss that is not scaled; run train-differentiate with scales-loss

// The backward pass starts at the share of the loss times its scale, in f32. What f16 cannot hold of a constant becomes
// its largest number, except infinity.
// CHECK: module attributes {train.settings = {clip = true, micro_batches = 2 : i64, optimizer = "adamw", precision = "f16", scales_loss}}
// CHECK: train.parameter weight @w "w" : tensor<2x3xf32> from <packed> {compute_type = f16, decays, trainable}
// CHECK-LABEL: func.func @microbatch
// CHECK-DAG: train.constant dense<-6.550400e+04> : tensor<2x3xf16>
// CHECK-DAG: train.constant dense<0xFC00> : tensor<2x3xf16>
// CHECK: %[[START:.*]] = train.constant {train.forward = "sum.0", train.id = "sum.0.grad"} dense<5.000000e-01> : tensor<f32>
// CHECK-NEXT: %[[SCALE:.*]] = train.hyperparameter loss_scale : tensor<f32>
// CHECK-NEXT: train.mul %[[START]], %[[SCALE]] : tensor<f32> {train.forward = "sum.0", train.id = "sum.0.grad.scale"}
// The update takes the scale out of the norm and of what gradients are multiplied with; no number where the norm is not
// finite.
// CHECK-LABEL: func.func @update
// CHECK: %[[SCALED:.*]] = train.sqrt %{{.*}} {train.id = "update/scaled_norm"}
// CHECK: %[[INVERSE:.*]] = train.hyperparameter inverse_loss_scale : tensor<f32>
// CHECK: %[[NORM:.*]] = train.mul %[[SCALED]], %[[INVERSE]] : tensor<f32> {train.id = "update/grad_norm"}
// CHECK: %[[CLIP:.*]] = train.clip_factor %[[NORM]], %{{.*}}
// CHECK: %[[FACTOR:.*]] = train.mul %[[CLIP]], %[[INVERSE]]
// CHECK-DAG: %[[INFINITY:.*]] = train.constant dense<0x7F800000> : tensor<f32>
// CHECK-DAG: %[[NONE:.*]] = train.constant dense<0x7FC00000> : tensor<f32>
// CHECK: %[[FINITE:.*]] = train.compare less %[[NORM]], %[[INFINITY]] : tensor<f32> -> tensor<i1>
// CHECK: %[[USED:.*]] = train.select %[[FINITE]], %[[FACTOR]], %[[NONE]]
// CHECK: train.adamw {{.*}}, %[[USED]] decays
// CHECK: return %[[NORM]]

// SGD: %[[ONE:.*]] = train.constant dense<1.000000e+00> : tensor<f32>
// SGD: train.mul %[[ONE]], %{{.*}} {train.id = "update/unscaled"}
// SGD: %[[USED:.*]] = train.select
// SGD: train.sgd {{.*}}, %[[USED]] decays
train.parameter weight @w "w" : tensor<2x3xf32> from <packed> {trainable}
func.func @loss(%m: tensor<2x3xi1> {train.input = "m"}, %n: tensor<2x3xi1> {train.input = "n"}) -> tensor<f32> {
  %w = train.read @w : tensor<2x3xf32> {train.id = "w"}
  %lowest = train.constant dense<-3.40282347E+38> : tensor<2x3xf32>
  %none = train.constant dense<0xFF800000> : tensor<2x3xf32>
  %0 = train.select %m, %w, %lowest : tensor<2x3xi1>, tensor<2x3xf32> {train.id = "0"}
  %1 = train.select %n, %0, %none : tensor<2x3xi1>, tensor<2x3xf32> {train.id = "1"}
  %2 = train.exp %1 : tensor<2x3xf32> {train.id = "2"}
  %3 = train.reduce sum %2 dims [0, 1] : tensor<2x3xf32> -> tensor<f32> {train.id = "sum.0"}
  return %3 : tensor<f32>
}
