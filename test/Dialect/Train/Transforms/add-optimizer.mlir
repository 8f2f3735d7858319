// RUN: windlass-opt %s -split-input-file -train-freeze-parameters=patterns=frozen* -train-differentiate=micro-batches=2 -train-add-optimizer="clip=true no-decay=*.embed" -train-verify-functions | FileCheck %s
// RUN: windlass-opt %s -split-input-file -train-freeze-parameters=patterns=frozen* -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=sgd micro-batches=2" -train-verify-functions | FileCheck %s --check-prefix=SGD
// RUN: windlass-opt %s -split-input-file -train-freeze-parameters=patterns=frozen* -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=adam micro-batches=2" -train-verify-functions | FileCheck %s --check-prefix=ADAM
// RUN: windlass-opt %s -split-input-file -train-freeze-parameters=patterns=frozen* -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=lion micro-batches=2" -train-verify-functions | FileCheck %s --check-prefix=LION
// RUN: windlass-opt %s -split-input-file -train-freeze-parameters=patterns=frozen* -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=lamb micro-batches=2" -train-verify-functions | FileCheck %s --check-prefix=LAMB
// RUN: windlass-opt %s -split-input-file -train-freeze-parameters=patterns=frozen* -train-differentiate=micro-batches=2 -train-add-optimizer="optimizer=sgd micro-batches=2 ema=true" -train-verify-functions | FileCheck %s --check-prefix=EMA

// CHECK: module attributes {train.settings = {clip = true, micro_batches = 2 : i64, optimizer = "adamw"}}
// CHECK: train.parameter weight @w "a.weight" : tensor<2x3xf32> from <packed> {decays, trainable}
// CHECK: train.parameter weight @b "a.bias" : tensor<3xf32> from <packed> {trainable}
// CHECK: train.parameter weight @e "a.embed" : tensor<2x3xf32> from <packed> {trainable}
// CHECK: train.parameter weight @f "frozen.weight" : tensor<2x3xf32> from <packed> {reason = "frozen"}
// CHECK: train.parameter state @w.exp_avg "a.weight/exp_avg" : tensor<2x3xf32> from <none> {of = @w}
// CHECK: train.parameter state @w.exp_avg_sq "a.weight/exp_avg_sq" : tensor<2x3xf32> from <none> {of = @w}
// CHECK: train.parameter state @b.exp_avg "a.bias/exp_avg"
// CHECK-NOT: @f.exp_avg
// CHECK: func.func @update(%[[GW:.*]]: tensor<2x3xf32> {train.gradient = @w}, %[[GB:.*]]: tensor<3xf32> {train.gradient = @b}, %[[GE:.*]]: tensor<2x3xf32> {train.gradient = @e}) -> tensor<f32> {
// CHECK: %[[S0:.*]] = train.square_sum %[[GW]]
// CHECK: %[[S1:.*]] = train.square_sum %[[GB]]
// CHECK: %[[S2:.*]] = train.square_sum %[[GE]]
// CHECK: %[[S:.*]] = train.accumulate %[[S0]], %[[S1]], %[[S2]]
// CHECK: %[[NORM:.*]] = train.sqrt %[[S]] : tensor<f32> {train.id = "update/grad_norm"}
// CHECK: %[[LIMIT:.*]] = train.hyperparameter clip_norm
// CHECK: %[[FACTOR:.*]] = train.clip_factor %[[NORM]], %[[LIMIT]]
// CHECK: %[[W:.*]] = train.read @w :
// CHECK: %[[M:.*]] = train.read @w.exp_avg :
// CHECK: %[[V:.*]] = train.read @w.exp_avg_sq :
// CHECK: %[[LR:.*]] = train.hyperparameter learning_rate
// CHECK: %[[W1:.*]], %[[M1:.*]], %[[V1:.*]] = train.adamw %[[W]], %[[M]], %[[V]], %[[GW]], %[[LR]], {{.*}}, %[[FACTOR]] decays
// CHECK: train.write @w, %[[W1]]
// CHECK: train.write @w.exp_avg, %[[M1]]
// CHECK: train.write @w.exp_avg_sq, %[[V1]]
// CHECK: train.adamw
// CHECK-NOT: decays
// CHECK: return %[[NORM]]

