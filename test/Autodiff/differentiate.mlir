// RUN: windlass-opt %s -split-input-file -train-differentiate=micro-batches=4 -train-verify-functions | FileCheck %s

// A linear layer: the gradient of the weight needs no transpose; the bias is summed; the input has no gradient.

train.parameter weight @w "fc.weight" : tensor<8x7xf32> from <packed> {trainable}
train.parameter weight @b "fc.bias" : tensor<7xf32> from <packed> {trainable}

// CHECK-NOT: @loss
// CHECK: func.func @init() {
// CHECK: func.func @microbatch(%[[X:.*]]: tensor<2x3x8xf32> {train.input = "x"}, %[[LABELS:.*]]: tensor<2x3xi64> {train.input = "labels"}) -> (tensor<f32>, tensor<8x7xf32> {train.gradient = @w}, tensor<7xf32> {train.gradient = @b}) {
// CHECK: %[[W:.*]] = train.read @w
// CHECK: %[[M:.*]] = train.matmul %[[X]], %[[W]]
// CHECK: %[[BIAS:.*]] = train.broadcast
// CHECK: %[[Y:.*]] = train.add %[[M]], %[[BIAS]]
// CHECK: %[[SUM:.*]], %[[COUNT:.*]], %[[LOG:.*]] = train.softmax_cross_entropy %[[Y]], %[[LABELS]]
// CHECK: %[[LOSS:.*]] = train.loss %[[SUM]], %[[COUNT]]
// CHECK: %[[QUARTER:.*]] = train.constant dense<2.500000e-01>
// CHECK: %[[SHARE:.*]] = train.mul %[[LOSS]], %[[QUARTER]] : tensor<f32> {train.id = "loss.share"}
// CHECK-DAG: %[[SC:.*]] = train.stash %[[COUNT]] : tensor<f32> {train.id = "xent.stash.1"}
// CHECK-DAG: %[[SY:.*]] = train.stash %[[Y]] : tensor<2x3x7xf32> {train.id = "add.stash"}
// CHECK-DAG: %[[SL:.*]] = train.stash %[[LOG]]
// CHECK: %[[SEED:.*]] = train.constant {train.forward = "loss", train.id = "loss.grad"} dense<2.500000e-01>
// CHECK: %[[DSUM:.*]] = train.div %[[SEED]], %[[SC]] : tensor<f32> {train.forward = "loss", train.id = "loss.grad.sum"}
// CHECK: %[[DY:.*]] = train.softmax_cross_entropy_grad %[[DSUM]], %[[SY]], %[[LABELS]], %[[SL]] ignore -100 {train.forward = "xent", train.id = "xent.grad.logits"}
// CHECK: %[[DB:.*]] = train.reduce sum %[[DY]] dims [0, 1]
// CHECK: %[[DW:.*]] = train.matmul %[[X]], %[[DY]] batch [] x [] contract [0, 1] x [0, 1]
// CHECK-NOT: train.matmul
// CHECK: return %[[SHARE]], %[[DW]], %[[DB]]
// CHECK: func.func @evaluate({{.*}}) -> tensor<f32>
// CHECK-NOT: train.forward
// CHECK: %[[E:.*]] = train.loss
// CHECK-NEXT: return %[[E]]
func.func @loss(%x: tensor<2x3x8xf32> {train.input = "x"}, %labels: tensor<2x3xi64> {train.input = "labels"}) -> tensor<f32> {
  %w = train.read @w : tensor<8x7xf32> {train.id = "w"}
  %b = train.read @b : tensor<7xf32> {train.id = "b"}
  %0 = train.matmul %x, %w batch [] x [] contract [2] x [0] : tensor<2x3x8xf32>, tensor<8x7xf32> -> tensor<2x3x7xf32> {train.id = "matmul"}
  %1 = train.broadcast %b dims [2] : tensor<7xf32> -> tensor<2x3x7xf32> {train.id = "bias"}
  %2 = train.add %0, %1 : tensor<2x3x7xf32> {train.id = "add"}
  %3:3 = train.softmax_cross_entropy %2, %labels ignore -100 {train.id = "xent"} : (tensor<2x3x7xf32>, tensor<2x3xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x3xf32>)
  %4 = train.loss %3#0, %3#1 : tensor<f32> {train.id = "loss"}
  return %4 : tensor<f32>
}

// -----

// A tied weight, read twice, has one read and one gradient: the n-ary sum. Values that depend on nothing move to @init.

train.parameter weight @e "wte" : tensor<7x4xf32> from <packed> {trainable}
train.parameter weight @unused "unused" : tensor<4xf32> from <packed> {trainable, decays}

