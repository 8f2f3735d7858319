// RUN: windlass-opt %s -train-recognize-activations | FileCheck %s

// CHECK-LABEL: func.func @gelu_tanh(%arg0
func.func @gelu_tanh(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[Y:.*]] = train.gelu_tanh %arg0
  // CHECK: return %[[Y]]
  %half = train.constant dense<0.5> : tensor<8xf32>
  %three = train.constant dense<3.0> : tensor<8xf32>
  %c = train.constant dense<0.044715> : tensor<8xf32>
  %d = train.constant dense<0.797884583> : tensor<8xf32>
  %one = train.constant dense<1.0> : tensor<8xf32>
  %h = train.mul %x, %half : tensor<8xf32>
  %p = train.pow %x, %three : tensor<8xf32>
  %s = train.mul %p, %c : tensor<8xf32>
  %a = train.add %x, %s : tensor<8xf32>
  %i = train.mul %a, %d : tensor<8xf32>
  %t = train.tanh %i : tensor<8xf32>
  %o = train.add %t, %one : tensor<8xf32>
  %y = train.mul %h, %o : tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @gelu_erf(%arg0
func.func @gelu_erf(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: train.gelu_erf %arg0
  %root = train.constant dense<1.41421354> : tensor<8xf32>
  %one = train.constant dense<1.0> : tensor<8xf32>
  %half = train.constant dense<0.5> : tensor<8xf32>
  %i = train.div %x, %root : tensor<8xf32>
  %e = train.erf %i : tensor<8xf32>
  %o = train.add %one, %e : tensor<8xf32>
  %p = train.mul %x, %o : tensor<8xf32>
  %y = train.mul %p, %half : tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @silu(%arg0
func.func @silu(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: train.silu %arg0
  %s = train.sigmoid %x : tensor<8xf32>
  %y = train.mul %s, %x : tensor<8xf32>
  return %y : tensor<8xf32>
}

// The tanh form with x taken out of the sum.
// CHECK-LABEL: func.func @fast(%arg0
func.func @fast(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: train.gelu_tanh %arg0
  %half = train.constant dense<0.5> : tensor<8xf32>
  %one = train.constant dense<1.0> : tensor<8xf32>
  %root = train.constant dense<0.7978845608> : tensor<8xf32>
  %cubic = train.constant dense<0.044715> : tensor<8xf32>
  %cx = train.mul %x, %cubic : tensor<8xf32>
  %cxx = train.mul %cx, %x : tensor<8xf32>
  %s = train.add %one, %cxx : tensor<8xf32>
  %rx = train.mul %x, %root : tensor<8xf32>
  %i = train.mul %rx, %s : tensor<8xf32>
  %t = train.tanh %i : tensor<8xf32>
  %o = train.add %one, %t : tensor<8xf32>
  %h = train.mul %x, %half : tensor<8xf32>
  %y = train.mul %h, %o : tensor<8xf32>
  return %y : tensor<8xf32>
}

// Another constant is another function.
// CHECK-LABEL: func.func @almost
func.func @almost(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NOT: train.gelu
  // CHECK: train.erf
  %root = train.constant dense<1.5> : tensor<8xf32>
  %one = train.constant dense<1.0> : tensor<8xf32>
  %half = train.constant dense<0.5> : tensor<8xf32>
  %i = train.div %x, %root : tensor<8xf32>
  %e = train.erf %i : tensor<8xf32>
  %o = train.add %one, %e : tensor<8xf32>
  %p = train.mul %x, %o : tensor<8xf32>
  %y = train.mul %p, %half : tensor<8xf32>
  return %y : tensor<8xf32>
}
