// RUN: windlass-opt %s -train-simplify-layout | FileCheck %s

// CHECK-LABEL: func.func @reshape_of_reshape
// CHECK-SAME: %[[X:.*]]: tensor<2x4x6xf32>
func.func @reshape_of_reshape(%x: tensor<2x4x6xf32>) -> tensor<4x12xf32> {
  // CHECK-NEXT: %[[R:.*]] = train.reshape %[[X]] : tensor<2x4x6xf32> -> tensor<4x12xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = train.reshape %x : tensor<2x4x6xf32> -> tensor<48xf32>
  %1 = train.reshape %0 : tensor<48xf32> -> tensor<4x12xf32>
  return %1 : tensor<4x12xf32>
}

// CHECK-LABEL: func.func @there_and_back
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>
func.func @there_and_back(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = train.reshape %x : tensor<2x4xf32> -> tensor<8xf32>
  %1 = train.reshape %0 : tensor<8xf32> -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @transpose_of_transpose
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
func.func @transpose_of_transpose(%x: tensor<2x3x4xf32>) -> tensor<4x3x2xf32> {
  // CHECK-NEXT: %[[T:.*]] = train.transpose %[[X]] [2, 1, 0] : tensor<2x3x4xf32> -> tensor<4x3x2xf32>
  // CHECK-NEXT: return %[[T]]
  %0 = train.transpose %x [1, 0, 2] : tensor<2x3x4xf32> -> tensor<3x2x4xf32>
  %1 = train.transpose %0 [2, 0, 1] : tensor<3x2x4xf32> -> tensor<4x3x2xf32>
  return %1 : tensor<4x3x2xf32>
}

// Keys are transposed through a merge of batch and heads.
// CHECK-LABEL: func.func @transpose_of_merged
// CHECK-SAME: %[[K:.*]]: tensor<2x4x8x16xf32>
func.func @transpose_of_merged(%k: tensor<2x4x8x16xf32>) -> tensor<2x4x16x8xf32> {
  // CHECK-NEXT: %[[T:.*]] = train.transpose %[[K]] [0, 1, 3, 2] : tensor<2x4x8x16xf32> -> tensor<2x4x16x8xf32>
  // CHECK-NEXT: return %[[T]]
  %f = train.reshape %k : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
  %t = train.transpose %f [0, 2, 1] : tensor<8x8x16xf32> -> tensor<8x16x8xf32>
  %u = train.reshape %t : tensor<8x16x8xf32> -> tensor<2x4x16x8xf32>
  return %u : tensor<2x4x16x8xf32>
}

// The dim in front is another one of that size: three operators stay.
// CHECK-LABEL: func.func @other_dim_in_front
func.func @other_dim_in_front(%k: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  // CHECK: train.reshape
  // CHECK: train.transpose %{{.*}} [1, 0, 2]
  // CHECK: train.reshape
  %f = train.reshape %k : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
  %t = train.transpose %f [1, 0, 2] : tensor<8x8x16xf32> -> tensor<8x8x16xf32>
  %u = train.reshape %t : tensor<8x8x16xf32> -> tensor<2x4x8x16xf32>
  return %u : tensor<2x4x8x16xf32>
}

// What is restored is not what was merged.
// CHECK-LABEL: func.func @other_split
func.func @other_split(%k: tensor<2x4x8x16xf32>) -> tensor<4x2x16x8xf32> {
  // CHECK: train.reshape
  // CHECK: train.transpose %{{.*}} [0, 2, 1]
  // CHECK: train.reshape
  %f = train.reshape %k : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
  %t = train.transpose %f [0, 2, 1] : tensor<8x8x16xf32> -> tensor<8x16x8xf32>
  %u = train.reshape %t : tensor<8x16x8xf32> -> tensor<4x2x16x8xf32>
  return %u : tensor<4x2x16x8xf32>
}
