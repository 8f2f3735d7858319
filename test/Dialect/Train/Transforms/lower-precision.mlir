// RUN: windlass-opt %s -split-input-file -train-differentiate=micro-batches=2 -train-add-optimizer=optimizer=sgd -train-lower-precision=precision=bf16 -train-verify-functions -o %t.mlir && FileCheck %s < %t.mlir && windlass-opt %t.mlir -split-input-file -train-verify-functions -o /dev/null
// RUN: windlass-opt %s -split-input-file -train-differentiate -train-add-optimizer=optimizer=sgd -train-lower-precision | FileCheck %s --check-prefix=WHOLE
// RUN: windlass-opt %s -split-input-file -train-differentiate -train-add-optimizer=optimizer=sgd -train-lower-precision=precision=tf32 | FileCheck %s --check-prefix=TF32
// RUN: not windlass-opt %s -split-input-file -train-differentiate -train-lower-precision=precision=f8 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not windlass-opt %s -split-input-file -train-lower-precision=precision=bf16 2>&1 | FileCheck %s --check-prefix=EARLY

// UNKNOWN: error: there is no precision 'f8'; choose f32, tf32, bf16 or f16
// EARLY: error: has no @init; run train-differentiate before
// WHOLE: precision = "f32"
// WHOLE-NOT: bf16
// TF32: precision = "tf32"
// TF32-NOT: {{bf16|tensor<.*tf32}}

// Weights are f32 and found in bf16; the input is converted once for each pass; the gradients of products and sums are
// handed on as they add up; the statistics and all from the sum on are f32.
// CHECK: module attributes {train.settings = {{.*}}precision = "bf16"
// CHECK: train.parameter weight @w "w" : tensor<4x4xf32> from <packed> {compute_type = bf16, decays, trainable}
// CHECK: train.parameter state @w.momentum_buffer "w/momentum_buffer" : tensor<4x4xf32> from <none> {of = @w}
// CHECK-LABEL: func.func @microbatch(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>
// CHECK-SAME: -> (tensor<f32>, tensor<4x4xf32> {train.gradient = @w}, tensor<4xf32> {train.gradient = @b}, tensor<4xf32> {train.gradient = @s})
// CHECK: train.cast %[[X]] : tensor<2x4xf32> -> tensor<2x4xbf16> {train.id = "fc/matmul.0.cast.0"}
// CHECK: train.matmul {{.*}} : tensor<2x4xbf16>, tensor<4x4xbf16> -> tensor<2x4xbf16>
// CHECK: train.layer_norm {{.*}} -> tensor<2x4xbf16>, tensor<2xf32>, tensor<2xf32>
// CHECK: train.reduce sum {{.*}} dims [0, 1] wide : tensor<2x4xbf16> -> tensor<f32>
// CHECK: train.layer_norm_grad {{.*}} -> (tensor<2x4xbf16>, tensor<4xf32>, tensor<4xf32>)
// CHECK: train.cast %[[X]] : {{.*}} {train.forward = "fc/matmul.0", train.id = "fc/matmul.0.grad.rhs.cast.0"}
// CHECK: train.matmul {{.*}} wide : tensor<2x4xbf16>, tensor<2x4xbf16> -> tensor<4x4xf32>
// CHECK-LABEL: func.func @update
// CHECK: train.read @w : tensor<4x4xf32>
train.parameter weight @w "w" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @b "b" : tensor<4xf32> from <packed> {trainable}
train.parameter weight @s "s" : tensor<4xf32> from <packed> {trainable}
func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<4x4xf32> {train.id = "read.0"}
  %b = train.read @b : tensor<4xf32> {train.id = "read.1"}
  %s = train.read @s : tensor<4xf32> {train.id = "read.2"}
  %0 = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "fc/matmul.0"}
  %1:3 = train.layer_norm %0, %s, %b epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32> {train.id = "norm.0"}
  %r = train.reduce sum %1#0 dims [0, 1] : tensor<2x4xf32> -> tensor<f32> {train.id = "sum.0"}
  return %r : tensor<f32>
}

// -----

// What meets nothing narrow stays as it is and is converted where it does: a table in @init, a mask before it is
// stretched. A weight that is tied has one gradient, of all uses in f32.
// CHECK-LABEL: func.func @init
// CHECK: train.cos {{.*}} : tensor<2xf32>
// CHECK: train.cast {{.*}} : tensor<2xf32> -> tensor<2xbf16> {train.id = "init.cast.0"}
// CHECK-LABEL: func.func @microbatch(
// CHECK-SAME: tensor<2xi1> {train.input = "m"}, %[[TABLE:.*]]: tensor<2xbf16> {train.init_value = 0 : i64}
// CHECK-DAG: train.constant dense<0.000000e+00> : tensor<2xbf16>
// CHECK: %[[MASK:.*]] = train.cast {{.*}} : tensor<2xf32> -> tensor<2xbf16>
// CHECK: train.broadcast %[[MASK]] dims [1] : tensor<2xbf16> -> tensor<3x2xbf16>
// CHECK: train.accumulate {{.*}} : tensor<3x2xf32>
train.parameter weight @w "w" : tensor<3x2xf32> from <packed> {trainable}
func.func @loss(%m: tensor<2xi1> {train.input = "m"}) -> tensor<f32> {
  %w = train.read @w : tensor<3x2xf32> {train.id = "read.0"}
  %i = train.iota 0 start 0.0 step 1.0 : tensor<2xf32> {train.id = "iota.0"}
  %table = train.cos %i : tensor<2xf32> {train.id = "cos.0"}
  %zero = train.constant dense<0.0> : tensor<2xf32>
  %one = train.constant dense<1.0> : tensor<2xf32>
  %mask = train.select %m, %one, %zero : tensor<2xi1>, tensor<2xf32> {train.id = "select.0"}
  %masks = train.broadcast %mask dims [1] : tensor<2xf32> -> tensor<3x2xf32> {train.id = "broadcast.0"}
  %tables = train.broadcast %table dims [1] : tensor<2xf32> -> tensor<3x2xf32> {train.id = "broadcast.1"}
  %0 = train.mul %w, %masks : tensor<3x2xf32> {train.id = "mul.0"}
  %1 = train.mul %w, %tables : tensor<3x2xf32> {train.id = "mul.1"}
  %2 = train.add %0, %1 : tensor<3x2xf32> {train.id = "add.0"}
  %3 = train.reduce sum %2 dims [0] : tensor<3x2xf32> -> tensor<2xf32> {train.id = "sum.0"}
  %4 = train.max %3, %zero : tensor<2xf32> {train.id = "max.0"}
  %r = train.reduce sum %4 dims [0] : tensor<2xf32> -> tensor<f32> {train.id = "sum.1"}
  return %r : tensor<f32>
}

