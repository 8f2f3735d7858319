// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=muon micro-batches=2" -train-verify-functions | FileCheck %s
// RUN: windlass-opt %s -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=muon micro-batches=2" -train-lower-precision=precision=bf16 | FileCheck %s --check-prefix=BF16
// RUN: windlass-opt %s -train-differentiate="micro-batches=2 scales-loss=true" -train-add-optimizer="optimizer=muon micro-batches=2" | FileCheck %s --check-prefix=SCALED

// A matrix that a product reads takes Muon's step. The bias, the positions, the table of an embedding and the matrix of
// the logits take that of AdamW.
// CHECK: optimizer = "muon"
// CHECK: train.parameter state @table.exp_avg "table/exp_avg"
// CHECK: train.parameter state @positions.exp_avg_sq "positions/exp_avg_sq"
// CHECK: train.parameter state @w.momentum_buffer "w/momentum_buffer" : tensor<4x6xf32>
// CHECK-NOT: @w.exp_avg
// CHECK: train.parameter state @b.exp_avg "b/exp_avg"
// CHECK: train.parameter state @head.exp_avg "head/exp_avg"
// CHECK-LABEL: func.func @update
// CHECK-NOT: momentum_buffer
// CHECK: train.adamw {{.*}} {train.id = "update/positions/adamw"}
// CHECK: %[[OLD:.*]] = train.read @w :
// CHECK: %[[BUFFER:.*]], %[[DIRECTION:.*]] = train.momentum
// CHECK: train.write @w.momentum_buffer, %[[BUFFER]]
// CHECK: train.square_sum %[[DIRECTION]]
// CHECK: %[[X:.*]] = train.mul %[[DIRECTION]], %{{.*}} : tensor<4x6xf32> {train.id = "update/w/normalized"}
// CHECK: %[[GRAM:.*]] = train.matmul %[[X]], %[[X]] batch [] x [] contract [1] x [1] : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x4xf32> {train.id = "update/w/iteration_0/gram"}
// CHECK: train.matmul %[[GRAM]], %[[GRAM]] batch [] x [] contract [1] x [0]
// CHECK: %[[LAST:.*]] = train.add {{.*}} {train.id = "update/w/iteration_4/sum"}
// CHECK: train.constant dense<0.489897{{.*}}> : tensor<f32>
// CHECK: %[[DECAY:.*]] = train.mul {{.*}} {train.id = "update/w/decay"}
// CHECK: %[[NEW:.*]] = train.descend %[[OLD]], %[[LAST]], %{{.*}}, %[[DECAY]] {train.id = "update/w/descend"}
// CHECK: train.write @w, %[[NEW]]
// CHECK: train.adamw {{.*}} {train.id = "update/b/adamw"}
// CHECK: train.adamw {{.*}} {train.id = "update/head/adamw"}

// The products read bf16, each value converted once, and add up in f32.
// BF16-LABEL: func.func @update
// BF16: %[[X:.*]] = train.cast %{{.*}} : tensor<4x6xf32> -> tensor<4x6xbf16> {train.id = "update/w/normalized/cast"}
// BF16-NOT: train.cast
// BF16: train.matmul %[[X]], %[[X]] {{.*}} wide : tensor<4x6xbf16>, tensor<4x6xbf16> -> tensor<4x4xf32> {train.id = "update/w/iteration_0/gram"}

// Where gradients have overflowed, the direction is zero, and the weight does not shrink.
// SCALED: %[[IS_FINITE:.*]] = train.compare {{.*}} {train.id = "update/is_finite"}
// SCALED: %[[DECAY:.*]] = train.mul {{.*}} {train.id = "update/w/decay"}
// SCALED: %[[KEPT:.*]] = train.select %[[IS_FINITE]], %[[DECAY]], %{{.*}} {train.id = "update/w/finite_decay"}
// SCALED: train.descend %{{.*}}, %{{.*}}, %{{.*}}, %[[KEPT]] {train.id = "update/w/descend"}
train.parameter weight @table "table" : tensor<8x4xf32> from <packed> {trainable}
train.parameter weight @positions "positions" : tensor<3x4xf32> from <packed> {trainable}
train.parameter weight @w "w" : tensor<4x6xf32> from <packed> {trainable}
train.parameter weight @b "b" : tensor<8xf32> from <packed> {trainable}
train.parameter weight @head "head" : tensor<8x6xf32> from <packed> {trainable}
func.func @loss(%ids: tensor<3xi64> {train.input = "ids", train.vocabulary = 8 : i64}) -> tensor<f32> {
  %table = train.read @table : tensor<8x4xf32> {train.id = "table"}
  %positions = train.read @positions : tensor<3x4xf32> {train.id = "positions"}
  %w = train.read @w : tensor<4x6xf32> {train.id = "w"}
  %b = train.read @b : tensor<8xf32> {train.id = "b"}
  %head = train.read @head : tensor<8x6xf32> {train.id = "head"}
  %words = train.embedding %table, %ids : tensor<8x4xf32>, tensor<3xi64> -> tensor<3x4xf32> {train.id = "words"}
  %x = train.add %words, %positions : tensor<3x4xf32> {train.id = "x"}
  %h = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<3x4xf32>, tensor<4x6xf32> -> tensor<3x6xf32> {train.id = "h"}
  %turned = train.transpose %head [1, 0] : tensor<8x6xf32> -> tensor<6x8xf32> {train.id = "turned"}
  %product = train.matmul %h, %turned batch [] x [] contract [1] x [0] : tensor<3x6xf32>, tensor<6x8xf32> -> tensor<3x8xf32> {train.id = "product"}
  %biases = train.broadcast %b dims [1] : tensor<8xf32> -> tensor<3x8xf32> {train.id = "biases"}
  %logits = train.add %product, %biases : tensor<3x8xf32> {train.id = "logits"}
  %sum, %count, %log = train.softmax_cross_entropy %logits, %ids ignore -100 {train.id = "xent"} : (tensor<3x8xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<f32>, tensor<3xf32>)
  %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
  return %loss : tensor<f32>
}
