// RUN: windlass-opt %s -split-input-file -train-differentiate | FileCheck %s

// Products and quotients; the gradient that arrives is a broadcast of the seed.

train.parameter weight @a "a" : tensor<2xf32> from <packed> {trainable}
train.parameter weight @b "b" : tensor<2xf32> from <packed> {trainable}
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[SY:.*]] = train.stash %{{.*}} : tensor<2xf32> {train.id = "div.stash"}
// CHECK: %[[SEED:.*]] = train.constant {{.*}} dense<1.000000e+00>
// CHECK: %[[DY:.*]] = train.broadcast %[[SEED]] dims []
// CHECK: %[[B:.*]] = train.read @b : tensor<2xf32> {train.forward = "b", train.id = "b.again"}
// CHECK: %[[DA:.*]] = train.div %[[DY]], %[[B]] : tensor<2xf32> {train.forward = "div", train.id = "div.grad.lhs"}
// CHECK: %[[P:.*]] = train.mul %[[DA]], %[[SY]] : tensor<2xf32> {train.forward = "div", train.id = "div.grad.mul"}
// CHECK: %[[DB:.*]] = train.neg %[[P]] : tensor<2xf32> {train.forward = "div", train.id = "div.grad.rhs"}
// CHECK: return %{{.*}}, %[[DA]], %[[DB]]
func.func @loss() -> tensor<f32> {
  %a = train.read @a : tensor<2xf32> {train.id = "a"}
  %b = train.read @b : tensor<2xf32> {train.id = "b"}
  %y = train.div %a, %b : tensor<2xf32> {train.id = "div"}
  %l = train.reduce sum %y dims [0] : tensor<2xf32> -> tensor<f32> {train.id = "l"}
  return %l : tensor<f32>
}

// -----

// What cannot change has no adjoint: the condition, the exponent, the frozen operand.

train.parameter weight @a "a" : tensor<2xf32> from <packed> {trainable}
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: (%[[X:.*]]: tensor<2xf32>
// CHECK: %[[POW:.*]] = train.pow %{{.*}}, %[[X]]
// CHECK: %[[C:.*]] = train.compare less %[[POW]], %[[X]]
// CHECK: %[[SC:.*]] = train.stash %[[C]] : tensor<2xi1>
// CHECK: %[[ZERO:.*]] = train.constant {{.*}} dense<0.000000e+00>
// CHECK: %[[DP:.*]] = train.select %[[SC]], %{{.*}}, %[[ZERO]] : {{.*}}train.id = "select.grad.lhs"
// CHECK: %[[S:.*]] = train.mul %[[DP]], %[[X]]
// CHECK: %[[E:.*]] = train.sub %[[X]], %{{.*}}
// CHECK: %[[A:.*]] = train.read @a
// CHECK: %[[Q:.*]] = train.pow %[[A]], %[[E]]
// CHECK: %[[DA:.*]] = train.mul %[[S]], %[[Q]] : {{.*}}train.id = "pow.grad.lhs"
// CHECK: return %{{.*}}, %[[DA]]
func.func @loss(%x: tensor<2xf32> {train.input = "x"}) -> tensor<f32> {
  %a = train.read @a : tensor<2xf32> {train.id = "a"}
  %p = train.pow %a, %x : tensor<2xf32> {train.id = "pow"}
  %c = train.compare less %p, %x : tensor<2xf32> -> tensor<2xi1> {train.id = "compare"}
  %s = train.select %c, %p, %x : tensor<2xi1>, tensor<2xf32> {train.id = "select"}
  %l = train.reduce sum %s dims [0] : tensor<2xf32> -> tensor<f32> {train.id = "l"}
  return %l : tensor<f32>
}

// -----

// Parts: a result of a split that does not reach the loss has zeros; a concat gives each operand its slice.

train.parameter weight @a "a" : tensor<2x5xf32> from <packed> {trainable}
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[D0:.*]] = train.slice %[[D:.*]] from [0, 0] sizes [2, 2]
// CHECK: %[[D2:.*]] = train.slice %[[D]] from [0, 2] sizes [2, 1]
// CHECK: %[[ZERO:.*]] = train.constant {{.*}} dense<0.000000e+00> : tensor<2x2xf32>
// CHECK: %[[DA:.*]] = train.concat %[[D0]], %[[ZERO]], %[[D2]] axis 1
// CHECK: return %{{.*}}, %[[DA]]
func.func @loss() -> tensor<f32> {
  %a = train.read @a : tensor<2x5xf32> {train.id = "a"}
  %0:3 = train.split %a axis 1 sizes [2, 2, 1] : tensor<2x5xf32> -> tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x1xf32> {train.id = "split"}
  %1 = train.concat %0#0, %0#2 axis 1 : tensor<2x2xf32>, tensor<2x1xf32> -> tensor<2x3xf32> {train.id = "concat"}
  %l = train.reduce sum %1 dims [0, 1] : tensor<2x3xf32> -> tensor<f32> {train.id = "l"}
  return %l : tensor<f32>
}

