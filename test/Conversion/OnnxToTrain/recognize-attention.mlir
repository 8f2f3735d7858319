// RUN: windlass-opt %s -train-recognize-attention -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @causal
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x8x16xf32>, %[[K:.*]]: tensor<2x4x8x16xf32>, %[[V:.*]]: tensor<2x4x8x16xf32>
func.func @causal(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  // The scale is half on the queries and half on the transposed keys.
  // CHECK: %[[R:.*]], %{{.*}} = train.attention %[[Q]], %[[K]], %[[V]] scale 2.500000e-01 causal
  // CHECK: return %[[R]]
  %half_q = train.constant dense<0.5> : tensor<2x4x8x16xf32>
  %half_k = train.constant dense<0.5> : tensor<2x4x16x8xf32>
  %zero = train.constant dense<0.0> : tensor<8x8xf32>
  %low = train.constant dense<-3.40282347E+38> : tensor<8x8xf32>
  %zeros = train.constant dense<0.0> : tensor<2x4x8x8xf32>
  %qs = train.mul %q, %half_q : tensor<2x4x8x16xf32>
  %kt = train.transpose %k [0, 1, 3, 2] : tensor<2x4x8x16xf32> -> tensor<2x4x16x8xf32>
  %ks = train.mul %kt, %half_k : tensor<2x4x16x8xf32>
  %s = train.matmul %qs, %ks batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32> -> tensor<2x4x8x8xf32>
  %column = train.iota 1 start 0.0 step 1.0 : tensor<8x8xi64>
  %row = train.iota 0 start 0.0 step 1.0 : tensor<8x8xi64>
  %keep = train.compare less_equal %column, %row : tensor<8x8xi64> -> tensor<8x8xi1>
  %plane = train.select %keep, %zero, %low : tensor<8x8xi1>, tensor<8x8xf32>
  %mask = train.broadcast %plane dims [2, 3] : tensor<8x8xf32> -> tensor<2x4x8x8xf32>
  %m = train.add %s, %mask : tensor<2x4x8x8xf32>
  %p = train.softmax %m : tensor<2x4x8x8xf32>
  %nan = train.is_nan %p : tensor<2x4x8x8xf32> -> tensor<2x4x8x8xi1>
  %g = train.select %nan, %zeros, %p : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %r = train.matmul %g, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  return %r : tensor<2x4x8x16xf32>
}

// -----

// Without a guard a row without keys gives NaN, which the op does not: an arbitrary mask is left alone.
// CHECK-LABEL: func.func @unguarded
func.func @unguarded(%q: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %mask: tensor<2x4x8x8xf32>) -> tensor<2x4x8x16xf32> {
  // CHECK-NOT: train.attention
  // CHECK: train.softmax
  %s = train.matmul %q, %q batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x8xf32>
  %m = train.add %s, %mask : tensor<2x4x8x8xf32>
  %p = train.softmax %m : tensor<2x4x8x8xf32>
  %r = train.matmul %p, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  return %r : tensor<2x4x8x16xf32>
}

// -----

// Keys and values of two heads repeated for four query heads are used unrepeated; no mask at all.
// CHECK-LABEL: func.func @groups
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x8x16xf32>, %[[K:.*]]: tensor<2x2x8x16xf32>, %[[V:.*]]: tensor<2x2x8x16xf32>
func.func @groups(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x2x8x16xf32>) -> tensor<2x4x8x16xf32> {
  // CHECK: train.attention %[[Q]], %[[K]], %[[V]] scale 1.000000e+00 :
  %k5 = train.broadcast %k dims [0, 1, 3, 4] : tensor<2x2x8x16xf32> -> tensor<2x2x2x8x16xf32>
  %v5 = train.broadcast %v dims [0, 1, 3, 4] : tensor<2x2x8x16xf32> -> tensor<2x2x2x8x16xf32>
  %k4 = train.reshape %k5 : tensor<2x2x2x8x16xf32> -> tensor<2x4x8x16xf32>
  %v4 = train.reshape %v5 : tensor<2x2x2x8x16xf32> -> tensor<2x4x8x16xf32>
  %s = train.matmul %q, %k4 batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x8xf32>
  %p = train.softmax %s : tensor<2x4x8x8xf32>
  %r = train.matmul %p, %v4 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  return %r : tensor<2x4x8x16xf32>
}

// -----

// Transposes of the heads are folded into the matmuls; they come back in front of the op.
// CHECK-LABEL: func.func @folded
// CHECK-SAME: %[[Q:.*]]: tensor<2x8x4x16xf32>, %[[K:.*]]: tensor<2x8x4x16xf32>, %[[V:.*]]: tensor<2x8x4x16xf32>
func.func @folded(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32> {
  // CHECK-DAG: %[[QT:.*]] = train.transpose %[[Q]] [0, 2, 1, 3]
  // CHECK-DAG: %[[KT:.*]] = train.transpose %[[K]] [0, 2, 1, 3]
  // CHECK-DAG: %[[VT:.*]] = train.transpose %[[V]] [0, 2, 1, 3]
  // CHECK: train.attention %[[QT]], %[[KT]], %[[VT]] scale 1.000000e+00 :
  %s = train.matmul %q, %k batch [0, 2] x [0, 2] contract [3] x [3] : tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32> -> tensor<2x4x8x8xf32>
  %p = train.softmax %s : tensor<2x4x8x8xf32>
  %r = train.matmul %p, %v batch [0, 1] x [0, 2] contract [3] x [1] : tensor<2x4x8x8xf32>, tensor<2x8x4x16xf32> -> tensor<2x4x8x16xf32>
  return %r : tensor<2x4x8x16xf32>
}
