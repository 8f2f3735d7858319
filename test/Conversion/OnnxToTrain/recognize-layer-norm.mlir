// RUN: windlass-opt %s -train-recognize-layer-norm | FileCheck %s

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