// SGD: optimizer = "sgd"
// SGD: train.parameter weight @e "a.embed" : tensor<2x3xf32> from <packed> {decays, trainable}
// SGD: train.parameter state @w.momentum_buffer "a.weight/momentum_buffer"
// SGD: func.func @update
// SGD: %[[ONE:.*]] = train.constant dense<1.000000e+00> : tensor<f32>
// SGD: train.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[ONE]] decays
// SGD: train.write @w.momentum_buffer

// ADAM: optimizer = "adam"
// ADAM: train.parameter state @w.exp_avg_sq "a.weight/exp_avg_sq"
// ADAM: func.func @update
// ADAM: train.adamw {{.*}} decays coupled {train.id = "update/a.weight/adamw"}

// LION: optimizer = "lion"
// LION: train.parameter state @w.exp_avg "a.weight/exp_avg"
// LION-NOT: exp_avg_sq
// LION: func.func @update
// LION: %[[RATE:.*]] = train.hyperparameter learning_rate
// LION: %[[SHARE1:.*]] = train.hyperparameter one_minus_beta1
// LION: %[[SHARE2:.*]] = train.hyperparameter one_minus_beta2
// LION: %[[DECAY:.*]] = train.hyperparameter weight_decay
// LION: train.lion %{{.*}}, %{{.*}}, %{{.*}}, %[[RATE]], %[[SHARE1]], %[[SHARE2]], %[[DECAY]], %{{.*}} decays
// LION: train.write @w.exp_avg,

// LAMB: optimizer = "lamb"
// LAMB: train.parameter state @w.exp_avg_sq "a.weight/exp_avg_sq"
// LAMB: func.func @update
// LAMB: %[[DIRECTION:.*]], %[[MEAN:.*]], %{{.*}} = train.lamb %[[W:[0-9]+]], %{{.*}}, %{{.*}}, %arg0, {{.*}} decays {train.id = "update/a.weight/lamb"}
// LAMB: %[[RATE:.*]] = train.hyperparameter learning_rate
// LAMB: %[[OF_W:.*]] = train.square_sum %[[W]]
// LAMB: %[[OF_DIRECTION:.*]] = train.square_sum %[[DIRECTION]]
// LAMB: %[[LEAST:.*]] = train.min %[[OF_W]], %[[OF_DIRECTION]]
// LAMB: %[[HAS:.*]] = train.compare less %{{.*}}, %[[LEAST]]
// LAMB: %[[SQUARE:.*]] = train.div %[[OF_W]], %[[OF_DIRECTION]]
// LAMB: %[[ROOT:.*]] = train.sqrt %[[SQUARE]]
// LAMB: %[[TRUST:.*]] = train.select %[[HAS]], %[[ROOT]], %{{.*}}
// LAMB: %[[STEP:.*]] = train.mul %[[RATE]], %[[TRUST]]
// LAMB: %[[NEW:.*]] = train.descend %[[W]], %[[DIRECTION]], %[[STEP]], %{{.*}} {train.id = "update/a.weight/descend"}
// LAMB: train.write @w, %[[NEW]]
// LAMB: train.write @w.exp_avg, %[[MEAN]]
// What does not decay descends by the learning rate itself.
// LAMB: %[[BIAS:.*]], %{{.*}}, %{{.*}} = train.lamb {{.*}} {train.id = "update/a.bias/lamb"}
// LAMB: train.descend %{{.*}}, %[[BIAS]], %[[RATE]], %{{.*}}

