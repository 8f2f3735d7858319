// RUN: windlass-opt %s -train-recognize-experts -split-input-file | FileCheck %s

// Matrices are gathered for each choice; one half of the hidden values is activated and multiplies the other.
// CHECK-LABEL: func.func @gathered
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[C:.*]]: tensor<8x2xi64>, %[[W:.*]]: tensor<8x2xf32>, %[[U:.*]]: tensor<3x10x4xf32>, %[[D:.*]]: tensor<3x6x5xf32>
func.func @gathered(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x10x4xf32>,
                    %d: tensor<3x6x5xf32>) -> tensor<8x6xf32> {
  // CHECK-NEXT: %[[R:.*]] = train.experts %[[X]] to %[[C]] by %[[W]] through %[[U]], %[[D]] silu gated :
  // CHECK-NEXT: return %[[R]]
  %tokens = train.broadcast %x dims [0, 2] : tensor<8x4xf32> -> tensor<8x2x4xf32>
  %ids = train.reshape %c : tensor<8x2xi64> -> tensor<16xi64>
  %up = train.gather %u, %ids axis 0 : tensor<3x10x4xf32>, tensor<16xi64> -> tensor<16x10x4xf32>
  %rows = train.reshape %tokens : tensor<8x2x4xf32> -> tensor<16x4x1xf32>
  %h = train.matmul %up, %rows batch [0] x [0] contract [2] x [1] : tensor<16x10x4xf32>, tensor<16x4x1xf32> -> tensor<16x10x1xf32>
  %flat = train.reshape %h : tensor<16x10x1xf32> -> tensor<16x10xf32>
  %halves:2 = train.split %flat axis 1 sizes [5, 5] : tensor<16x10xf32> -> tensor<16x5xf32>, tensor<16x5xf32>
  %act = train.silu %halves#0 : tensor<16x5xf32>
  %gated = train.mul %act, %halves#1 : tensor<16x5xf32>
  %down = train.gather %d, %ids axis 0 : tensor<3x6x5xf32>, tensor<16xi64> -> tensor<16x6x5xf32>
  %column = train.reshape %gated : tensor<16x5xf32> -> tensor<16x5x1xf32>
  %z = train.matmul %down, %column batch [0] x [0] contract [2] x [1] : tensor<16x6x5xf32>, tensor<16x5x1xf32> -> tensor<16x6x1xf32>
  %results = train.reshape %z : tensor<16x6x1xf32> -> tensor<16x6xf32>
  %weights = train.reshape %w : tensor<8x2xf32> -> tensor<16xf32>
  %spread = train.broadcast %weights dims [0] : tensor<16xf32> -> tensor<16x6xf32>
  %weighted = train.mul %results, %spread : tensor<16x6xf32>
  %apart = train.reshape %weighted : tensor<16x6xf32> -> tensor<8x2x6xf32>
  %r = train.reduce sum %apart dims [1] : tensor<8x2x6xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// Rows come first, matrices have inputs first, and nothing is gated.
// CHECK-LABEL: func.func @inputs_first
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[C:.*]]: tensor<8x2xi64>, %[[W:.*]]: tensor<8x2xf32>, %[[U:.*]]: tensor<3x4x5xf32>, %[[D:.*]]: tensor<3x5x6xf32>
func.func @inputs_first(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x4x5xf32>,
                        %d: tensor<3x5x6xf32>) -> tensor<8x6xf32> {
  // CHECK: train.experts %[[X]] to %[[C]] by %[[W]] through %[[U]], %[[D]] gelu_erf inputs_first :
  %tokens = train.broadcast %x dims [0, 2] : tensor<8x4xf32> -> tensor<8x2x4xf32>
  %ids = train.reshape %c : tensor<8x2xi64> -> tensor<16xi64>
  %up = train.gather %u, %ids axis 0 : tensor<3x4x5xf32>, tensor<16xi64> -> tensor<16x4x5xf32>
  %rows = train.reshape %tokens : tensor<8x2x4xf32> -> tensor<16x1x4xf32>
  %h = train.matmul %rows, %up batch [0] x [0] contract [2] x [1] : tensor<16x1x4xf32>, tensor<16x4x5xf32> -> tensor<16x1x5xf32>
  %act = train.gelu_erf %h : tensor<16x1x5xf32>
  %down = train.gather %d, %ids axis 0 : tensor<3x5x6xf32>, tensor<16xi64> -> tensor<16x5x6xf32>
  %z = train.matmul %act, %down batch [0] x [0] contract [2] x [1] : tensor<16x1x5xf32>, tensor<16x5x6xf32> -> tensor<16x1x6xf32>
  %results = train.reshape %z : tensor<16x1x6xf32> -> tensor<8x2x6xf32>
  %spread = train.broadcast %w dims [0, 1] : tensor<8x2xf32> -> tensor<8x2x6xf32>
  %weighted = train.mul %spread, %results : tensor<8x2x6xf32>
  %r = train.reduce sum %weighted dims [1] : tensor<8x2x6xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// All experts compute all tokens; the weights of those that are not chosen are zero.
// CHECK-LABEL: func.func @dense
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[C:.*]]: tensor<8x2xi64>, %[[W:.*]]: tensor<8x2xf32>, %[[U:.*]]: tensor<3x4x5xf32>, %[[D:.*]]: tensor<3x5x6xf32>
func.func @dense(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x4x5xf32>,
                 %d: tensor<3x5x6xf32>) -> tensor<8x6xf32> {
  // CHECK: train.experts %[[X]] to %[[C]] by %[[W]] through %[[U]], %[[D]] relu inputs_first :
  %chosen = train.broadcast %c dims [0, 1] : tensor<8x2xi64> -> tensor<8x2x3xi64>
  %count = train.iota 0 start 0.0 step 1.0 : tensor<3xi64>
  %numbers = train.broadcast %count dims [2] : tensor<3xi64> -> tensor<8x2x3xi64>
  %same = train.compare equal %chosen, %numbers : tensor<8x2x3xi64> -> tensor<8x2x3xi1>
  %hot = train.cast %same : tensor<8x2x3xi1> -> tensor<8x2x3xf32>
  %row = train.reshape %w : tensor<8x2xf32> -> tensor<8x1x2xf32>
  %all = train.matmul %row, %hot batch [0] x [0] contract [2] x [1] : tensor<8x1x2xf32>, tensor<8x2x3xf32> -> tensor<8x1x3xf32>
  %flat = train.reshape %all : tensor<8x1x3xf32> -> tensor<8x3xf32>
  %tokens = train.broadcast %x dims [1, 2] : tensor<8x4xf32> -> tensor<3x8x4xf32>
  %h = train.matmul %tokens, %u batch [0] x [0] contract [2] x [1] : tensor<3x8x4xf32>, tensor<3x4x5xf32> -> tensor<3x8x5xf32>
  %act = train.relu %h : tensor<3x8x5xf32>
  %z = train.matmul %act, %d batch [0] x [0] contract [2] x [1] : tensor<3x8x5xf32>, tensor<3x5x6xf32> -> tensor<3x8x6xf32>
  %turned = train.transpose %flat [1, 0] : tensor<8x3xf32> -> tensor<3x8xf32>
  %spread = train.broadcast %turned dims [0, 1] : tensor<3x8xf32> -> tensor<3x8x6xf32>
  %weighted = train.mul %z, %spread : tensor<3x8x6xf32>
  %r = train.reduce sum %weighted dims [0] : tensor<3x8x6xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// A gate and a hidden value lie side by side: the halves are those of pairs.
// CHECK-LABEL: func.func @pairs
// CHECK-NOT: train.experts
func.func @pairs(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x4x10xf32>,
                 %d: tensor<3x5x6xf32>) -> tensor<8x6xf32> {
  %tokens = train.broadcast %x dims [0, 2] : tensor<8x4xf32> -> tensor<8x2x4xf32>
  %ids = train.reshape %c : tensor<8x2xi64> -> tensor<16xi64>
  %up = train.gather %u, %ids axis 0 : tensor<3x4x10xf32>, tensor<16xi64> -> tensor<16x4x10xf32>
  %rows = train.reshape %tokens : tensor<8x2x4xf32> -> tensor<16x1x4xf32>
  %h = train.matmul %rows, %up batch [0] x [0] contract [2] x [1] : tensor<16x1x4xf32>, tensor<16x4x10xf32> -> tensor<16x1x10xf32>
  %pairs = train.reshape %h : tensor<16x1x10xf32> -> tensor<16x5x2xf32>
  %gate = train.slice %pairs from [0, 0, 0] sizes [16, 5, 1] : tensor<16x5x2xf32> -> tensor<16x5x1xf32>
  %value = train.slice %pairs from [0, 0, 1] sizes [16, 5, 1] : tensor<16x5x2xf32> -> tensor<16x5x1xf32>
  %act = train.silu %gate : tensor<16x5x1xf32>
  %gated = train.mul %act, %value : tensor<16x5x1xf32>
  %row = train.reshape %gated : tensor<16x5x1xf32> -> tensor<16x1x5xf32>
  %down = train.gather %d, %ids axis 0 : tensor<3x5x6xf32>, tensor<16xi64> -> tensor<16x5x6xf32>
  %z = train.matmul %row, %down batch [0] x [0] contract [2] x [1] : tensor<16x1x5xf32>, tensor<16x5x6xf32> -> tensor<16x1x6xf32>
  %results = train.reshape %z : tensor<16x1x6xf32> -> tensor<8x2x6xf32>
  %spread = train.broadcast %w dims [0, 1] : tensor<8x2xf32> -> tensor<8x2x6xf32>
  %weighted = train.mul %spread, %results : tensor<8x2x6xf32>
  %r = train.reduce sum %weighted dims [1] : tensor<8x2x6xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// The second matrices are of more experts than the first.
// CHECK-LABEL: func.func @two_numbers
// CHECK-NOT: train.experts
func.func @two_numbers(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x4x5xf32>,
                       %d: tensor<4x5x6xf32>) -> tensor<8x6xf32> {
  %tokens = train.broadcast %x dims [0, 2] : tensor<8x4xf32> -> tensor<8x2x4xf32>
  %ids = train.reshape %c : tensor<8x2xi64> -> tensor<16xi64>
  %up = train.gather %u, %ids axis 0 : tensor<3x4x5xf32>, tensor<16xi64> -> tensor<16x4x5xf32>
  %rows = train.reshape %tokens : tensor<8x2x4xf32> -> tensor<16x1x4xf32>
  %h = train.matmul %rows, %up batch [0] x [0] contract [2] x [1] : tensor<16x1x4xf32>, tensor<16x4x5xf32> -> tensor<16x1x5xf32>
  %act = train.relu %h : tensor<16x1x5xf32>
  %down = train.gather %d, %ids axis 0 : tensor<4x5x6xf32>, tensor<16xi64> -> tensor<16x5x6xf32>
  %z = train.matmul %act, %down batch [0] x [0] contract [2] x [1] : tensor<16x1x5xf32>, tensor<16x5x6xf32> -> tensor<16x1x6xf32>
  %results = train.reshape %z : tensor<16x1x6xf32> -> tensor<8x2x6xf32>
  %spread = train.broadcast %w dims [0, 1] : tensor<8x2xf32> -> tensor<8x2x6xf32>
  %weighted = train.mul %spread, %results : tensor<8x2x6xf32>
  %r = train.reduce sum %weighted dims [1] : tensor<8x2x6xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// Weights of all experts that come from elsewhere stay: each expert may have some.
// CHECK-LABEL: func.func @soft
// CHECK-NOT: train.experts
func.func @soft(%x: tensor<8x4xf32>, %w: tensor<8x3xf32>, %u: tensor<3x4x5xf32>, %d: tensor<3x5x6xf32>) -> tensor<8x6xf32> {
  %tokens = train.broadcast %x dims [1, 2] : tensor<8x4xf32> -> tensor<3x8x4xf32>
  %h = train.matmul %tokens, %u batch [0] x [0] contract [2] x [1] : tensor<3x8x4xf32>, tensor<3x4x5xf32> -> tensor<3x8x5xf32>
  %act = train.relu %h : tensor<3x8x5xf32>
  %z = train.matmul %act, %d batch [0] x [0] contract [2] x [1] : tensor<3x8x5xf32>, tensor<3x5x6xf32> -> tensor<3x8x6xf32>
  %turned = train.transpose %w [1, 0] : tensor<8x3xf32> -> tensor<3x8xf32>
  %spread = train.broadcast %turned dims [0, 1] : tensor<3x8xf32> -> tensor<3x8x6xf32>
  %weighted = train.mul %z, %spread : tensor<3x8x6xf32>
  %r = train.reduce sum %weighted dims [0] : tensor<3x8x6xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// The two products are of different choices.
// CHECK-LABEL: func.func @two_choices
// CHECK-NOT: train.experts
func.func @two_choices(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %e: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x4x5xf32>,
                       %d: tensor<3x5x6xf32>) -> tensor<8x6xf32> {
  %tokens = train.broadcast %x dims [0, 2] : tensor<8x4xf32> -> tensor<8x2x4xf32>
  %ids = train.reshape %c : tensor<8x2xi64> -> tensor<16xi64>
  %others = train.reshape %e : tensor<8x2xi64> -> tensor<16xi64>
  %up = train.gather %u, %ids axis 0 : tensor<3x4x5xf32>, tensor<16xi64> -> tensor<16x4x5xf32>
  %rows = train.reshape %tokens : tensor<8x2x4xf32> -> tensor<16x1x4xf32>
  %h = train.matmul %rows, %up batch [0] x [0] contract [2] x [1] : tensor<16x1x4xf32>, tensor<16x4x5xf32> -> tensor<16x1x5xf32>
  %act = train.relu %h : tensor<16x1x5xf32>
  %down = train.gather %d, %others axis 0 : tensor<3x5x6xf32>, tensor<16xi64> -> tensor<16x5x6xf32>
  %z = train.matmul %act, %down batch [0] x [0] contract [2] x [1] : tensor<16x1x5xf32>, tensor<16x5x6xf32> -> tensor<16x1x6xf32>
  %results = train.reshape %z : tensor<16x1x6xf32> -> tensor<8x2x6xf32>
  %spread = train.broadcast %w dims [0, 1] : tensor<8x2xf32> -> tensor<8x2x6xf32>
  %weighted = train.mul %spread, %results : tensor<8x2x6xf32>
  %r = train.reduce sum %weighted dims [1] : tensor<8x2x6xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// Matrices keep the dims of tokens and choices, and the gate has matrices of its own; the weighted sum is a product.
// CHECK-LABEL: func.func @einsums
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[C:.*]]: tensor<8x2xi64>, %[[W:.*]]: tensor<8x2xf32>, %[[G:.*]]: tensor<3x5x4xf32>, %[[U:.*]]: tensor<3x5x4xf32>, %[[D:.*]]: tensor<3x6x5xf32>
func.func @einsums(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %g: tensor<3x5x4xf32>, %u: tensor<3x5x4xf32>,
                   %d: tensor<3x6x5xf32>) -> tensor<8x6xf32> {
  // CHECK-NEXT: %[[R:.*]] = train.experts %[[X]] to %[[C]] by %[[W]] through %[[U]], %[[D]] gate %[[G]] silu :
  // CHECK-NEXT: return %[[R]]
  %gates = train.gather %g, %c axis 0 : tensor<3x5x4xf32>, tensor<8x2xi64> -> tensor<8x2x5x4xf32>
  %ups = train.gather %u, %c axis 0 : tensor<3x5x4xf32>, tensor<8x2xi64> -> tensor<8x2x5x4xf32>
  %downs = train.gather %d, %c axis 0 : tensor<3x6x5xf32>, tensor<8x2xi64> -> tensor<8x2x6x5xf32>
  %a = train.matmul %x, %gates batch [0] x [0] contract [1] x [3] : tensor<8x4xf32>, tensor<8x2x5x4xf32> -> tensor<8x2x5xf32>
  %b = train.matmul %x, %ups batch [0] x [0] contract [1] x [3] : tensor<8x4xf32>, tensor<8x2x5x4xf32> -> tensor<8x2x5xf32>
  %act = train.silu %a : tensor<8x2x5xf32>
  %h = train.mul %b, %act : tensor<8x2x5xf32>
  %z = train.matmul %h, %downs batch [0, 1] x [0, 1] contract [2] x [3] : tensor<8x2x5xf32>, tensor<8x2x6x5xf32> -> tensor<8x2x6xf32>
  %r = train.matmul %z, %w batch [0] x [0] contract [1] x [1] : tensor<8x2x6xf32>, tensor<8x2xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// All experts compute a batch of tokens; the weights of the choices are scattered among zeros.
// CHECK-LABEL: func.func @scattered
// CHECK-SAME: %[[X:.*]]: tensor<2x4x3xf32>, %[[C:.*]]: tensor<8x2xi64>, %[[W:.*]]: tensor<8x2xf32>, %[[G:.*]]: tensor<3x3x5xf32>, %[[U:.*]]: tensor<3x3x5xf32>, %[[D:.*]]: tensor<3x5x6xf32>
func.func @scattered(%x: tensor<2x4x3xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %g: tensor<3x3x5xf32>, %u: tensor<3x3x5xf32>,
                     %d: tensor<3x5x6xf32>) -> tensor<8x6xf32> {
  // CHECK-NEXT: %[[T:.*]] = train.reshape %[[X]] : tensor<2x4x3xf32> -> tensor<8x3xf32>
  // CHECK-NEXT: %[[R:.*]] = train.experts %[[T]] to %[[C]] by %[[W]] through %[[U]], %[[D]] gate %[[G]] gelu_tanh inputs_first :
  // CHECK-NEXT: return %[[R]]
  %zeros = train.constant dense<0.0> : tensor<8x3xf32>
  %ones = train.constant dense<1.0> : tensor<8x2xf32>
  %sums = train.scatter_elements_add %c, %w axis 1 size 3 : tensor<8x2xi64>, tensor<8x2xf32> -> tensor<8x3xf32>
  %count = train.scatter_elements_add %c, %ones axis 1 size 3 : tensor<8x2xi64>, tensor<8x2xf32> -> tensor<8x3xf32>
  %some = train.compare greater %count, %zeros : tensor<8x3xf32> -> tensor<8x3xi1>
  %all = train.select %some, %sums, %zeros : tensor<8x3xi1>, tensor<8x3xf32>
  %a = train.matmul %x, %g batch [] x [] contract [2] x [1] : tensor<2x4x3xf32>, tensor<3x3x5xf32> -> tensor<2x4x3x5xf32>
  %b = train.matmul %x, %u batch [] x [] contract [2] x [1] : tensor<2x4x3xf32>, tensor<3x3x5xf32> -> tensor<2x4x3x5xf32>
  %act = train.gelu_tanh %a : tensor<2x4x3x5xf32>
  %h = train.mul %act, %b : tensor<2x4x3x5xf32>
  %flat = train.reshape %h : tensor<2x4x3x5xf32> -> tensor<8x3x5xf32>
  %z = train.matmul %flat, %d batch [1] x [0] contract [2] x [1] : tensor<8x3x5xf32>, tensor<3x5x6xf32> -> tensor<3x8x6xf32>
  %r = train.matmul %z, %all batch [1] x [0] contract [0] x [1] : tensor<3x8x6xf32>, tensor<8x3xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// The weights of all experts are those of the choices times a one-hot matrix, added up.
// CHECK-LABEL: func.func @one_hot
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32>, %[[C:.*]]: tensor<8x2xi64>, %[[W:.*]]: tensor<8x2xf32>, %[[U:.*]]: tensor<3x4x5xf32>, %[[D:.*]]: tensor<3x5x6xf32>
func.func @one_hot(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x4x5xf32>, %d: tensor<3x5x6xf32>) -> tensor<8x6xf32> {
  // CHECK-NEXT: train.experts %[[X]] to %[[C]] by %[[W]] through %[[U]], %[[D]] relu inputs_first :
  %chosen = train.broadcast %c dims [0, 1] : tensor<8x2xi64> -> tensor<8x2x3xi64>
  %count = train.iota 0 start 0.0 step 1.0 : tensor<3xi64>
  %numbers = train.broadcast %count dims [2] : tensor<3xi64> -> tensor<8x2x3xi64>
  %same = train.compare equal %numbers, %chosen : tensor<8x2x3xi64> -> tensor<8x2x3xi1>
  %hot = train.cast %same : tensor<8x2x3xi1> -> tensor<8x2x3xf32>
  %spread = train.broadcast %w dims [0, 1] : tensor<8x2xf32> -> tensor<8x2x3xf32>
  %each = train.mul %spread, %hot : tensor<8x2x3xf32>
  %all = train.reduce sum %each dims [1] : tensor<8x2x3xf32> -> tensor<8x3xf32>
  %tokens = train.broadcast %x dims [1, 2] : tensor<8x4xf32> -> tensor<3x8x4xf32>
  %h = train.matmul %tokens, %u batch [0] x [0] contract [2] x [1] : tensor<3x8x4xf32>, tensor<3x4x5xf32> -> tensor<3x8x5xf32>
  %act = train.relu %h : tensor<3x8x5xf32>
  %z = train.matmul %act, %d batch [0] x [0] contract [2] x [1] : tensor<3x8x5xf32>, tensor<3x5x6xf32> -> tensor<3x8x6xf32>
  %r = train.matmul %all, %z batch [0] x [1] contract [1] x [0] : tensor<8x3xf32>, tensor<3x8x6xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// Where the weights are not scattered to the places that are asked for, others may be kept.
// CHECK-LABEL: func.func @other_places
// CHECK-NOT: train.experts
func.func @other_places(%x: tensor<8x4xf32>, %c: tensor<8x2xi64>, %e: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x4x5xf32>,
                        %d: tensor<3x5x6xf32>) -> tensor<8x6xf32> {
  %zeros = train.constant dense<0.0> : tensor<8x3xf32>
  %ones = train.constant dense<1.0> : tensor<8x2xf32>
  %sums = train.scatter_elements_add %c, %w axis 1 size 3 : tensor<8x2xi64>, tensor<8x2xf32> -> tensor<8x3xf32>
  %count = train.scatter_elements_add %e, %ones axis 1 size 3 : tensor<8x2xi64>, tensor<8x2xf32> -> tensor<8x3xf32>
  %some = train.compare greater %count, %zeros : tensor<8x3xf32> -> tensor<8x3xi1>
  %all = train.select %some, %sums, %zeros : tensor<8x3xi1>, tensor<8x3xf32>
  %a = train.matmul %x, %u batch [] x [] contract [1] x [1] : tensor<8x4xf32>, tensor<3x4x5xf32> -> tensor<8x3x5xf32>
  %h = train.relu %a : tensor<8x3x5xf32>
  %z = train.matmul %h, %d batch [1] x [0] contract [2] x [1] : tensor<8x3x5xf32>, tensor<3x5x6xf32> -> tensor<3x8x6xf32>
  %r = train.matmul %z, %all batch [1] x [0] contract [0] x [1] : tensor<3x8x6xf32>, tensor<8x3xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// The gate is of other tokens than what it multiplies.
// CHECK-LABEL: func.func @two_inputs
// CHECK-NOT: train.experts
func.func @two_inputs(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>, %c: tensor<8x2xi64>, %w: tensor<8x2xf32>, %u: tensor<3x5x4xf32>,
                      %d: tensor<3x6x5xf32>) -> tensor<8x6xf32> {
  %ups = train.gather %u, %c axis 0 : tensor<3x5x4xf32>, tensor<8x2xi64> -> tensor<8x2x5x4xf32>
  %downs = train.gather %d, %c axis 0 : tensor<3x6x5xf32>, tensor<8x2xi64> -> tensor<8x2x6x5xf32>
  %a = train.matmul %x, %ups batch [0] x [0] contract [1] x [3] : tensor<8x4xf32>, tensor<8x2x5x4xf32> -> tensor<8x2x5xf32>
  %b = train.matmul %y, %ups batch [0] x [0] contract [1] x [3] : tensor<8x4xf32>, tensor<8x2x5x4xf32> -> tensor<8x2x5xf32>
  %act = train.silu %a : tensor<8x2x5xf32>
  %h = train.mul %b, %act : tensor<8x2x5xf32>
  %z = train.matmul %h, %downs batch [0, 1] x [0, 1] contract [2] x [3] : tensor<8x2x5xf32>, tensor<8x2x6x5xf32> -> tensor<8x2x6xf32>
  %r = train.matmul %z, %w batch [0] x [0] contract [1] x [1] : tensor<8x2x6xf32>, tensor<8x2xf32> -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

// -----

// The first matrices are of the experts of another dim than the last ones: of three tokens at a time.
// CHECK-LABEL: func.func @other_experts
// CHECK-NOT: train.experts
func.func @other_experts(%x: tensor<3x4xf32>, %c: tensor<3x2xi64>, %w: tensor<3x2xf32>, %u: tensor<3x4x5xf32>, %d: tensor<3x5x6xf32>) -> tensor<3x6xf32> {
  %all = train.scatter_elements_add %c, %w axis 1 size 3 : tensor<3x2xi64>, tensor<3x2xf32> -> tensor<3x3xf32>
  %a = train.matmul %x, %u batch [0] x [0] contract [1] x [1] : tensor<3x4xf32>, tensor<3x4x5xf32> -> tensor<3x5xf32>
  %act = train.relu %a : tensor<3x5xf32>
  %h = train.broadcast %act dims [0, 2] : tensor<3x5xf32> -> tensor<3x3x5xf32>
  %z = train.matmul %h, %d batch [1] x [0] contract [2] x [1] : tensor<3x3x5xf32>, tensor<3x5x6xf32> -> tensor<3x3x6xf32>
  %r = train.matmul %z, %all batch [1] x [0] contract [0] x [1] : tensor<3x3x6xf32>, tensor<3x3xf32> -> tensor<3x6xf32>
  return %r : tensor<3x6xf32>
}
