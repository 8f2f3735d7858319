// RUN: windlass-opt %s -train-recognize-norms | FileCheck %s

// CHECK-LABEL: func.func @chain
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>
func.func @chain(%x: tensor<4x8xf32>, %scale: tensor<8xf32>, %bias: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[R:.*]], %{{.*}}, %{{.*}} = train.layer_norm %[[X]], %[[S]], %[[B]] epsilon 9.99{{[0-9]+}}E-6
  // CHECK: return %[[R]]
  %n = train.constant dense<0.125> : tensor<4xf32>
  %eps = train.constant dense<1.0e-5> : tensor<4xf32>
  %s0 = train.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m0 = train.mul %s0, %n : tensor<4xf32>
  %m = train.broadcast %m0 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %d = train.sub %x, %m : tensor<4x8xf32>
  %dd = train.mul %d, %d : tensor<4x8xf32>
  %s1 = train.reduce sum %dd dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %v = train.mul %s1, %n : tensor<4xf32>
  %ve = train.add %v, %eps : tensor<4xf32>
  %r = train.sqrt %ve : tensor<4xf32>
  %rb = train.broadcast %r dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %y = train.div %d, %rb : tensor<4x8xf32>
  %sb = train.broadcast %scale dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %ys = train.mul %y, %sb : tensor<4x8xf32>
  %bb = train.broadcast %bias dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %o = train.add %ys, %bb : tensor<4x8xf32>
  return %o : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @other_mean
func.func @other_mean(%x: tensor<4x8xf32>, %scale: tensor<8xf32>, %bias: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: train.layer_norm
  // CHECK: train.reduce
  %n = train.constant dense<0.25> : tensor<4xf32>
  %eps = train.constant dense<1.0e-5> : tensor<4xf32>
  %s0 = train.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m0 = train.mul %s0, %n : tensor<4xf32>
  %m = train.broadcast %m0 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %d = train.sub %x, %m : tensor<4x8xf32>
  %dd = train.mul %d, %d : tensor<4x8xf32>
  %s1 = train.reduce sum %dd dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %v = train.mul %s1, %n : tensor<4xf32>
  %ve = train.add %v, %eps : tensor<4xf32>
  %r = train.sqrt %ve : tensor<4xf32>
  %rb = train.broadcast %r dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %y = train.div %d, %rb : tensor<4x8xf32>
  %sb = train.broadcast %scale dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %ys = train.mul %y, %sb : tensor<4x8xf32>
  %bb = train.broadcast %bias dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %o = train.add %ys, %bb : tensor<4x8xf32>
  return %o : tensor<4x8xf32>
}

// The exporter's chain of RMS norm.
// CHECK-LABEL: func.func @rms
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<8xf32>
func.func @rms(%x: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[R:.*]], %{{.*}} = train.rms_norm %[[X]], %[[S]] epsilon 9.99{{[0-9]+}}E-6
  // CHECK: return %[[R]]
  %n = train.constant dense<0.125> : tensor<4xf32>
  %eps = train.constant dense<1.0e-5> : tensor<4x1xf32>
  %xx = train.mul %x, %x : tensor<4x8xf32>
  %s = train.reduce sum %xx dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m = train.mul %s, %n : tensor<4xf32>
  %k = train.reshape %m : tensor<4xf32> -> tensor<4x1xf32>
  %e = train.add %k, %eps : tensor<4x1xf32>
  %r = train.sqrt %e : tensor<4x1xf32>
  %i = train.reciprocal %r : tensor<4x1xf32>
  %f = train.reshape %i : tensor<4x1xf32> -> tensor<4xf32>
  %b = train.broadcast %f dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %y = train.mul %x, %b : tensor<4x8xf32>
  %sb = train.broadcast %scale dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %o = train.mul %sb, %y : tensor<4x8xf32>
  return %o : tensor<4x8xf32>
}

// The scale first, a quotient instead of a reciprocal, and rows that are a product themselves.
// CHECK-LABEL: func.func @rms_of_product
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<8xf32>
func.func @rms_of_product(%a: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: %[[X:.*]] = train.mul %[[A]], %{{.*}}
  // CHECK: train.rms_norm %[[X]], %[[S]]
  %n = train.constant dense<8.0> : tensor<4xf32>
  %eps = train.constant dense<1.0e-5> : tensor<4xf32>
  %two = train.constant dense<2.0> : tensor<4x8xf32>
  %x = train.mul %a, %two : tensor<4x8xf32>
  %xx = train.mul %x, %x : tensor<4x8xf32>
  %s = train.reduce sum %xx dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m = train.div %s, %n : tensor<4xf32>
  %e = train.add %eps, %m : tensor<4xf32>
  %r = train.sqrt %e : tensor<4xf32>
  %b = train.broadcast %r dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %sb = train.broadcast %scale dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %y = train.mul %sb, %x : tensor<4x8xf32>
  %o = train.div %y, %b : tensor<4x8xf32>
  return %o : tensor<4x8xf32>
}

// Centered rows without a bias are a layer norm.
// CHECK-LABEL: func.func @no_bias
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<8xf32>
func.func @no_bias(%x: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: train.rms_norm
  // CHECK: train.layer_norm %[[X]], %[[S]] epsilon
  %n = train.constant dense<0.125> : tensor<4xf32>
  %eps = train.constant dense<1.0e-5> : tensor<4xf32>
  %s0 = train.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m0 = train.mul %s0, %n : tensor<4xf32>
  %m = train.broadcast %m0 dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %d = train.sub %x, %m : tensor<4x8xf32>
  %dd = train.mul %d, %d : tensor<4x8xf32>
  %s1 = train.reduce sum %dd dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %v = train.mul %s1, %n : tensor<4xf32>
  %ve = train.add %v, %eps : tensor<4xf32>
  %r = train.rsqrt %ve : tensor<4xf32>
  %rb = train.broadcast %r dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %sb = train.broadcast %scale dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %w = train.mul %rb, %sb : tensor<4x8xf32>
  %o = train.mul %d, %w : tensor<4x8xf32>
  return %o : tensor<4x8xf32>
}

// The mean square of other rows than those that are scaled.
// CHECK-LABEL: func.func @other_rows
func.func @other_rows(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>, %scale: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK-NOT: norm
  // CHECK: return
  %n = train.constant dense<0.125> : tensor<4xf32>
  %eps = train.constant dense<1.0e-5> : tensor<4xf32>
  %xx = train.mul %x, %x : tensor<4x8xf32>
  %s = train.reduce sum %xx dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %m = train.mul %s, %n : tensor<4xf32>
  %e = train.add %m, %eps : tensor<4xf32>
  %r = train.rsqrt %e : tensor<4xf32>
  %b = train.broadcast %r dims [0] : tensor<4xf32> -> tensor<4x8xf32>
  %y = train.mul %z, %b : tensor<4x8xf32>
  %sb = train.broadcast %scale dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %o = train.mul %y, %sb : tensor<4x8xf32>
  return %o : tensor<4x8xf32>
}
