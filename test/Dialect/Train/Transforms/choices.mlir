// RUN: windlass-opt %s -split-input-file -train-differentiate -train-add-optimizer=optimizer=sgd -train-lower-precision=precision=bf16 -train-verify-functions -o %t.mlir && FileCheck %s < %t.mlir && windlass-opt %t.mlir -split-input-file -train-verify-functions -o /dev/null

// What a choice is made of is f32, with its weights: the table, the sums past the layers, the norm before the router, the
// router. The layers' products are not, nor their norms and biases, nor what the backward pass is handed over.
// CHECK: train.parameter weight @table "table" : tensor<8x4xf32> from <packed> {{[{](decays, )?trainable[}]}}
// CHECK: train.parameter weight @position "position" : tensor<4xf32> from <packed> {{[{](decays, )?trainable[}]}}
// CHECK: train.parameter weight @first "first" : tensor<4xf32> from <packed> {compute_type = bf16
// CHECK: train.parameter weight @layer "layer" : tensor<4x4xf32> from <packed> {compute_type = bf16
// CHECK: train.parameter weight @bias "bias" : tensor<4xf32> from <packed> {compute_type = bf16
// CHECK: train.parameter weight @second "second" : tensor<4xf32> from <packed> {{[{](decays, )?trainable[}]}}
// CHECK: train.parameter weight @router "router" : tensor<4x3xf32> from <packed> {{[{](decays, )?trainable[}]}}
// CHECK: train.parameter weight @expert "expert" : tensor<4x3x4xf32> from <packed> {compute_type = bf16
// CHECK: train.parameter weight @head "head" : tensor<4xf32> from <packed> {compute_type = bf16
// CHECK-LABEL: func.func @microbatch(
// CHECK: train.embedding {{.*}} : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
// CHECK: train.dropout {{.*}} : tensor<2x4xf32>, tensor<2xi64>
// CHECK: %[[X0:.*]] = train.add {{.*}} : tensor<2x4xf32> {train.id = "add.0"}
// CHECK: %[[N0:.*]] = train.cast %[[X0]] : tensor<2x4xf32> -> tensor<2x4xbf16>
// CHECK: train.rms_norm %[[N0]], {{.*}} : tensor<2x4xbf16>, tensor<4xbf16>
// CHECK: train.matmul {{.*}} : tensor<2x4xbf16>, tensor<4x4xbf16> -> tensor<2x4xbf16>
// CHECK: %[[BIASED:.*]] = train.add {{.*}} : tensor<2x4xbf16> {train.id = "bias.0"}
// CHECK: %[[WIDE:.*]] = train.cast %[[BIASED]] : tensor<2x4xbf16> -> tensor<2x4xf32>
// CHECK: %[[X1:.*]] = train.add %[[X0]], %[[WIDE]] : tensor<2x4xf32>
// CHECK: %[[N1:.*]] = train.cast %[[X1]] : tensor<2x4xf32> -> tensor<2x4xbf16>
// CHECK: %[[Y:.*]], %[[RSTD:.*]] = train.rms_norm %[[X1]], {{.*}} : tensor<2x4xf32>, tensor<4xf32>
// CHECK: %[[NY:.*]] = train.cast %[[Y]] : tensor<2x4xf32> -> tensor<2x4xbf16>
// CHECK: train.matmul %[[Y]], {{.*}} : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32>
// CHECK: %[[P:.*]] = train.softmax {{.*}} : tensor<2x3xf32>
// CHECK: train.compare equal %[[P]], {{.*}} : tensor<2x3xf32> -> tensor<2x3xi1>
// CHECK: train.select {{.*}} : tensor<2x3xi1>, tensor<2x3xf32>
// CHECK: train.matmul %[[NY]], {{.*}} : tensor<2x4xbf16>, tensor<4x3x4xbf16> -> tensor<2x3x4xbf16>
// CHECK: %[[X2:.*]] = train.add %[[X1]], {{.*}} : tensor<2x4xf32> {train.id = "add.2"}
// CHECK: %[[N2:.*]] = train.cast %[[X2]] : tensor<2x4xf32> -> tensor<2x4xbf16>
// CHECK: train.mul %[[N2]], {{.*}} : tensor<2x4xbf16>
// CHECK-DAG: %[[KEPT:.*]] = train.stash %[[P]] : tensor<2x3xf32> {train.id = "softmax.0.stash"}
// CHECK-DAG: train.stash %[[RSTD]] : tensor<2xf32>
// CHECK-DAG: train.stash %[[NY]] : tensor<2x4xbf16>
// CHECK-DAG: train.stash %[[N1]] : tensor<2x4xbf16>
// CHECK: train.cast %[[KEPT]] : tensor<2x3xf32> -> tensor<2x3xbf16> {train.forward = "softmax.0", train.id = "softmax.0.stash.cast.0"}
// CHECK: train.softmax_grad {{.*}} : tensor<2x3xbf16>
// CHECK: train.rms_norm_grad {{.*}} : (tensor<2x4xbf16>, tensor<2x4xbf16>, tensor<4xbf16>, tensor<2xf32>)
// CHECK-LABEL: func.func @evaluate(
// CHECK: train.matmul {{.*}} : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32>
train.parameter weight @table "table" : tensor<8x4xf32> from <packed> {trainable}
train.parameter weight @position "position" : tensor<4xf32> from <packed> {trainable}
train.parameter weight @first "first" : tensor<4xf32> from <packed> {trainable}
train.parameter weight @layer "layer" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @bias "bias" : tensor<4xf32> from <packed> {trainable}
train.parameter weight @second "second" : tensor<4xf32> from <packed> {trainable}
train.parameter weight @router "router" : tensor<4x3xf32> from <packed> {trainable}
train.parameter weight @expert "expert" : tensor<4x3x4xf32> from <packed> {trainable}
train.parameter weight @head "head" : tensor<4xf32> from <packed> {trainable}
func.func @loss(%ids: tensor<2xi64> {train.input = "ids", train.vocabulary = 8 : i64}, %keys: tensor<2xi64> {train.input = "dropout keys"}) -> tensor<f32> {
  %table = train.read @table : tensor<8x4xf32> {train.id = "read.0"}
  %position = train.read @position : tensor<4xf32> {train.id = "read.1"}
  %first = train.read @first : tensor<4xf32> {train.id = "read.2"}
  %layer = train.read @layer : tensor<4x4xf32> {train.id = "read.3"}
  %bias = train.read @bias : tensor<4xf32> {train.id = "read.4"}
  %second = train.read @second : tensor<4xf32> {train.id = "read.5"}
  %router = train.read @router : tensor<4x3xf32> {train.id = "read.6"}
  %expert = train.read @expert : tensor<4x3x4xf32> {train.id = "read.7"}
  %head = train.read @head : tensor<4xf32> {train.id = "read.8"}
  %all_tokens = train.embedding %table, %ids : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32> {train.id = "embedding.0"}
  %token = train.dropout %all_tokens, %keys ratio 0.5 : tensor<2x4xf32>, tensor<2xi64> {train.id = "dropout.0"}
  %positions = train.broadcast %position dims [1] : tensor<4xf32> -> tensor<2x4xf32> {train.id = "broadcast.0"}
  %x0 = train.add %token, %positions : tensor<2x4xf32> {train.id = "add.0"}
  %n:2 = train.rms_norm %x0, %first epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>, tensor<2xf32> {train.id = "first.0"}
  %h = train.matmul %n#0, %layer batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "layer.0"}
  %biases = train.broadcast %bias dims [1] : tensor<4xf32> -> tensor<2x4xf32> {train.id = "broadcast.1"}
  %hb = train.add %h, %biases : tensor<2x4xf32> {train.id = "bias.0"}
  %x1 = train.add %x0, %hb : tensor<2x4xf32> {train.id = "add.1"}
  %y:2 = train.rms_norm %x1, %second epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>, tensor<2xf32> {train.id = "second.0"}
  %logits = train.matmul %y#0, %router batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32> {train.id = "router.0"}
  %p = train.softmax %logits : tensor<2x3xf32> {train.id = "softmax.0"}
  %max = train.reduce max %p dims [1] : tensor<2x3xf32> -> tensor<2xf32> {train.id = "max.0"}
  %all = train.broadcast %max dims [0] : tensor<2xf32> -> tensor<2x3xf32> {train.id = "broadcast.2"}
  %is = train.compare equal %p, %all : tensor<2x3xf32> -> tensor<2x3xi1> {train.id = "compare.0"}
  %zero = train.constant dense<0.0> : tensor<2x3xf32>
  %chosen = train.select %is, %p, %zero : tensor<2x3xi1>, tensor<2x3xf32> {train.id = "select.0"}
  %outs = train.matmul %y#0, %expert batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x3x4xf32> -> tensor<2x3x4xf32> {train.id = "expert.0"}
  %shares = train.broadcast %chosen dims [0, 1] : tensor<2x3xf32> -> tensor<2x3x4xf32> {train.id = "broadcast.3"}
  %parts = train.mul %outs, %shares : tensor<2x3x4xf32> {train.id = "mul.0"}
  %mixed = train.reduce sum %parts dims [1] : tensor<2x3x4xf32> -> tensor<2x4xf32> {train.id = "sum.0"}
  %x2 = train.add %x1, %mixed : tensor<2x4xf32> {train.id = "add.2"}
  %heads = train.broadcast %head dims [1] : tensor<4xf32> -> tensor<2x4xf32> {train.id = "broadcast.4"}
  %out = train.mul %x2, %heads : tensor<2x4xf32> {train.id = "mul.1"}
  %r = train.reduce sum %out dims [0, 1] : tensor<2x4xf32> -> tensor<f32> {train.id = "sum.1"}
  return %r : tensor<f32>
}

