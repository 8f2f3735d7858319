// A linear layer whose optimizer runs on the host: parameters and gradients lie in the device's memory, master copies and
// state in the host's. After the last micro-batch each gradient is copied to the host, AdamW updates master and state
// there, and the new parameter is copied back. One staging buffer takes both gradients, one after the other, and things
// of the two arenas have equal offsets, so that whoever takes an offset for a place goes wrong.
//
// The same model with all of it on the device, from L1 on by the passes of a compilation, computes the same.
// RUN: windlass-opt --train-graph-pipeline --train-functions-pipeline="micro-batches=2 optimizer=adamw" %S/Inputs/linear.mlir > %t.l2.mlir
// RUN: windlass-run %t.l2.mlir --level L2 --steps 3 --eps 1e-3 -o %t.l2.safetensors
// RUN: windlass-opt %s -sched-verify-commands="memory-limit=1024 host-memory-limit=1408" > %t.mlir
// RUN: windlass-run %t.mlir --level L5 --steps 3 --eps 1e-3 --keep-trajectory -o %t.l5.safetensors | FileCheck %s
// RUN: windlass-run --compare %t.l2.safetensors %t.l5.safetensors | FileCheck %s --check-prefix=SAME
// RUN: windlass-run %S/Inputs/linear.mlir --level L1 --micro-batches 2 --steps 3 --trajectory %t.l5.safetensors -o %t.l1.safetensors
// RUN: windlass-run --compare %t.l1.safetensors %t.l5.safetensors
// RUN: windlass-run %t.mlir --precision f32 --steps 3 --eps 1e-3 -o %t.f32.safetensors
// RUN: windlass-run --compare %t.l2.safetensors %t.f32.safetensors --bound 1e-5
// CHECK: step 0 loss {{.*}} grad_norm
// CHECK-NEXT: step 1 loss {{.*}} grad_norm
// CHECK-NEXT: step 2 loss {{.*}} grad_norm
// SAME: gradient {{.*}} of 6 tensors
// SAME: loss {{.*}} of 3 tensors
// SAME: parameter {{.*}} of 2 tensors
// SAME: state {{.*}} of 4 tensors

// The program that is emitted for it (integration_test/test_host_update.py trains it) moves bytes between the two arenas.
// RUN: rm -rf %t.project && windlass-opt --emit-schedule %s %t.project --backend cuda --memory-limit 1024 --host-memory-limit 1408
// RUN: cat %t.project/src/buffers.h %t.project/src/step.cpp | FileCheck %s --check-prefix=STEP
// RUN: FileCheck %s --check-prefix=TABLES < %t.project/src/tables.cpp
// STEP-DAG: constexpr buffer [[DEVICE:v[0-9]+]]({0, 384}, element_type::f32, {4, 8}); // gradient of model.0.weight
// STEP-DAG: constexpr buffer [[HOST:v[0-9]+]]({1, 384}, element_type::f32, {4, 8})
// STEP: copy(d2h_{{[0-9]}}, at([[HOST]]), at([[DEVICE]]))
// STEP: map_views<on_host<
// TABLES: memory_kind::device; out.bytes = 1024
// TABLES: memory_kind::pinned; out.bytes = 1408
// RUN: not windlass-opt --emit-schedule %s %t.project --backend tpu 2>&1 | FileCheck %s --check-prefix=WORDS
// WORDS: expected --backend cpu or cuda, --memory-limit BYTES or --host-memory-limit BYTES, got '--backend tpu'

// What is wrong with a variant is said, by the verify pass, and where it is a race by the interpreter too.

// A copy in the wrong direction.
// RUN: sed 's/copy on @flush ins(%%gw)/copy on @fetch ins(%%gw)/' %s > %t.1.mlir
// RUN: not windlass-opt %t.1.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=DIRECTION
// DIRECTION: error: 'sched.launch' op reads @device_arena, of kind device, but on a stream of kind h2d commands read memory of kind host

