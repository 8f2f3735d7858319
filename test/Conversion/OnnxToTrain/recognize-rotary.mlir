// RUN: windlass-opt %s -train-recognize-rotary -split-input-file | FileCheck %s

train.parameter buffer @inverse "inverse" : tensor<8x16xf32> from #train.source<packed>

// The exporter's form; a buffer leads to the tables.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[X:.*]]: tensor<2x4x8x16xf32>
func.func @halves(%x: tensor<2x4x8x16xf32>) -> tensor<2x4x8x16xf32> {
  // CHECK-DAG: %[[C:.*]] = train.cos
  // CHECK-DAG: %[[S:.*]] = train.sin
  // CHECK: %[[R:.*]] = train.rotary %[[X]], %[[C]], %[[S]] : tensor<2x4x8x16xf32>
  // CHECK: return %[[R]]
  %angles = train.read @inverse : tensor<8x16xf32>
  %c = train.cos %angles : tensor<8x16xf32>
  %s = train.sin %angles : tensor<8x16xf32>
  %cb = train.broadcast %c dims [2, 3] : tensor<8x16xf32> -> tensor<2x4x8x16xf32>
  %sb = train.broadcast %s dims [2, 3] : tensor<8x16xf32> -> tensor<2x4x8x16xf32>
  %x1 = train.slice %x from [0, 0, 0, 0] sizes [2, 4, 8, 8] : tensor<2x4x8x16xf32> -> tensor<2x4x8x8xf32>
  %x2 = train.slice %x from [0, 0, 0, 8] sizes [2, 4, 8, 8] : tensor<2x4x8x16xf32> -> tensor<2x4x8x8xf32>
  %n = train.neg %x2 : tensor<2x4x8x8xf32>
  %t = train.concat %n, %x1 axis 3 : tensor<2x4x8x8xf32>, tensor<2x4x8x8xf32> -> tensor<2x4x8x16xf32>
  %a = train.mul %x, %cb : tensor<2x4x8x16xf32>
  %b = train.mul %t, %sb : tensor<2x4x8x16xf32>
  %r = train.add %a, %b : tensor<2x4x8x16xf32>
  return %r : tensor<2x4x8x16xf32>
}

// -----

// Other orders of the operands, a split and a product with -1.
// CHECK-LABEL: func.func @orders
// CHECK-SAME: %[[X:.*]]: tensor<2x8x16xf32>, %[[C:.*]]: tensor<8x16xf32>, %[[S:.*]]: tensor<8x16xf32>
func.func @orders(%x: tensor<2x8x16xf32>, %c: tensor<8x16xf32>, %s: tensor<8x16xf32>) -> tensor<2x8x16xf32> {
  // CHECK: train.rotary %[[X]], %[[C]], %[[S]]
  %cb = train.broadcast %c dims [1, 2] : tensor<8x16xf32> -> tensor<2x8x16xf32>
  %sb = train.broadcast %s dims [1, 2] : tensor<8x16xf32> -> tensor<2x8x16xf32>
  %minus = train.constant dense<-1.0> : tensor<2x8x8xf32>
  %x1, %x2 = train.split %x axis 2 sizes [8, 8] : tensor<2x8x16xf32> -> tensor<2x8x8xf32>, tensor<2x8x8xf32>
  %n = train.mul %minus, %x2 : tensor<2x8x8xf32>
  %t = train.concat %n, %x1 axis 2 : tensor<2x8x8xf32>, tensor<2x8x8xf32> -> tensor<2x8x16xf32>
  %a = train.mul %cb, %x : tensor<2x8x16xf32>
  %b = train.mul %sb, %t : tensor<2x8x16xf32>
  %r = train.add %b, %a : tensor<2x8x16xf32>
  return %r : tensor<2x8x16xf32>
}

// -----