// EMA: ema = true
// EMA: train.parameter state @w.momentum_buffer "a.weight/momentum_buffer"
// EMA: train.parameter state @w.ema "a.weight/ema" : tensor<2x3xf32> from <none> {of = @w}
// EMA: train.parameter state @b.ema "a.bias/ema" : tensor<3xf32> from <none> {of = @b}
// EMA-NOT: state @f
// EMA: func.func @update
// EMA: %[[NEW:.*]], %{{.*}} = train.sgd {{.*}} {train.id = "update/a.weight/sgd"}
// EMA: train.write @w, %[[NEW]]
// Averages come behind all steps.
// EMA: train.sgd {{.*}} {train.id = "update/a.embed/sgd"}
// EMA: %[[OLD:.*]] = train.read @w.ema
// EMA: %[[RATE:.*]] = train.hyperparameter ema_rate
// EMA: %[[AVERAGE:.*]] = train.ema %[[OLD]], %[[NEW]], %[[RATE]] {train.id = "update/a.weight/ema"}
// EMA: train.write @w.ema, %[[AVERAGE]]
// EMA: train.ema {{.*}} {train.id = "update/a.bias/ema"}
train.parameter weight @w "a.weight" : tensor<2x3xf32> from <packed> {trainable}
train.parameter weight @b "a.bias" : tensor<3xf32> from <packed> {trainable}
train.parameter weight @e "a.embed" : tensor<2x3xf32> from <packed> {trainable}
train.parameter weight @f "frozen.weight" : tensor<2x3xf32> from <packed> {trainable}
func.func @loss() -> tensor<f32> {
  %w = train.read @w : tensor<2x3xf32> {train.id = "w"}
  %b = train.read @b : tensor<3xf32> {train.id = "b"}
  %e = train.read @e : tensor<2x3xf32> {train.id = "e"}
  %f = train.read @f : tensor<2x3xf32> {train.id = "f"}
  %0 = train.broadcast %b dims [1] : tensor<3xf32> -> tensor<2x3xf32> {train.id = "0"}
  %1 = train.mul %w, %0 : tensor<2x3xf32> {train.id = "1"}
  %2 = train.mul %1, %e : tensor<2x3xf32> {train.id = "2"}
  %3 = train.mul %2, %f : tensor<2x3xf32> {train.id = "3"}
  %4 = train.reduce sum %3 dims [0, 1] : tensor<2x3xf32> -> tensor<f32> {train.id = "4"}
  return %4 : tensor<f32>
}

// -----

// A running statistic moves as far as the step's two micro-batches take it; neither the norm nor the optimizer knows it.
// CHECK: train.parameter weight @r "running" : tensor<3xf32> from <packed> {momentum = 9.000000e-01 : f64, trainable}
// CHECK-NOT: @r.exp_avg
// CHECK: func.func @update(%[[GS:.*]]: tensor<3xf32> {train.gradient = @s}, %[[GR:.*]]: tensor<3xf32> {train.gradient = @r})
// CHECK: %[[SQUARES:.*]] = train.square_sum %[[GS]]
// CHECK-NEXT: train.accumulate %[[SQUARES]] :
// CHECK: %[[R:.*]] = train.read @r
// CHECK: %[[NEW:.*]] = train.average %[[R]], %[[GR]] rate 0.18999999761581421 {{.*}}{train.id = "update/running/average"}
// CHECK: train.write @r, %[[NEW]]
train.parameter weight @s "scale.embed" : tensor<3xf32> from <packed> {trainable}
train.parameter weight @r "running" : tensor<3xf32> from <packed> {momentum = 0.9 : f64, trainable}
train.parameter weight @f "frozen" : tensor<3xf32> from <packed> {trainable}
func.func @loss(%x: tensor<3xf32> {train.input = "x"}) -> tensor<f32> {
  %s = train.read @s : tensor<3xf32> {train.id = "s"}
  %r = train.read @r : tensor<3xf32> {train.id = "r"}
  %f = train.read @f : tensor<3xf32> {train.id = "f"}
  %0 = train.mul %x, %f : tensor<3xf32> {train.id = "statistic"}
  %1 = train.track_statistic %0, %r correction 1.0 : tensor<3xf32> {train.id = "track"}
  %2 = train.mul %1, %s : tensor<3xf32> {train.id = "scaled"}
  %3 = train.reduce sum %2 dims [0] : tensor<3xf32> -> tensor<f32> {train.id = "sum"}
  return %3 : tensor<f32>
}