// A copy that does not wait for the gradient.
// RUN: sed '/LINE: gradients-ready/d' %s > %t.2.mlir
// RUN: not windlass-opt %t.2.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: not windlass-run %t.2.mlir 2>&1 | FileCheck %s --check-prefix=EARLY-INTERPRETED
// EARLY: error: 'sched.launch' op reads byte 384 without waiting for its write on stream 0, in @device_arena
// EARLY-INTERPRETED: error: reads what an unordered command writes at byte 384
// EARLY-INTERPRETED: sched.launch copy on @flush

// An update that reads before the copy has ended.
// RUN: sed '/LINE: weight-gradient-there/d' %s > %t.3.mlir
// RUN: not windlass-opt %t.3.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=COPYING
// RUN: not windlass-run %t.3.mlir 2>&1 | FileCheck %s --check-prefix=COPYING-INTERPRETED
// COPYING: error: 'sched.launch' op reads byte 384 without waiting for its write on stream 1, in @host_arena
// COPYING-INTERPRETED: error: reads what an unordered command writes at byte 384
// COPYING-INTERPRETED: sched.launch adamw on @host

// A kernel of the device on the host's memory, and one that hosts do not run.
// RUN: sed 's/adamw on @host/adamw on @compute/' %s > %t.4.mlir
// RUN: not windlass-opt %t.4.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=KERNEL
// KERNEL: error: 'sched.launch' op reads @host_arena, of kind host, but on a stream of kind compute commands read memory of kind device
// RUN: sed 's/sched.launch reduce on @compute/sched.launch reduce on @host/' %s > %t.5.mlir
// RUN: not windlass-opt %t.5.mlir 2>&1 | FileCheck %s --check-prefix=DEVICE-ONLY
// DEVICE-ONLY: error: 'sched.launch' op runs on @host, a stream of kind host, but kernel 'reduce' runs on devices only

// Two things in the same bytes of an arena, both needed.
// RUN: sed 's/%%scale = sched.buffer @host_arena\[0\]/%%scale = sched.buffer @host_arena[384]/' %s > %t.6.mlir
// RUN: not windlass-opt %t.6.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=ALIVE
// ALIVE: error: 'sched.launch' op reads byte 384 of value 30 after value 31 overwrote it, in @host_arena
// RUN: sed 's/@host_arena, logical_name = "model.0.weight\/exp_avg", of = @w0.exp_avg, offset = 576/@host_arena, logical_name = "model.0.weight\/exp_avg", of = @w0.exp_avg, offset = 256/' %s > %t.7.mlir
// RUN: not windlass-opt %t.7.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=OVERLAP
// OVERLAP: error: 'sched.resource' op overlaps @master_w0

// An arena above its limit, whatever the other one has left.
// RUN: not windlass-opt %s -sched-verify-commands="memory-limit=1000000 host-memory-limit=1024" 2>&1 | FileCheck %s --check-prefix=LIMIT
// LIMIT: error: 'sched.program' op needs 1408 bytes of host memory but the limit is 1024
// RUN: not windlass-opt %s -sched-verify-commands="memory-limit=1023 host-memory-limit=1000000" 2>&1 | FileCheck %s --check-prefix=DEVICE-LIMIT
// DEVICE-LIMIT: error: 'sched.program' op needs 1024 bytes of device memory but the limit is 1023
// RUN: not windlass-opt --emit-schedule %s %t.project --host-memory-limit 1024 2>&1 | FileCheck %s --check-prefix=LIMIT

// A forward that reads the parameters while they come back. Between steps the interpreter waits.
// RUN: sed '/LINE: parameters-here/d' %s > %t.8.mlir
// RUN: not windlass-opt %t.8.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=FORWARD
// FORWARD: error: 'sched.launch' op reads byte 192 without waiting for its write on stream 3, in @device_arena

