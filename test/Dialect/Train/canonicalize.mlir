// RUN: windlass-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: func.func @neutral
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>)
// CHECK-NEXT: return %[[X]]
func.func @neutral(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = train.constant dense<0.0> : tensor<2x3xf32>
  %one = train.constant dense<1.0> : tensor<2x3xf32>
  %yes = train.constant dense<true> : tensor<2x3xi1>
  %0 = train.add %zero, %x : tensor<2x3xf32>
  %1 = train.mul %0, %one : tensor<2x3xf32>
  %2 = train.sub %1, %zero : tensor<2x3xf32>
  %3 = train.div %2, %one : tensor<2x3xf32>
  %4 = train.neg %3 : tensor<2x3xf32>
  %5 = train.neg %4 : tensor<2x3xf32>
  %6 = train.cast %5 : tensor<2x3xf32> -> tensor<2x3xf32>
  %7 = train.select %yes, %6, %zero : tensor<2x3xi1>, tensor<2x3xf32>
  %8 = train.select %yes, %7, %7 : tensor<2x3xi1>, tensor<2x3xf32>
  %9 = train.accumulate %8 : tensor<2x3xf32>
  %10 = train.slice %9 from [0, 0] sizes [2, 3] : tensor<2x3xf32> -> tensor<2x3xf32>
  %11 = train.pad %10 low [0, 0] high [0, 0] value 1.0 : tensor<2x3xf32> -> tensor<2x3xf32>
  %12 = train.concat %11 axis 0 : tensor<2x3xf32> -> tensor<2x3xf32>
  %13 = train.transpose %12 [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %14 = train.broadcast %13 dims [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %15 = train.reduce sum %14 dims [] : tensor<2x3xf32> -> tensor<2x3xf32>
  return %15 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @splats
// CHECK: train.constant dense<2.500000e+00> : tensor<2x3xf32>
// CHECK-NOT: train
// CHECK: return
func.func @splats() -> tensor<2x3xf32> {
  %two = train.constant dense<2.0> : tensor<f32>
  %half = train.constant dense<0.5> : tensor<f32>
  %0 = train.add %two, %half : tensor<f32>
  %1 = train.div %0, %half : tensor<f32>
  %2 = train.sub %1, %two : tensor<f32>
  %3 = train.mul %2, %two : tensor<f32>
  %4 = train.sub %3, %0 : tensor<f32>
  %5 = train.broadcast %4 dims [] : tensor<f32> -> tensor<6xf32>
  %6 = train.sub %5, %5 : tensor<6xf32>
  %7 = train.broadcast %0 dims [] : tensor<f32> -> tensor<6xf32>
  %8 = train.add %6, %7 : tensor<6xf32>
  %9 = train.reshape %8 : tensor<6xf32> -> tensor<3x2xf32>
  %10 = train.transpose %9 [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>
  return %10 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @views
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-NEXT: %[[R:.*]] = train.reshape %[[X]] : tensor<2x3x4xf32> -> tensor<24xf32> {train.id = "last"}
// CHECK-NEXT: %[[T:.*]] = train.transpose %[[X]] [1, 2, 0]
// CHECK-NEXT: return %[[R]], %[[T]], %[[X]]
func.func @views(%x: tensor<2x3x4xf32>) -> (tensor<24xf32>, tensor<3x4x2xf32>, tensor<2x3x4xf32>) {
  %0 = train.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %1 = train.reshape %0 : tensor<6x4xf32> -> tensor<24xf32> {train.id = "last"}
  %2 = train.transpose %x [2, 1, 0] : tensor<2x3x4xf32> -> tensor<4x3x2xf32>
  %3 = train.transpose %2 [1, 0, 2] : tensor<4x3x2xf32> -> tensor<3x4x2xf32>
  %4 = train.transpose %2 [2, 1, 0] : tensor<4x3x2xf32> -> tensor<2x3x4xf32>
  return %1, %3, %4 : tensor<24xf32>, tensor<3x4x2xf32>, tensor<2x3x4xf32>
}

// A transpose that only moves contracted and batch dims disappears; one that swaps free dims stays.

// CHECK-LABEL: func.func @matmul
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>, %[[W:.*]]: tensor<5x3xf32>, %[[Y:.*]]: tensor<2x4x3xf32>)
// CHECK-NEXT: %[[A:.*]] = train.matmul %[[X]], %[[W]] batch [] x [] contract [1] x [1]
// CHECK-NEXT: %[[T:.*]] = train.transpose %[[Y]]
// CHECK-NEXT: %[[B:.*]] = train.matmul %[[T]], %[[W]] batch [] x [] contract [2] x [1]
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @matmul(%x: tensor<2x3xf32>, %w: tensor<5x3xf32>, %y: tensor<2x4x3xf32>) -> (tensor<2x5xf32>, tensor<4x2x5xf32>) {
  %0 = train.transpose %w [1, 0] : tensor<5x3xf32> -> tensor<3x5xf32>
  %1 = train.matmul %x, %0 batch [] x [] contract [1] x [0] : tensor<2x3xf32>, tensor<3x5xf32> -> tensor<2x5xf32>
  %2 = train.transpose %y [1, 0, 2] : tensor<2x4x3xf32> -> tensor<4x2x3xf32>
  %3 = train.matmul %2, %0 batch [] x [] contract [2] x [0] : tensor<4x2x3xf32>, tensor<3x5xf32> -> tensor<4x2x5xf32>
  return %1, %3 : tensor<2x5xf32>, tensor<4x2x5xf32>
}

// What would change a result stays.

// CHECK-LABEL: func.func @kept
// CHECK: train.mul
// CHECK: train.add
// CHECK: train.pad
// CHECK: train.cast
func.func @kept(%x: tensor<2xf32>) -> tensor<3xf64> {
  %zero = train.constant dense<0.0> : tensor<2xf32>
  %c = train.constant dense<[0.0, 1.0]> : tensor<2xf32>
  %0 = train.mul %x, %zero : tensor<2xf32>
  %1 = train.add %0, %c : tensor<2xf32>
  %2 = train.pad %1 low [0] high [1] value 0.0 : tensor<2xf32> -> tensor<3xf32>
  %3 = train.cast %2 : tensor<3xf32> -> tensor<3xf64>
  return %3 : tensor<3xf64>
}