// -----

// A table that the product at the end reads too is found narrow by both. What is no largest of several is no choice.
// CHECK: train.parameter weight @table "table" : tensor<8x4xf32> from <packed> {compute_type = bf16
// CHECK: train.parameter weight @router "router" : tensor<4x3xf32> from <packed> {{[{](decays, )?trainable[}]}}
// CHECK: train.parameter weight @layer "layer" : tensor<4x4xf32> from <packed> {compute_type = bf16
// CHECK-LABEL: func.func @microbatch(
// CHECK: %[[X0:.*]] = train.embedding {{.*}} -> tensor<2x4xbf16>
// CHECK: %[[WIDE:.*]] = train.cast %[[X0]] : tensor<2x4xbf16> -> tensor<2x4xf32>
// CHECK: train.matmul %[[X0]], {{.*}} : tensor<2x4xbf16>, tensor<4x4xbf16> -> tensor<2x4xbf16>
// CHECK: train.compare greater {{.*}} : tensor<2x4xbf16> -> tensor<2x4xi1>
// CHECK: train.add %[[WIDE]], {{.*}} : tensor<2x4xf32>
// CHECK: train.matmul {{.*}} : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32>
// CHECK: train.compare equal {{.*}} : tensor<2x3xf32> -> tensor<2x3xi1>
// CHECK: train.matmul {{.*}} : tensor<2x4xbf16>, tensor<8x4xbf16> -> tensor<2x8xbf16>
train.parameter weight @table "table" : tensor<8x4xf32> from <packed> {trainable}
train.parameter weight @router "router" : tensor<4x3xf32> from <packed> {trainable}
train.parameter weight @layer "layer" : tensor<4x4xf32> from <packed> {trainable}
func.func @loss(%ids: tensor<2xi64> {train.input = "ids", train.vocabulary = 8 : i64}) -> tensor<f32> {
  %table = train.read @table : tensor<8x4xf32> {train.id = "read.0"}
  %router = train.read @router : tensor<4x3xf32> {train.id = "read.1"}
  %layer = train.read @layer : tensor<4x4xf32> {train.id = "read.2"}
  %x0 = train.embedding %table, %ids : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32> {train.id = "embedding.0"}
  %h = train.matmul %x0, %layer batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "layer.0"}
  %none = train.constant dense<0.0> : tensor<2x4xf32>
  %positive = train.compare greater %h, %none : tensor<2x4xf32> -> tensor<2x4xi1> {train.id = "compare.0"}
  %rest = train.select %positive, %h, %none : tensor<2x4xi1>, tensor<2x4xf32> {train.id = "select.0"}
  %x1 = train.add %x0, %rest : tensor<2x4xf32> {train.id = "add.0"}
  %logits = train.matmul %x1, %router batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x3xf32> -> tensor<2x3xf32> {train.id = "router.0"}
  %max = train.reduce max %logits dims [1] : tensor<2x3xf32> -> tensor<2xf32> {train.id = "max.0"}
  %all = train.broadcast %max dims [0] : tensor<2xf32> -> tensor<2x3xf32> {train.id = "broadcast.0"}
  %is = train.compare equal %logits, %all : tensor<2x3xf32> -> tensor<2x3xi1> {train.id = "compare.1"}
  %zero = train.constant dense<0.0> : tensor<2x3xf32>
  %chosen = train.select %is, %logits, %zero : tensor<2x3xi1>, tensor<2x3xf32> {train.id = "select.1"}
  %share = train.reduce sum %chosen dims [1] : tensor<2x3xf32> -> tensor<2xf32> {train.id = "sum.0"}
  %shares = train.broadcast %share dims [0] : tensor<2xf32> -> tensor<2x4xf32> {train.id = "broadcast.1"}
  %mixed = train.mul %x1, %shares : tensor<2x4xf32> {train.id = "mul.0"}
  %out = train.matmul %mixed, %table batch [] x [] contract [1] x [1] : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32> {train.id = "head.0"}
  %r = train.reduce sum %out dims [0, 1] : tensor<2x8xf32> -> tensor<f32> {train.id = "sum.1"}
  return %r : tensor<f32>
}
