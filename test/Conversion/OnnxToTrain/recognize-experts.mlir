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