// An arena that nobody declares, one of a kind that its streams do not reach, a second one of a kind.
// RUN: sed '/^  sched.arena @host_arena/d' %s > %t.9.mlir
// RUN: not windlass-opt %t.9.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=UNDECLARED
// RUN: not windlass-run %t.9.mlir 2>&1 | FileCheck %s --check-prefix=UNDECLARED-INTERPRETED
// UNDECLARED: error: 'sched.resource' op lies in @host_arena, which is no arena of the program
// UNDECLARED-INTERPRETED: error: cannot be executed: there is no sched.arena "host_arena"
// RUN: sed 's/@host_arena host/@host_arena disk/' %s > %t.10.mlir
// RUN: not windlass-opt %t.10.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=DISK
// DISK: error: 'sched.launch' op writes @host_arena, of kind disk, but on a stream of kind d2h commands write memory of kind host
// RUN: sed 's/@host_arena host/@host_arena device/' %s > %t.11.mlir
// RUN: not windlass-opt %t.11.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=SECOND
// SECOND: error: 'sched.arena' op is a second arena of kind device

// The next gradient in the staging buffer before the first has been used.
// RUN: sed '/LINE: staging-free/d' %s > %t.12.mlir
// RUN: not windlass-opt %t.12.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=REUSE
// RUN: not windlass-run %t.12.mlir 2>&1 | FileCheck %s --check-prefix=REUSE-INTERPRETED
// REUSE: error: 'sched.launch' op writes byte 384 without waiting for its reader on stream 2, in @host_arena
// REUSE-INTERPRETED: error: overwrites what an unordered command reads at byte 384
// REUSE-INTERPRETED: sched.launch copy on @flush

// A copy back that does not wait for the update.
// RUN: sed '/LINE: bias-there/d' %s > %t.13.mlir
// RUN: not windlass-opt %t.13.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=UPDATING
// RUN: not windlass-run %t.13.mlir 2>&1 | FileCheck %s --check-prefix=UPDATING-INTERPRETED
// UPDATING: error: 'sched.launch' op reads byte 320 without waiting for its write on stream 2, in @host_arena
// UPDATING-INTERPRETED: error: reads what an unordered command writes at byte 320

// Something behind the end of its arena, though not of the other one.
// RUN: sed 's/@host_arena, offset = 1344/@host_arena, offset = 1408/; s/@host_arena\[1344\]/@host_arena[1408]/' %s > %t.14.mlir
// RUN: not windlass-opt %t.14.mlir -sched-verify-commands 2>&1 | FileCheck %s --check-prefix=END
// END: error: 'sched.resource' op ends at byte 1412 but @host_arena has 1408
module attributes {train.model = "linear", train.settings = {clip = false, micro_batches = 2 : i64, optimizer = "adamw", precision = "f32"}} {
  train.parameter weight @w0 "model.0.weight" : tensor<4x8xf32> from <packed, "", 0, 128> {decays, trainable}
  train.parameter weight @w1 "model.0.bias" : tensor<4xf32> from <packed, "", 0, 16> {trainable}
  train.parameter state @w0.exp_avg "model.0.weight/exp_avg" : tensor<4x8xf32> from <none> {of = @w0}
  train.parameter state @w0.exp_avg_sq "model.0.weight/exp_avg_sq" : tensor<4x8xf32> from <none> {of = @w0}
  train.parameter state @w1.exp_avg "model.0.bias/exp_avg" : tensor<4xf32> from <none> {of = @w1}
  train.parameter state @w1.exp_avg_sq "model.0.bias/exp_avg_sq" : tensor<4xf32> from <none> {of = @w1}
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 1024
  sched.arena @host_arena host bytes 1408
  sched.stream @compute compute
  sched.stream @flush d2h
  sched.stream @host host
  sched.stream @fetch h2d