// -----

// Attention and layer norm have adjoints of their own; their statistics are stashed, results that lead nowhere unused.

train.parameter weight @q "q" : tensor<1x2x3x4xf32> from <packed> {trainable}
train.parameter weight @s "s" : tensor<4xf32> from <packed> {trainable}
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: (%[[X:.*]]: tensor<1x2x3x4xf32>
// CHECK: %[[O:.*]], %[[LOG:.*]] = train.attention
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %[[RSTD:.*]] = train.layer_norm %[[O]]
// CHECK-DAG: %[[SO:.*]] = train.stash %[[O]]
// CHECK-DAG: %[[SMEAN:.*]] = train.stash %[[MEAN]]
// CHECK-DAG: %[[SRSTD:.*]] = train.stash %[[RSTD]]
// CHECK-DAG: %[[SLOG:.*]] = train.stash %[[LOG]]
// CHECK: %[[S:.*]] = train.read @s
// CHECK: %[[DO:.*]], %[[DS:.*]], %{{.*}} = train.layer_norm_grad %{{.*}}, %[[SO]], %[[S]], %[[SMEAN]], %[[SRSTD]]
// CHECK: %[[Q:.*]] = train.read @q
// CHECK: %[[DQ:.*]], %{{.*}}, %{{.*}} = train.attention_grad %[[DO]], %[[Q]], %[[X]], %[[X]] output %[[SO]], %[[SLOG]] scale 5.000000e-01 causal
// CHECK: return %{{.*}}, %[[DQ]], %[[DS]]
func.func @loss(%x: tensor<1x2x3x4xf32> {train.input = "x"}) -> tensor<f32> {
  %q = train.read @q : tensor<1x2x3x4xf32> {train.id = "q"}
  %s = train.read @s : tensor<4xf32> {train.id = "s"}
  %o:2 = train.attention %q, %x, %x scale 0.5 causal {train.id = "attention"} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> (tensor<1x2x3x4xf32>, tensor<1x2x3xf32>)
  %y:3 = train.layer_norm %o#0, %s epsilon 1.0e-5 : tensor<1x2x3x4xf32>, tensor<4xf32> -> tensor<1x2x3x4xf32>, tensor<1x2x3xf32>, tensor<1x2x3xf32> {train.id = "norm"}
  %l = train.reduce sum %y#0 dims [0, 1, 2, 3] : tensor<1x2x3x4xf32> -> tensor<f32> {train.id = "l"}
  return %l : tensor<f32>
}

// -----

// The mask of a dropout is made again from the keys; an evaluation has none. The turn of a rotary embedding is undone.

train.parameter weight @w "w" : tensor<2x3x4xf32> from <packed> {trainable}
train.parameter weight @s "s" : tensor<4xf32> from <packed> {trainable}
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: (%[[KEYS:.*]]: tensor<2xi64>{{.*}}, %[[C:.*]]: tensor<3x4xf32>
// CHECK: %[[D:.*]] = train.dropout %{{.*}}, %[[KEYS]] ratio 2.500000e-01
// CHECK: %[[N:.*]], %[[RSTD:.*]] = train.rms_norm
// CHECK-DAG: %[[SRSTD:.*]] = train.stash %[[RSTD]]
// CHECK-DAG: %[[SD:.*]] = train.stash %[[D]]
// CHECK: %[[DR:.*]] = train.rotary %{{.*}}, %{{.*}}, %{{.*}} transposed
// CHECK: %[[DN:.*]], %[[DS:.*]] = train.rms_norm_grad %[[DR]], %[[SD]], %{{.*}}, %[[SRSTD]]
// CHECK: %[[DW:.*]] = train.dropout %[[DN]], %[[KEYS]] ratio 2.500000e-01
// CHECK: return %{{.*}}, %[[DW]], %[[DS]]
// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: train.dropout
// CHECK: %[[W:.*]] = train.read @w
// CHECK: train.rms_norm %[[W]]
func.func @loss(%keys: tensor<2xi64> {train.input = "dropout keys"}, %c: tensor<3x4xf32> {train.input = "c"}) -> tensor<f32> {
  %w = train.read @w : tensor<2x3x4xf32> {train.id = "w"}
  %s = train.read @s : tensor<4xf32> {train.id = "s"}
  %d = train.dropout %w, %keys ratio 0.25 : tensor<2x3x4xf32>, tensor<2xi64> {train.id = "d"}
  %n, %rstd = train.rms_norm %d, %s epsilon 0.1 : tensor<2x3x4xf32>, tensor<4xf32> -> tensor<2x3x4xf32>, tensor<2x3xf32> {train.id = "n"}
  %r = train.rotary %n, %c, %c : tensor<2x3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32> {train.id = "r"}
  %l = train.reduce sum %r dims [0, 1, 2] : tensor<2x3x4xf32> -> tensor<f32> {train.id = "l"}
  return %l : tensor<f32>
}

// -----

train.parameter weight @w "w" : tensor<2x4xf32> from <packed> {trainable}
// CHECK-LABEL: func.func @microbatch
// CHECK-SAME: (%[[I:.*]]: tensor<2x1xi64>
// CHECK: %[[DW:.*]] = train.scatter_elements_add %[[I]], %{{.*}} axis 1 size 4
// CHECK: return %{{.*}}, %[[DW]]
func.func @loss(%i: tensor<2x1xi64> {train.input = "i"}) -> tensor<f32> {
  %w = train.read @w : tensor<2x4xf32> {train.id = "w"}
  %y = train.gather_elements %w, %i axis 1 : tensor<2x4xf32>, tensor<2x1xi64> -> tensor<2x1xf32> {train.id = "y"}
  %l = train.reduce sum %y dims [0, 1] : tensor<2x1xf32> -> tensor<f32> {train.id = "l"}
  return %l : tensor<f32>
}

// -----

// Equal maxima share the gradient.

train.parameter weight @a "a" : tensor<2x3xf32> from <packed> {trainable}
// CHECK-LABEL: func.func @microbatch
// CHECK: %[[A:.*]] = train.read @a : tensor<2x3xf32> {train.id = "a"}
// CHECK: %[[MAX:.*]] = train.reduce max %[[A]] dims [1]
// CHECK: %[[STASH:.*]] = train.stash %[[MAX]]
// CHECK: %[[SPREAD:.*]] = train.broadcast %[[STASH]] dims [0] : tensor<2xf32> -> tensor<2x3xf32>
// CHECK: %[[IS:.*]] = train.compare equal %{{.*}}, %[[SPREAD]] : tensor<2x3xf32> -> tensor<2x3xi1>
// CHECK: %[[ONES:.*]] = train.cast %[[IS]] : tensor<2x3xi1> -> tensor<2x3xf32>
// CHECK: %[[COUNT:.*]] = train.reduce sum %[[ONES]] dims [1]
// CHECK: %[[SHARE:.*]] = train.div %{{.*}}, %[[COUNT]]
// CHECK: %[[SHARES:.*]] = train.broadcast %[[SHARE]] dims [0]
// CHECK: %[[ZERO:.*]] = train.constant {{.*}}dense<0.000000e+00>
// CHECK: %[[DA:.*]] = train.select %[[IS]], %[[SHARES]], %[[ZERO]]
// CHECK: return %{{.*}}, %[[DA]]
func.func @loss() -> tensor<f32> {
  %a = train.read @a : tensor<2x3xf32> {train.id = "a"}
  %m = train.reduce max %a dims [1] : tensor<2x3xf32> -> tensor<2xf32> {train.id = "max"}
  %l = train.reduce sum %m dims [0] : tensor<2xf32> -> tensor<f32> {train.id = "l"}
  return %l : tensor<f32>
}