// A batch of one leaves a dim of size 1 in front of the tables.
// CHECK-LABEL: func.func @one_sample
// CHECK-SAME: %[[X:.*]]: tensor<1x4x8x16xf32>, %[[T:.*]]: tensor<1x8x16xf32>
func.func @one_sample(%x: tensor<1x4x8x16xf32>, %t: tensor<1x8x16xf32>) -> tensor<1x4x8x16xf32> {
  // CHECK-DAG: %[[C:.*]] = train.reshape %[[T]] : tensor<1x8x16xf32> -> tensor<8x16xf32>
  // CHECK: train.rotary %[[X]], %[[C]], %{{.*}} : tensor<1x4x8x16xf32>
  %tb = train.broadcast %t dims [0, 2, 3] : tensor<1x8x16xf32> -> tensor<1x4x8x16xf32>
  %x1, %x2 = train.split %x axis 3 sizes [8, 8] : tensor<1x4x8x16xf32> -> tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>
  %n = train.neg %x2 : tensor<1x4x8x8xf32>
  %h = train.concat %n, %x1 axis 3 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x16xf32>
  %a = train.mul %x, %tb : tensor<1x4x8x16xf32>
  %b = train.mul %h, %tb : tensor<1x4x8x16xf32>
  %r = train.add %a, %b : tensor<1x4x8x16xf32>
  return %r : tensor<1x4x8x16xf32>
}

// -----

train.parameter weight @w "w" : tensor<8x16xf32> from #train.source<packed> {trainable}

// Tables that train would get no gradient; and the halves must not change places.
// CHECK-LABEL: func.func @trained
func.func @trained(%x: tensor<2x8x16xf32>, %s: tensor<8x16xf32>) -> tensor<2x8x16xf32> {
  // CHECK-NOT: train.rotary
  // CHECK: return
  %c = train.read @w : tensor<8x16xf32>
  %cb = train.broadcast %c dims [1, 2] : tensor<8x16xf32> -> tensor<2x8x16xf32>
  %sb = train.broadcast %s dims [1, 2] : tensor<8x16xf32> -> tensor<2x8x16xf32>
  %x1, %x2 = train.split %x axis 2 sizes [8, 8] : tensor<2x8x16xf32> -> tensor<2x8x8xf32>, tensor<2x8x8xf32>
  %n = train.neg %x2 : tensor<2x8x8xf32>
  %t = train.concat %n, %x1 axis 2 : tensor<2x8x8xf32>, tensor<2x8x8xf32> -> tensor<2x8x16xf32>
  %a = train.mul %x, %cb : tensor<2x8x16xf32>
  %b = train.mul %t, %sb : tensor<2x8x16xf32>
  %r = train.add %a, %b : tensor<2x8x16xf32>
  return %r : tensor<2x8x16xf32>
}

// CHECK-LABEL: func.func @swapped
func.func @swapped(%x: tensor<2x8x16xf32>, %c: tensor<8x16xf32>, %s: tensor<8x16xf32>) -> tensor<2x8x16xf32> {
  // CHECK-NOT: train.rotary
  // CHECK: return
  %cb = train.broadcast %c dims [1, 2] : tensor<8x16xf32> -> tensor<2x8x16xf32>
  %sb = train.broadcast %s dims [1, 2] : tensor<8x16xf32> -> tensor<2x8x16xf32>
  %x1, %x2 = train.split %x axis 2 sizes [8, 8] : tensor<2x8x16xf32> -> tensor<2x8x8xf32>, tensor<2x8x8xf32>
  %n = train.neg %x1 : tensor<2x8x8xf32>
  %t = train.concat %n, %x2 axis 2 : tensor<2x8x8xf32>, tensor<2x8x8xf32> -> tensor<2x8x16xf32>
  %a = train.mul %x, %cb : tensor<2x8x16xf32>
  %b = train.mul %t, %sb : tensor<2x8x16xf32>
  %r = train.add %a, %b : tensor<2x8x16xf32>
  return %r : tensor<2x8x16xf32>
}
