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

// -----

// A mask of finite numbers leaves no row without keys, so that it needs no guard; the choice is an added mask.
// CHECK-LABEL: func.func @chosen
// CHECK-SAME: %[[Q:.*]]: tensor<2x4x8x16xf32>, %[[C:.*]]: tensor<2x4x8x8xi1>
func.func @chosen(%q: tensor<2x4x8x16xf32>, %c: tensor<2x4x8x8xi1>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) {
  // CHECK-DAG: %[[LOW:.*]] = train.constant dense<-3.402{{.*}}E+38> : tensor<2x4x8x8xf32>
  // CHECK-DAG: %[[ZERO:.*]] = train.constant dense<0.000000e+00> : tensor<2x4x8x8xf32>
  // CHECK: %[[M:.*]] = train.select %[[C]], %[[LOW]], %[[ZERO]]
  // CHECK: train.attention %[[Q]], %[[Q]], %[[Q]] mask %[[M]] scale 5.000000e-01 :
  %half = train.constant dense<0.5> : tensor<2x4x8x8xf32>
  %low = train.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %s = train.matmul %q, %q batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x8xf32>
  %h = train.mul %s, %half : tensor<2x4x8x8xf32>
  %m = train.select %c, %low, %h : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = train.softmax %m : tensor<2x4x8x8xf32>
  %r = train.matmul %p, %q batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  // -1e9 does not swallow a score in f64.
  // CHECK: train.softmax
  %few = train.constant dense<-1.0E+9> : tensor<2x4x8x8xf32>
  %m2 = train.select %c, %few, %h : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p2 = train.softmax %m2 : tensor<2x4x8x8xf32>
  %r2 = train.matmul %p2, %q batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  return %r, %r2 : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>
}

// -----

// (1 - mask) * -3.4e38 from an integer mask, as transformers' eager attention has it.
// CHECK-LABEL: func.func @eager
func.func @eager(%q: tensor<2x4x8x16xf32>, %keep: tensor<2x8xi64>) -> tensor<2x4x8x16xf32> {
  // CHECK: train.attention %{{.*}} mask %{{.*}} scale 1.000000e+00 :
  %one = train.constant dense<1.0> : tensor<2x8xf32>
  %low = train.constant dense<-3.40282347E+38> : tensor<2x8xf32>
  %k = train.cast %keep : tensor<2x8xi64> -> tensor<2x8xf32>
  %d = train.sub %one, %k : tensor<2x8xf32>
  %m0 = train.mul %d, %low : tensor<2x8xf32>
  %m = train.broadcast %m0 dims [0, 3] : tensor<2x8xf32> -> tensor<2x4x8x8xf32>
  %s = train.matmul %q, %q batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x8xf32>
  %a = train.add %s, %m : tensor<2x4x8x8xf32>
  %p = train.softmax %a : tensor<2x4x8x8xf32>
  %r = train.matmul %p, %q batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  return %r : tensor<2x4x8x16xf32>
}

// -----

// What is chosen where the key is later than the token is the causal mask the other way round.
// CHECK-LABEL: func.func @inverted
func.func @inverted(%q: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  // CHECK: train.attention %{{.*}} scale 1.000000e+00 causal
  %low = train.constant dense<0xFF800000> : tensor<2x4x8x8xf32>
  %column = train.iota 1 start 0.0 step 1.0 : tensor<8x8xi64>
  %row = train.iota 0 start 0.0 step 1.0 : tensor<8x8xi64>
  %late = train.compare greater %column, %row : tensor<8x8xi64> -> tensor<8x8xi1>
  %c = train.broadcast %late dims [2, 3] : tensor<8x8xi1> -> tensor<2x4x8x8xi1>
  %s = train.matmul %q, %q batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x8xf32>
  %m = train.select %c, %low, %s : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = train.softmax %m : tensor<2x4x8x8xf32>
  %r = train.matmul %p, %q batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  return %r : tensor<2x4x8x16xf32>
}

// -----

// A bias for the distance of key and token, and behind it the causal choice: the mask stays, and attention is causal. A
// choice of another kind joins the bias in one mask.
// CHECK-LABEL: func.func @biased
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x8x16xf32>, %[[OTHER:.*]]: tensor<2x4x8x8xi1>)
func.func @biased(%q: tensor<2x4x8x16xf32>, %c1: tensor<2x4x8x8xi1>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) {
  // CHECK: %[[BIAS:.*]] = train.constant dense<-5.000000e-01> : tensor<2x4x8x8xf32>
  // CHECK: train.attention %[[Q]], %[[Q]], %[[Q]] mask %[[BIAS]] scale 2.500000e-01 causal
  // CHECK: %[[BOTH:.*]] = train.select %[[OTHER]], %{{.*}}, %[[BIAS]]
  // CHECK: train.attention %[[Q]], %[[Q]], %[[Q]] mask %[[BOTH]] scale 2.500000e-01 :
  %low = train.constant dense<-3.40282347E+38> : tensor<2x4x8x8xf32>
  %quarter = train.constant dense<0.25> : tensor<2x4x8x8xf32>
  %b = train.constant dense<-0.5> : tensor<4x8xf32>
  %bias = train.broadcast %b dims [1, 3] : tensor<4x8xf32> -> tensor<2x4x8x8xf32>
  %column = train.iota 1 start 0.0 step 1.0 : tensor<8x8xi64>
  %row = train.iota 0 start 0.0 step 1.0 : tensor<8x8xi64>
  %late = train.compare greater %column, %row : tensor<8x8xi64> -> tensor<8x8xi1>
  %c = train.broadcast %late dims [2, 3] : tensor<8x8xi1> -> tensor<2x4x8x8xi1>
  %s = train.matmul %q, %q batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x8xf32>
  %t = train.mul %s, %quarter : tensor<2x4x8x8xf32>
  %a = train.add %t, %bias : tensor<2x4x8x8xf32>
  %m = train.select %c, %low, %a : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p = train.softmax %m : tensor<2x4x8x8xf32>
  %r = train.matmul %p, %q batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  %m1 = train.select %c1, %low, %a : tensor<2x4x8x8xi1>, tensor<2x4x8x8xf32>
  %p1 = train.softmax %m1 : tensor<2x4x8x8xf32>
  %r1 = train.matmul %p1, %q batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  return %r, %r1 : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>
}