// CHECK: train.parameter weight @unused "unused" : tensor<4xf32> from <packed> {reason = "does not reach the loss"}
// A broadcast of such a value stays where it is used.
// CHECK: func.func @init() -> tensor<3xf32> {
// CHECK: %[[POS:.*]] = train.iota
// CHECK: %[[SINE:.*]] = train.sin %[[POS]]
// CHECK: return %[[SINE]]
// CHECK: func.func @microbatch(%[[IDS:.*]]: tensor<3xi64> {train.input = "ids"}, %[[SINE:.*]]: tensor<3xf32> {train.init_value = 0 : i64}) -> (tensor<f32>, tensor<7x4xf32> {train.gradient = @e})
// CHECK: train.read @e : tensor<7x4xf32> {train.id = "read"}
// CHECK-NOT: train.read
// CHECK: train.broadcast %[[SINE]] dims [0]
// CHECK: train.stash
// CHECK: train.read @e : tensor<7x4xf32> {train.forward = "read", train.id = "read.again"}
// CHECK: %[[D0:.*]] = train.matmul {{.*}}train.id = "logits.grad.lhs"
// CHECK: %[[D1:.*]] = train.matmul {{.*}}train.id = "logits.grad.rhs"
// CHECK: %[[D2:.*]] = train.embedding_grad %[[IDS]], {{.*}} rows 7
// CHECK: %[[SUM:.*]] = train.accumulate %[[D1]], %[[D2]] : tensor<7x4xf32> {train.forward = "read", train.id = "read.grad.accumulate"}
// CHECK: return %{{.*}}, %[[SUM]]
func.func @loss(%ids: tensor<3xi64> {train.input = "ids"}) -> tensor<f32> {
  %e = train.read @e : tensor<7x4xf32> {train.id = "read"}
  %t = train.read @e : tensor<7x4xf32> {train.id = "read.2"}
  %pos = train.iota 0 start 0.0 step 1.0 : tensor<3xf32> {train.id = "pos"}
  %wave = train.sin %pos : tensor<3xf32> {train.id = "wave"}
  %sine = train.broadcast %wave dims [0] : tensor<3xf32> -> tensor<3x4xf32> {train.id = "sine"}
  %0 = train.embedding %e, %ids : tensor<7x4xf32>, tensor<3xi64> -> tensor<3x4xf32> {train.id = "embedding"}
  %1 = train.add %0, %sine : tensor<3x4xf32> {train.id = "add"}
  %2 = train.matmul %1, %t batch [] x [] contract [1] x [1] : tensor<3x4xf32>, tensor<7x4xf32> -> tensor<3x7xf32> {train.id = "logits"}
  %3:3 = train.softmax_cross_entropy %2, %ids ignore -100 {train.id = "xent"} : (tensor<3x7xf32>, tensor<3xi64>) -> (tensor<f32>, tensor<f32>, tensor<3xf32>)
  %4 = train.loss %3#0, %3#1 : tensor<f32> {train.id = "loss"}
  return %4 : tensor<f32>
}

// -----

// Views of a stashed value are made again; a value used several times accumulates; what does not train has no adjoint.

train.parameter weight @w "w" : tensor<4xf32> from <packed> {trainable}
train.parameter weight @frozen "frozen" : tensor<4xf32> from <packed>

// CHECK: func.func @microbatch(%[[X:.*]]: tensor<2x4xf32>
// CHECK: %[[B:.*]] = train.broadcast %{{.*}} dims [1]
// CHECK: %[[P:.*]] = train.mul %{{.*}}, %[[B]] : tensor<2x4xf32> {train.id = "p"}
// CHECK: %[[T:.*]] = train.transpose %[[P]] [1, 0]
// CHECK: train.mul %[[T]], %[[T]]
// CHECK: train.stash %[[P]]
// CHECK-NOT: train.stash
// CHECK: %[[AGAIN:.*]] = train.transpose %{{.*}} [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32> {train.forward = "t", train.id = "t.again"}
// CHECK: %[[G0:.*]] = train.mul %{{.*}}, %[[AGAIN]] : {{.*}}train.id = "square.grad.lhs"
// CHECK: %[[G1:.*]] = train.mul %{{.*}}, %[[AGAIN]] : {{.*}}train.id = "square.grad.rhs"
// CHECK: train.accumulate %[[G0]], %[[G1]] : tensor<4x2xf32> {train.forward = "t", train.id = "t.grad.accumulate"}
// CHECK-NOT: "p.grad.lhs"
// CHECK: train.mul %{{.*}}, %[[X]] : tensor<2x4xf32> {train.forward = "p", train.id = "p.grad.rhs"}
// CHECK-NOT: "p.grad.lhs"
// CHECK: return
func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<4xf32> {train.id = "w"}
  %f = train.read @frozen : tensor<4xf32> {train.id = "frozen"}
  %b = train.broadcast %w dims [1] : tensor<4xf32> -> tensor<2x4xf32> {train.id = "b"}
  %p = train.mul %x, %b : tensor<2x4xf32> {train.id = "p"}
  %t = train.transpose %p [1, 0] : tensor<2x4xf32> -> tensor<4x2xf32> {train.id = "t"}
  %s = train.mul %t, %t : tensor<4x2xf32> {train.id = "square"}
  %fb = train.broadcast %f dims [0] : tensor<4xf32> -> tensor<4x2xf32> {train.id = "fb"}
  %fs = train.add %s, %fb : tensor<4x2xf32> {train.id = "fs"}
  %r = train.reduce sum %fs dims [0, 1] : tensor<4x2xf32> -> tensor<f32> {train.id = "r"}
  return %r : tensor<f32>
}