// -----

// Angles that are made of positions and a buffer are f32, as their cosine is.
// CHECK: train.parameter buffer @frequency "frequency" : tensor<4xf32> from <packed>{{$}}
// CHECK: train.parameter weight @w "w" : tensor<4xf32> from <packed> {compute_type = bf16
// CHECK-LABEL: func.func @microbatch(
// CHECK: %[[F:.*]] = train.read @frequency : tensor<4xf32>
// CHECK: train.mul %{{.*}}, %[[F]] : tensor<4xf32>
// CHECK: %[[COS:.*]] = train.cos {{.*}} : tensor<4xf32>
// CHECK: train.cast %[[COS]] : tensor<4xf32> -> tensor<4xbf16>
// CHECK: train.mul {{.*}} : tensor<4xbf16>
train.parameter buffer @frequency "frequency" : tensor<4xf32> from <packed>
train.parameter weight @w "w" : tensor<4xf32> from <packed> {trainable}
func.func @loss() -> tensor<f32> {
  %f = train.read @frequency : tensor<4xf32> {train.id = "read.0"}
  %w = train.read @w : tensor<4xf32> {train.id = "read.1"}
  %i = train.iota 0 start 0.0 step 1.0 : tensor<4xf32> {train.id = "iota.0"}
  %angle = train.mul %i, %f : tensor<4xf32> {train.id = "mul.0"}
  %cos = train.cos %angle : tensor<4xf32> {train.id = "cos.0"}
  %0 = train.mul %w, %cos : tensor<4xf32> {train.id = "mul.1"}
  %r = train.reduce sum %0 dims [0] : tensor<4xf32> -> tensor<f32> {train.id = "sum.0"}
  return %r : tensor<f32>
}

// -----

// Marked operators, views of their results, and their adjoints compute in f32; sums read narrow values, and what is not
// marked reads the result as a narrow value. An operator's narrow argument and its result in f32 have two names.
// CHECK-LABEL: func.func @microbatch(
// CHECK: train.cast %{{.*}} : tensor<2x4xf32> -> tensor<2x4xbf16> {train.id = "fc/matmul.0.cast.0"}
// CHECK: %[[X:.*]] = train.matmul {{.*}} -> tensor<2x4xbf16>
// CHECK: %[[WIDE:.*]] = train.cast %[[X]] : tensor<2x4xbf16> -> tensor<2x4xf32> {train.id = "fc/matmul.0.wide.0"}
// CHECK: %[[SUM:.*]] = train.reduce sum %[[X]] dims [0] wide : tensor<2x4xbf16> -> tensor<4xf32>
// CHECK: %[[MEAN:.*]] = train.broadcast %[[SUM]] dims [1] : tensor<4xf32> -> tensor<2x4xf32>
// CHECK: %[[SUB:.*]] = train.sub %[[WIDE]], %[[MEAN]] : tensor<2x4xf32> {train.id = "norm.sub.0"}
// CHECK: %[[NARROW:.*]] = train.cast %[[SUB]] : tensor<2x4xf32> -> tensor<2x4xbf16>
// CHECK: train.tanh %[[NARROW]] : tensor<2x4xbf16>
// CHECK: %[[GRAD:.*]] = train.tanh_grad {{.*}} : tensor<2x4xbf16>
// CHECK: train.cast %[[GRAD]] : tensor<2x4xbf16> -> tensor<2x4xf32>
// CHECK: train.neg %{{.*}} : tensor<2x4xf32>
// CHECK-NOT: full_precision
train.parameter weight @w "w" : tensor<4x4xf32> from <packed> {trainable}
func.func @loss(%x: tensor<2x4xf32> {train.input = "x"}) -> tensor<f32> {
  %w = train.read @w : tensor<4x4xf32> {train.id = "read.0"}
  %0 = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "fc/matmul.0"}
  %1 = train.reduce sum %0 dims [0] : tensor<2x4xf32> -> tensor<4xf32> {train.id = "norm.reduce.0", train.full_precision}
  %2 = train.broadcast %1 dims [1] : tensor<4xf32> -> tensor<2x4xf32> {train.id = "norm.broadcast.0"}
  %3 = train.sub %0, %2 : tensor<2x4xf32> {train.id = "norm.sub.0", train.full_precision}
  %4 = train.tanh %3 : tensor<2x4xf32> {train.id = "tanh.0"}
  %r = train.reduce sum %4 dims [0, 1] : tensor<2x4xf32> -> tensor<f32> {train.id = "sum.0"}
  return %r : tensor<f32>
}
