// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=adafactor micro-batches=2" -train-verify-functions | FileCheck %s
// RUN: windlass-opt %s -train-differentiate="micro-batches=2 scales-loss=true" -train-add-optimizer="optimizer=adafactor micro-batches=2" | FileCheck %s --check-prefix=SCALED

// What has two dims and more keeps means over its last two, what has fewer all squares; nothing has the size of a matrix.
// CHECK: optimizer = "adafactor"
// CHECK: train.parameter state @w.row_var "w/row_var" : tensor<2x4xf32>
// CHECK: train.parameter state @w.col_var "w/col_var" : tensor<2x6xf32>
// CHECK: train.parameter state @b.variance "b/variance" : tensor<6xf32>
// CHECK: train.parameter state @s.variance "s/variance" : tensor<f32>
// CHECK-LABEL: func.func @update
// CHECK: %[[MOMENTS:.*]] = train.hyperparameter second_moment_rate
// CHECK: %[[W:.*]] = train.read @w :
// CHECK: %[[G:.*]] = train.mul {{.*}} : tensor<2x4x6xf32> {train.id = "update/w/gradient"}
// CHECK: %[[SQUARES:.*]] = train.mul %[[G]], %[[G]]
// CHECK: train.reduce sum %[[SQUARES]] dims [2] : tensor<2x4x6xf32> -> tensor<2x4xf32>
// CHECK: %[[ROWS:.*]] = train.ema %{{.*}}, %{{.*}}, %[[MOMENTS]] {train.id = "update/w/row_var/ema"}
// CHECK: train.reduce sum %[[SQUARES]] dims [1] : tensor<2x4x6xf32> -> tensor<2x6xf32>
// CHECK: %[[COLUMNS:.*]] = train.ema %{{.*}}, %{{.*}}, %[[MOMENTS]] {train.id = "update/w/col_var/ema"}
// CHECK: %[[MEAN:.*]] = train.reduce sum %[[ROWS]] dims [1] : tensor<2x4xf32> -> tensor<2xf32>
// CHECK: %[[D:.*]] = train.mul %{{.*}}, %[[G]] : tensor<2x4x6xf32> {train.id = "update/w/direction"}
// CHECK: train.write @w.row_var, %[[ROWS]]
// CHECK: train.write @w.col_var, %[[COLUMNS]]
// CHECK: train.square_sum %[[W]]
// CHECK: train.square_sum %[[D]]
// CHECK: %[[RATE:.*]] = train.div {{.*}} {train.id = "update/w/rate"}
// CHECK: train.descend %[[W]], %[[D]], %[[RATE]], %{{.*}} {train.id = "update/w/descend"}
// A bias does not decay.
// CHECK: %[[NONE:.*]] = train.constant dense<0.000000e+00> : tensor<f32>
// CHECK-NEXT: train.descend %{{.*}}, %{{.*}}, %{{.*}}, %[[NONE]] {train.id = "update/b/descend"}

// Where gradients have overflowed, they are zeros, and moments and weights stay.
// SCALED: %[[IS_FINITE:.*]] = train.compare {{.*}} {train.id = "update/is_finite"}
// SCALED: %[[MOMENTS:.*]] = train.select %[[IS_FINITE]], %{{.*}}, %{{.*}} {train.id = "update/finite_second_moment_rate"}
// SCALED: %[[ARE_FINITE:.*]] = train.broadcast %[[IS_FINITE]] dims [] : tensor<i1> -> tensor<2x4x6xi1>
// SCALED: train.select %[[ARE_FINITE]], {{.*}} {train.id = "update/w/finite_gradient"}
// SCALED: train.ema %{{.*}}, %{{.*}}, %[[MOMENTS]]
// SCALED: %[[KEPT:.*]] = train.select %[[IS_FINITE]], {{.*}} {train.id = "update/w/finite_decay"}
// SCALED: train.descend %{{.*}}, %{{.*}}, %{{.*}}, %[[KEPT]] {train.id = "update/w/descend"}
train.parameter weight @w "w" : tensor<2x4x6xf32> from <packed> {trainable}
train.parameter weight @b "b" : tensor<6xf32> from <packed> {trainable}
train.parameter weight @s "s" : tensor<f32> from <packed> {trainable}
func.func @loss(%x: tensor<2x3x4xf32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<2x4x6xf32> {train.id = "w"}
  %b = train.read @b : tensor<6xf32> {train.id = "b"}
  %s = train.read @s : tensor<f32> {train.id = "s"}
  %0 = train.matmul %x, %w batch [0] x [0] contract [2] x [1] : tensor<2x3x4xf32>, tensor<2x4x6xf32> -> tensor<2x3x6xf32> {train.id = "0"}
  %1 = train.broadcast %b dims [2] : tensor<6xf32> -> tensor<2x3x6xf32> {train.id = "1"}
  %2 = train.add %0, %1 : tensor<2x3x6xf32> {train.id = "2"}
  %3 = train.reduce sum %2 dims [0, 1, 2] : tensor<2x3x6xf32> -> tensor<f32> {train.id = "3"}
  %4 = train.mul %3, %s : tensor<f32> {train.id = "4"}
  return %4 : tensor<f32>
}