  // On the device.
  sched.resource input @input_0 : tensor<4x8xf32> of tensor<4x8xf32> <[<[<4>]>, <[<8>]>]> {arena = @device_arena, logical_name = "x", offset = 0 : i64, train.feed = "none"}
  sched.resource input @input_1 : tensor<4xi64> of tensor<4xi64> <[<[<4>]>]> {arena = @device_arena, logical_name = "labels", offset = 128 : i64, train.feed = "none", train.vocabulary = 4 : i64}
  sched.resource parameter @parameter_w0 : tensor<4x8xf32> of tensor<4x8xf32> <[<[<4>]>, <[<8>]>]> {arena = @device_arena, logical_name = "model.0.weight", of = @w0, offset = 192 : i64}
  sched.resource parameter @parameter_w1 : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena, logical_name = "model.0.bias", of = @w1, offset = 320 : i64}
  sched.resource gradient @gradient_w0 : tensor<4x8xf32> of tensor<4x8xf32> <[<[<4>]>, <[<8>]>]> {arena = @device_arena, logical_name = "model.0.weight", of = @w0, offset = 384 : i64}
  sched.resource gradient @gradient_w1 : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @device_arena, logical_name = "model.0.bias", of = @w1, offset = 512 : i64}
  sched.resource loss @step_loss : tensor<f32> of tensor<f32> <[]> {arena = @device_arena, offset = 576 : i64}
  sched.resource grad_norm @step_grad_norm : tensor<f32> of tensor<f32> <[]> {arena = @device_arena, offset = 640 : i64}
  sched.resource evaluate @evaluate_loss : tensor<f32> of tensor<f32> <[]> {arena = @device_arena, offset = 704 : i64}

  // On the host. Staging lies at 384, the factor on the gradient at 0.
  sched.resource master @master_w0 : tensor<4x8xf32> of tensor<4x8xf32> <[<[<4>]>, <[<8>]>]> {arena = @host_arena, logical_name = "model.0.weight", of = @w0, offset = 192 : i64}
  sched.resource master @master_w1 : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @host_arena, logical_name = "model.0.bias", of = @w1, offset = 320 : i64}
  sched.resource state @state_w0.exp_avg : tensor<4x8xf32> of tensor<4x8xf32> <[<[<4>]>, <[<8>]>]> {arena = @host_arena, logical_name = "model.0.weight/exp_avg", of = @w0.exp_avg, offset = 576 : i64}
  sched.resource state @state_w0.exp_avg_sq : tensor<4x8xf32> of tensor<4x8xf32> <[<[<4>]>, <[<8>]>]> {arena = @host_arena, logical_name = "model.0.weight/exp_avg_sq", of = @w0.exp_avg_sq, offset = 704 : i64}
  sched.resource state @state_w1.exp_avg : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @host_arena, logical_name = "model.0.bias/exp_avg", of = @w1.exp_avg, offset = 832 : i64}
  sched.resource state @state_w1.exp_avg_sq : tensor<4xf32> of tensor<4xf32> <[<[<4>]>]> {arena = @host_arena, logical_name = "model.0.bias/exp_avg_sq", of = @w1.exp_avg_sq, offset = 896 : i64}
  sched.resource scalar @scalar_learning_rate : tensor<f32> of tensor<f32> <[]> {arena = @host_arena, offset = 960 : i64, scalar = #train<hyperparameter learning_rate>}
  sched.resource scalar @scalar_one_minus_beta1 : tensor<f32> of tensor<f32> <[]> {arena = @host_arena, offset = 1024 : i64, scalar = #train<hyperparameter one_minus_beta1>}
  sched.resource scalar @scalar_one_minus_beta2 : tensor<f32> of tensor<f32> <[]> {arena = @host_arena, offset = 1088 : i64, scalar = #train<hyperparameter one_minus_beta2>}
  sched.resource scalar @scalar_epsilon : tensor<f32> of tensor<f32> <[]> {arena = @host_arena, offset = 1152 : i64, scalar = #train<hyperparameter epsilon>}
  sched.resource scalar @scalar_weight_decay : tensor<f32> of tensor<f32> <[]> {arena = @host_arena, offset = 1216 : i64, scalar = #train<hyperparameter weight_decay>}
  sched.resource scalar @scalar_bias_correction1 : tensor<f32> of tensor<f32> <[]> {arena = @host_arena, offset = 1280 : i64, scalar = #train<hyperparameter bias_correction1>}
  sched.resource scalar @scalar_bias_correction2 : tensor<f32> of tensor<f32> <[]> {arena = @host_arena, offset = 1344 : i64, scalar = #train<hyperparameter bias_correction2>}

  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
  func.func @init() attributes {sched.step = #sched.step<init, chunk 0>} {
    return
  }
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 0 : i64}
    %labels = sched.buffer @device_arena[128] : memref<4xi64> {sched.storage = 1 : i64}
    %w = sched.buffer @device_arena[192] : memref<8x4xf32, strided<[1, 8]>> {sched.storage = 2 : i64}
    %b = sched.buffer @device_arena[320] : memref<4x4xf32, strided<[0, 1]>> {sched.storage = 3 : i64}
    %loss = sched.buffer @device_arena[576] : memref<f32> {sched.storage = 6 : i64}
    %y = sched.buffer @device_arena[768] : memref<4x4xf32> {sched.storage = 9 : i64}
    %sum = sched.buffer @device_arena[832] : memref<f32> {sched.storage = 10 : i64}
    %count = sched.buffer @device_arena[896] : memref<f32> {sched.storage = 11 : i64}
    %factor = sched.buffer @device_arena[960] : memref<f32> {sched.storage = 12 : i64}
    sched.launch matmul on @compute ins(%x, %w) outs(%y) {batch_rank = 0 : i64, contract_rank = 1 : i64} {train.id = "model.0.matmul.0"} : (memref<4x8xf32>, memref<8x4xf32, strided<[1, 8]>>) -> memref<4x4xf32>
    sched.launch_map @add on @compute ins(%y, %b) outs(%y) {train.id = "model.0.add.0"} : (memref<4x4xf32>, memref<4x4xf32, strided<[0, 1]>>) -> memref<4x4xf32>
    sched.launch count_labels on @compute ins(%labels) outs(%count) {ignore_index = -100 : i64} {train.id = "model.softmax_cross_entropy.0"} : (memref<4xi64>) -> memref<f32>
    sched.launch_map @half_over on @compute ins(%count) outs(%factor) {train.id = "model.loss.0.grad.sum"} : (memref<f32>) -> memref<f32>
    sched.launch softmax_cross_entropy_with_grad on @compute ins(%factor, %y, %labels) outs(%sum, %y) {ignore_index = -100 : i64} {train.id = "model.softmax_cross_entropy.0"} : (memref<f32>, memref<4x4xf32>, memref<4xi64>) -> (memref<f32>, memref<4x4xf32>)
    sched.launch_map @half_quotient on @compute ins(%sum, %count) outs(%loss) accumulate_after_first {train.id = "model.loss.0.share"} : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %x = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 0 : i64}
    %gw = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 4 : i64}
    %gb = sched.buffer @device_arena[512] : memref<4xf32> {sched.storage = 5 : i64}
    %gy = sched.buffer @device_arena[768] : memref<4x4xf32, strided<[1, 4]>> {sched.storage = 9 : i64}
    sched.launch reduce on @compute ins(%gy) outs(%gb) {kind = #train<reduction sum>, reduced_rank = 1 : i64} accumulate_after_first {train.id = "model.0.broadcast.0.grad.input"} : (memref<4x4xf32, strided<[1, 4]>>) -> memref<4xf32>
    sched.launch matmul on @compute ins(%gy, %x) outs(%gw) {batch_rank = 0 : i64, contract_rank = 1 : i64} accumulate_after_first {train.id = "model.0.matmul.0.grad.rhs"} : (memref<4x4xf32, strided<[1, 4]>>, memref<4x8xf32>) -> memref<4x8xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %w = sched.buffer @device_arena[192] : memref<4x8xf32> {sched.storage = 2 : i64}
    %b = sched.buffer @device_arena[320] : memref<4xf32> {sched.storage = 3 : i64}
    %gw = sched.buffer @device_arena[384] : memref<4x8xf32> {sched.storage = 4 : i64}
    %gb = sched.buffer @device_arena[512] : memref<4xf32> {sched.storage = 5 : i64}
    %norm = sched.buffer @device_arena[640] : memref<f32> {sched.storage = 7 : i64}
    %squares = sched.buffer @device_arena[832] : memref<f32> {sched.storage = 13 : i64}
    %scale = sched.buffer @host_arena[0] : memref<f32> {sched.storage = 31 : i64}
    %wm = sched.buffer @host_arena[192] : memref<4x8xf32> {sched.storage = 20 : i64}
    %bm = sched.buffer @host_arena[320] : memref<4xf32> {sched.storage = 21 : i64}
    %gwm = sched.buffer @host_arena[384] : memref<4x8xf32> {sched.storage = 30 : i64}
    %gbm = sched.buffer @host_arena[384] : memref<4xf32> {sched.storage = 32 : i64}
    %w1 = sched.buffer @host_arena[576] : memref<4x8xf32> {sched.storage = 22 : i64}
    %w2 = sched.buffer @host_arena[704] : memref<4x8xf32> {sched.storage = 23 : i64}
    %b1 = sched.buffer @host_arena[832] : memref<4xf32> {sched.storage = 24 : i64}
    %b2 = sched.buffer @host_arena[896] : memref<4xf32> {sched.storage = 25 : i64}
    %rate = sched.buffer @host_arena[960] : memref<f32> {sched.storage = 40 : i64}
    %beta1 = sched.buffer @host_arena[1024] : memref<f32> {sched.storage = 41 : i64}
    %beta2 = sched.buffer @host_arena[1088] : memref<f32> {sched.storage = 42 : i64}
    %epsilon = sched.buffer @host_arena[1152] : memref<f32> {sched.storage = 43 : i64}
    %decay = sched.buffer @host_arena[1216] : memref<f32> {sched.storage = 44 : i64}
    %correction1 = sched.buffer @host_arena[1280] : memref<f32> {sched.storage = 45 : i64}
    %correction2 = sched.buffer @host_arena[1344] : memref<f32> {sched.storage = 46 : i64}
    sched.record 0 on @compute
    sched.wait 0 on @flush // LINE: gradients-ready
    sched.launch copy on @flush ins(%gw) outs(%gwm) {} {train.id = "update/model.0.weight/flush"} : (memref<4x8xf32>) -> memref<4x8xf32>
    sched.record 1 on @flush
    // The norm is computed beside the copies.
    sched.launch square_sum on @compute ins(%gw) outs(%squares) {} {train.id = "update/model.0.weight/square_sum"} : (memref<4x8xf32>) -> memref<f32>
    sched.launch square_sum on @compute ins(%gb) outs(%squares) {} accumulate {train.id = "update/model.0.bias/square_sum"} : (memref<4xf32>) -> memref<f32>
    sched.launch_map @root on @compute ins(%squares) outs(%norm) {train.id = "update/grad_norm"} : (memref<f32>) -> memref<f32>
    sched.wait 1 on @host // LINE: weight-gradient-there
    sched.launch_map @one on @host ins() outs(%scale) {train.id = "update/scale"} : () -> memref<f32>
    sched.launch adamw on @host ins(%wm, %w1, %w2, %gwm, %rate, %beta1, %beta2, %epsilon, %decay, %correction1, %correction2, %scale) outs(%wm, %w1, %w2) {decays} {train.id = "update/model.0.weight/adamw"} : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>)
    sched.record 2 on @host
    sched.wait 2 on @flush // LINE: staging-free
    sched.launch copy on @flush ins(%gb) outs(%gbm) {} {train.id = "update/model.0.bias/flush"} : (memref<4xf32>) -> memref<4xf32>
    sched.record 3 on @flush
    sched.wait 2 on @fetch // LINE: weight-there
    sched.launch copy on @fetch ins(%wm) outs(%w) {} {train.id = "update/model.0.weight/fetch"} : (memref<4x8xf32>) -> memref<4x8xf32>
    sched.wait 3 on @host // LINE: bias-gradient-there
    sched.launch adamw on @host ins(%bm, %b1, %b2, %gbm, %rate, %beta1, %beta2, %epsilon, %decay, %correction1, %correction2, %scale) outs(%bm, %b1, %b2) {} {train.id = "update/model.0.bias/adamw"} : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>, memref<f32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>)
    sched.record 4 on @host
    sched.wait 4 on @fetch // LINE: bias-there
    sched.launch copy on @fetch ins(%bm) outs(%b) {} {train.id = "update/model.0.bias/fetch"} : (memref<4xf32>) -> memref<4xf32>
    sched.record 5 on @fetch
    sched.wait 5 on @compute // LINE: parameters-here
    return
  }
  func.func @evaluate() attributes {sched.step = #sched.step<evaluate, chunk 0>} {
    %x = sched.buffer @device_arena[0] : memref<4x8xf32> {sched.storage = 0 : i64}
    %labels = sched.buffer @device_arena[128] : memref<4xi64> {sched.storage = 1 : i64}
    %w = sched.buffer @device_arena[192] : memref<8x4xf32, strided<[1, 8]>> {sched.storage = 2 : i64}
    %b = sched.buffer @device_arena[320] : memref<4x4xf32, strided<[0, 1]>> {sched.storage = 3 : i64}
    %e = sched.buffer @device_arena[704] : memref<f32> {sched.storage = 8 : i64}
    %y = sched.buffer @device_arena[768] : memref<4x4xf32> {sched.storage = 14 : i64}
    %sum = sched.buffer @device_arena[832] : memref<f32> {sched.storage = 15 : i64}
    %count = sched.buffer @device_arena[896] : memref<f32> {sched.storage = 16 : i64}
    %log_sum = sched.buffer @device_arena[960] : memref<4xf32> {sched.storage = 17 : i64}
    sched.launch matmul on @compute ins(%x, %w) outs(%y) {batch_rank = 0 : i64, contract_rank = 1 : i64} {train.id = "model.0.matmul.0"} : (memref<4x8xf32>, memref<8x4xf32, strided<[1, 8]>>) -> memref<4x4xf32>
    sched.launch_map @add on @compute ins(%y, %b) outs(%y) {train.id = "model.0.add.0"} : (memref<4x4xf32>, memref<4x4xf32, strided<[0, 1]>>) -> memref<4x4xf32>
    sched.launch softmax_cross_entropy on @compute ins(%y, %labels) outs(%sum, %count, %log_sum) {ignore_index = -100 : i64} {train.id = "model.softmax_cross_entropy.0"} : (memref<4x4xf32>, memref<4xi64>) -> (memref<f32>, memref<f32>, memref<4xf32>)
    sched.launch_map @quotient on @compute ins(%sum, %count) outs(%e) {train.id = "model.loss.0"} : (memref<f32>, memref<f32>) -> memref<f32>
    return
  }
  func.func private @add(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %y : f32
    return %0 : f32
  }
  func.func private @half_quotient(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %half = arith.constant 5.000000e-01 : f32
    %0 = train.div %x, %y : f32
    %1 = train.mul %0, %half : f32
    return %1 : f32
  }
  func.func private @half_over(%x: f32) -> f32 attributes {sched.scalar_function} {
    %half = arith.constant 5.000000e-01 : f32
    %0 = train.div %half, %x : f32
    return %0 : f32
  }
  func.func private @root(%x: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.sqrt %x : f32
    return %0 : f32
  }
  func.func private @one() -> f32 attributes {sched.scalar_function} {
    %one = arith.constant 1.000000e+00 : f32
    return %one : f32
  }
  func.func private @quotient(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.div %x, %y : f32
    return %0 : f32
  }
}
}