// -----

// A tracked statistic is the batch's where the model trains and its running average where it is evaluated. What a
// micro-batch returns for the average is by how much that differs from the statistic, over 4 micro-batches. A norm that
// runs twice moves its average twice, by half of each.

// CHECK: train.parameter weight @m "once" : tensor<3xf32> from <packed> {momentum = 9.000000e-01 : f64, trainable}
// CHECK: train.parameter weight @v "twice" : tensor<3xf32> from <packed> {momentum = 2.500000e-01 : f64, trainable}
// CHECK: func.func @microbatch({{.*}}) -> (tensor<f32>, tensor<3xf32> {train.gradient = @w}, tensor<3xf32> {train.gradient = @m}, tensor<3xf32> {train.gradient = @v})
// CHECK-NOT: train.read @m
// CHECK: %[[MUL:.*]] = train.mul %{{.*}}, %{{.*}} : tensor<3xf32> {train.id = "statistic"}
// CHECK: %[[EXP:.*]] = train.exp %[[MUL]]
// CHECK: %[[STASH:.*]] = train.stash %[[MUL]]
// CHECK: %[[M:.*]] = train.read @m : tensor<3xf32> {train.forward = "statistic", train.id = "first.read"}
// CHECK: %[[CORRECTED:.*]] = train.mul %[[STASH]], %{{.*}} {train.forward = "statistic", train.id = "first.corrected"}
// CHECK: %[[DIFFERENCE:.*]] = train.sub %[[M]], %[[CORRECTED]] : tensor<3xf32> {train.forward = "statistic", train.id = "first.difference"}
// CHECK: %[[QUARTER:.*]] = train.constant dense<2.500000e-01> : tensor<3xf32>
// CHECK: %[[SHARE:.*]] = train.mul %[[DIFFERENCE]], %[[QUARTER]]
// CHECK: train.read @v {{.*}} train.id = "second.read"
// CHECK: train.constant dense<1.250000e-01>
// CHECK: train.read @v {{.*}} train.id = "third.read"
// CHECK: %[[BOTH:.*]] = train.accumulate {{.*}} train.id = "twice.differences"
// CHECK: return %{{.*}}, %{{.*}}, %[[SHARE]], %[[BOTH]]
// CHECK: func.func @evaluate
// CHECK-NOT: statistic
// CHECK: %[[V:.*]] = train.read @v
// CHECK: train.add %[[V]], %[[V]]
train.parameter weight @w "w" : tensor<3xf32> from <packed> {trainable}
train.parameter weight @m "once" : tensor<3xf32> from <packed> {momentum = 0.9 : f64, trainable}
train.parameter weight @v "twice" : tensor<3xf32> from <packed> {momentum = 0.5 : f64, trainable}
func.func @loss(%x: tensor<3xf32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<3xf32> {train.id = "w"}
  %m = train.read @m : tensor<3xf32> {train.id = "m"}
  %v = train.read @v : tensor<3xf32> {train.id = "v"}
  %0 = train.mul %x, %w : tensor<3xf32> {train.id = "statistic"}
  %1 = train.track_statistic %0, %m correction 1.5 : tensor<3xf32> {train.id = "first"}
  %2 = train.exp %1 : tensor<3xf32> {train.id = "exp"}
  %3 = train.track_statistic %2, %v correction 1.0 : tensor<3xf32> {train.id = "second"}
  %4 = train.sin %2 : tensor<3xf32> {train.id = "sin"}
  %5 = train.track_statistic %4, %v correction 1.0 : tensor<3xf32> {train.id = "third"}
  %6 = train.add %3, %5 : tensor<3xf32> {train.id = "add"}
  %7 = train.reduce sum %6 dims [0] : tensor<3xf32> -> tensor<f32> {train.id = "sum"}
  return %7 : tensor<f32>
}
