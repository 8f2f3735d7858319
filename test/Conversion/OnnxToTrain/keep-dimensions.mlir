// RUN: windlass-opt %s -train-simplify-layout -train-keep-dimensions | FileCheck %s

// CHECK-LABEL: func.func @flatten_gemm_unflatten
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8xf32>, %[[W:.*]]: tensor<8x16xf32>, %[[B:.*]]: tensor<16xf32>
func.func @flatten_gemm_unflatten(%x: tensor<2x4x8xf32>, %w: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<2x4x16xf32> {
  // CHECK-NOT: train.reshape
  // CHECK: %[[M:.*]] = train.matmul %[[X]], %[[W]] batch [] x [] contract [2] x [0] : {{.*}} -> tensor<2x4x16xf32>
  // CHECK: %[[BB:.*]] = train.broadcast %[[B]] dims [2] : tensor<16xf32> -> tensor<2x4x16xf32>
  // CHECK: %[[A:.*]] = train.add %[[M]], %[[BB]]
  // CHECK: return %[[A]]
  %f = train.reshape %x : tensor<2x4x8xf32> -> tensor<8x8xf32>
  %m = train.matmul %f, %w batch [] x [] contract [1] x [0] : tensor<8x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %bb = train.broadcast %b dims [1] : tensor<16xf32> -> tensor<8x16xf32>
  %a = train.add %m, %bb : tensor<8x16xf32>
  %u = train.reshape %a : tensor<8x16xf32> -> tensor<2x4x16xf32>
  return %u : tensor<2x4x16xf32>
}

// The heads are merged and the rows flattened by one reshape.
// CHECK-LABEL: func.func @merge_and_flatten
func.func @merge_and_flatten(%x: tensor<2x4x2x4xf32>, %w: tensor<8x8xf32>) -> tensor<2x4x8xf32> {
  // CHECK: %[[R:.*]] = train.reshape %{{.*}} : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  // CHECK: train.matmul %[[R]], %{{.*}} contract [2] x [0]
  %f = train.reshape %x : tensor<2x4x2x4xf32> -> tensor<8x8xf32>
  %m = train.matmul %f, %w batch [] x [] contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %u = train.reshape %m : tensor<8x8xf32> -> tensor<2x4x8xf32>
  return %u : tensor<2x4x8xf32>
}

// CHECK-LABEL: func.func @transposed_weight
func.func @transposed_weight(%x: tensor<2x4x8xf32>, %w: tensor<16x8xf32>) -> tensor<2x4x16xf32> {
  // CHECK-NOT: train.transpose
  // CHECK: train.matmul %{{.*}}, %{{.*}} batch [] x [] contract [2] x [1]
  %t = train.transpose %w [1, 0] : tensor<16x8xf32> -> tensor<8x16xf32>
  %m = train.matmul %x, %t batch [] x [] contract [2] x [0] : tensor<2x4x8xf32>, tensor<8x16xf32> -> tensor<2x4x16xf32>
  return %m : tensor<2x4x16xf32>
}

// CHECK-LABEL: func.func @cross_entropy
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8xf32>, %[[Y:.*]]: tensor<2x4xi64>
func.func @cross_entropy(%x: tensor<2x4x8xf32>, %y: tensor<2x4xi64>) -> tensor<f32> {
  // CHECK: train.softmax_cross_entropy %[[X]], %[[Y]] ignore -100
  %f = train.reshape %x : tensor<2x4x8xf32> -> tensor<8x8xf32>
  %g = train.reshape %y : tensor<2x4xi64> -> tensor<8xi64>
  %s, %c, %l = train.softmax_cross_entropy %f, %g ignore -100 : (tensor<8x8xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
  %r = train.loss %s, %c : tensor<f32>
  return %r : tensor<f32>
}
