// RUN: windlass-opt %s -train-freeze-parameters=patterns=frozen* -train-differentiate=micro-batches=2 -train-add-optimizer="micro-batches=2 no-decay=*.weight lr-scale=*.embed=0.5,*.weight=1 decay-scale=*.bias=2,a.*=3" -train-verify-functions | FileCheck %s
// RUN: not windlass-opt %s -train-add-optimizer=lr-scale=*.embed=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not windlass-opt %s -train-add-optimizer=decay-scale=*.embed 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not windlass-opt %s -train-add-optimizer=decay-scale=none=2 2>&1 | FileCheck %s --check-prefix=NONE

// ZERO: error: lr-scale takes GLOB=X with a number X above 0 and at most 1.0{{.*}}e+06, not '*.embed=0'
// NUMBER: error: decay-scale takes GLOB=X with a number X above 0 and at most 1.0{{.*}}e+06, not '*.embed'
// NONE: error: decay-scale pattern 'none' matches no parameter; 'windlass check -v' lists their names

// The first pattern that matches a parameter counts. A parameter whose decay is scaled decays.
// CHECK: train.parameter weight @w "a.weight" : tensor<2x3xf32> from <packed> {decays, train.decay_scale = 3.000000e+00 : f64, train.rate_scale = 1.000000e+00 : f64, trainable}
// CHECK: train.parameter weight @b "a.bias" : tensor<3xf32> from <packed> {decays, train.decay_scale = 2.000000e+00 : f64, trainable}
// CHECK: train.parameter weight @e "a.embed" : tensor<2x3xf32> from <packed> {decays, train.decay_scale = 3.000000e+00 : f64, train.rate_scale = 5.000000e-01 : f64, trainable}
// CHECK: train.parameter weight @f "frozen.weight" : tensor<2x3xf32> from <packed> {reason = "frozen"}
// CHECK: func.func @update
// CHECK: %[[RATE:.*]] = train.hyperparameter learning_rate
// CHECK: %[[DECAY:.*]] = train.hyperparameter weight_decay
// CHECK: %[[THREE:.*]] = train.constant dense<3.000000e+00> : tensor<f32>
// CHECK: %[[DECAY3:.*]] = train.mul %[[DECAY]], %[[THREE]] : tensor<f32> {train.id = "update/weight_decay/scale_1"}
// CHECK: train.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[RATE]], %{{.*}}, %{{.*}}, %{{.*}}, %[[DECAY3]], %{{.*}} decays {train.id = "update/a.weight/adamw"}
// CHECK: %[[DECAY2:.*]] = train.mul %[[DECAY]], %{{.*}} : tensor<f32>
// CHECK: train.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[RATE]], %{{.*}}, %{{.*}}, %{{.*}}, %[[DECAY2]], %{{.*}} decays {train.id = "update/a.bias/adamw"}
// CHECK: %[[HALF:.*]] = train.mul %[[RATE]], %{{.*}} : tensor<f32>
// CHECK: train.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[HALF]], %{{.*}}, %{{.*}}, %{{.*}}, %[[DECAY3]], %{{.*}} decays {train.id = "update/a.embed/adamw"}
train.parameter weight @w "a.weight" : tensor<2x3xf32> from <packed> {trainable}
train.parameter weight @b "a.bias" : tensor<3xf32> from <packed> {trainable}
train.parameter weight @e "a.embed" : tensor<2x3xf32> from <packed> {trainable}
train.parameter weight @f "frozen.weight" : tensor<2x3xf32> from <packed> {trainable}
func.func @loss() -> tensor<f32> {
  %w = train.read @w : tensor<2x3xf32> {train.id = "w"}
  %b = train.read @b : tensor<3xf32> {train.id = "b"}
  %e = train.read @e : tensor<2x3xf32> {train.id = "e"}
  %f = train.read @f : tensor<2x3xf32> {train.id = "f"}
  %0 = train.broadcast %b dims [1] : tensor<3xf32> -> tensor<2x3xf32> {train.id = "0"}
  %1 = train.mul %w, %0 : tensor<2x3xf32> {train.id = "1"}
  %2 = train.mul %1, %e : tensor<2x3xf32> {train.id = "2"}
  %3 = train.mul %2, %f : tensor<2x3xf32> {train.id = "3"}
  %4 = train.reduce sum %3 dims [0, 1] : tensor<2x3xf32> -> tensor<f32> {train.id = "4"}
  return %4 : tensor<f32>
}
