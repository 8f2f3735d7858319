// RUN: windlass-opt %s -sched-fuse-elementwise -sched-lower-to-commands | FileCheck %s
// RUN: windlass-opt %s -sched-fuse-elementwise -sched-lower-to-commands --remarks-filter=sched-lower-to-commands --remark-format=emitRemark -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK: remark: [Analysis] arena {{.*}} bytes=2432, largest_live_set=2432, resource_bytes=2176
// A layer with bias and activation, data parallel over four ranks with two micro-batches on each.

#whole0 = #plan.layout<[]>
#whole1 = #plan.layout<[#plan.dim<[#plan.factor<8>]>]>
#input = #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<16>]>]>
#weight = #plan.layout<[#plan.dim<[#plan.factor<16>]>, #plan.dim<[#plan.factor<8>]>]>

module {
sched.program @program on <[#plan.axis<"data", 4>]> {
  sched.resource input @x : tensor<4x16xf32> of tensor<4x16xf32> #input {logical_name = "x"}
  sched.resource parameter @w : tensor<16x8xf32> of tensor<16x8xf32> #weight {logical_name = "w"}
  sched.resource parameter @b : tensor<8xf32> of tensor<8xf32> #whole1 {logical_name = "b"}
  sched.resource state @m : tensor<16x8xf32> of tensor<16x8xf32> #weight {logical_name = "w/exp_avg"}
  sched.resource gradient @dw : tensor<16x8xf32> of tensor<16x8xf32> #weight
  sched.resource gradient @db : tensor<8xf32> of tensor<8xf32> #whole1
  sched.resource scalar @lr : tensor<f32> of tensor<f32> #whole0 {scalar = #train<hyperparameter learning_rate>}
  sched.resource scalar @mu : tensor<f32> of tensor<f32> #whole0 {scalar = #train<hyperparameter momentum>}
  sched.resource loss @loss : tensor<f32> of tensor<f32> #whole0
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> #whole0

  func.func @forward() -> (tensor<4x16xf32>, tensor<4x8xf32>) attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<4x16xf32>
    %w = sched.load @w : tensor<16x8xf32>
    %b = sched.load @b : tensor<8xf32>
    %h = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
    %bb = train.broadcast %b dims [1] : tensor<8xf32> -> tensor<4x8xf32>
    %s = train.add %h, %bb : tensor<4x8xf32>
    %y = train.gelu_tanh %s : tensor<4x8xf32>
    %l = train.reduce sum %y dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
    sched.add_to @loss, %l : tensor<f32>
    return %x, %s : tensor<4x16xf32>, tensor<4x8xf32>
  }
  func.func @backward(%x: tensor<4x16xf32>, %s: tensor<4x8xf32>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    %one = train.constant dense<1.0> : tensor<f32>
    %dy = train.broadcast %one dims [] : tensor<f32> -> tensor<4x8xf32>
    %ds = train.gelu_tanh_grad %s, %dy : tensor<4x8xf32>
    %dw = train.matmul %x, %ds batch [] x [] contract [0] x [0] : tensor<4x16xf32>, tensor<4x8xf32> -> tensor<16x8xf32>
    sched.add_to @dw, %dw : tensor<16x8xf32>
    %db = train.reduce sum %ds dims [0] : tensor<4x8xf32> -> tensor<8xf32>
    sched.add_to @db, %db : tensor<8xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %dw = sched.load @dw : tensor<16x8xf32>
    %db = sched.load @db : tensor<8xf32>
    %r:2 = sched.all_reduce sum %dw, %db over ["data"] : (tensor<16x8xf32>, tensor<8xf32>) -> (tensor<16x8xf32>, tensor<8xf32>)
    sched.store @dw, %r#0 : tensor<16x8xf32>
    sched.store @db, %r#1 : tensor<8xf32>
    %l = sched.load @loss : tensor<f32>
    %t = sched.all_reduce sum %l over ["data"] : (tensor<f32>) -> tensor<f32>
    sched.store @loss, %t : tensor<f32>
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %lr = sched.load @lr : tensor<f32>
    %mu = sched.load @mu : tensor<f32>
    %dw = sched.load @dw : tensor<16x8xf32>
    %q = train.square_sum %dw : tensor<16x8xf32> -> tensor<f32>
    %n = train.sqrt %q : tensor<f32>
    sched.store @norm, %n : tensor<f32>
    %one = train.constant dense<1.0> : tensor<f32>
    %wd = train.constant dense<0.0> : tensor<f32>
    %w = sched.load @w : tensor<16x8xf32>
    %m = sched.load @m : tensor<16x8xf32>
    %u:2 = train.sgd %w, %m, %dw, %lr, %mu, %wd, %one : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<16x8xf32>, tensor<16x8xf32>)
    sched.store @w, %u#0 : tensor<16x8xf32>
    sched.store @m, %u#1 : tensor<16x8xf32>
    return
  }
  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}

// Resources first; the bucket of weight and bias in one piece, then the loss.
// CHECK: sched.arena @device_arena device bytes [[#]] {sched.largest_live_set = [[#]] : i64, sched.peak = {at = "{{.+}}", live = [{bytes = {{[0-9]+}} : i64, count = {{[0-9]+}} : i64, of = "{{.+}}"}{{.*}}]}, sched.permanent_bytes = 2176 : i64, sched.stash_bytes = [[#]] : i64}
// CHECK: sched.communicator @communicator_0 over ["data"] on @over_data
// CHECK: sched.resource {{ *}}{{.*}} @dw {{.*}}offset = [[#DW:]] : i64
// CHECK: sched.resource {{ *}}{{.*}} @db {{.*}}offset = [[#DW + 512]] : i64

// Bias and activation are one map; its first result, the stash, takes the place of the matmul's.
// CHECK-LABEL: func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
// CHECK: %[[H:.*]] = sched.buffer @device_arena[{{.*}}] : memref<4x8xf32>
// CHECK: sched.launch matmul on @compute ins({{.*}}) outs(%[[H]]) {batch_rank = 0 : i64, contract_rank = 1 : i64}
// CHECK: %[[BIAS:.*]] = sched.buffer {{.*}} : memref<4x8xf32, strided<[0, 1]>>
// CHECK: sched.launch_map @[[GELU:fused_0]] on @compute ins(%[[H]], %[[BIAS]]) outs(%[[H]], %{{.*}})
// CHECK: sched.launch reduce {{.*}} {kind = #train<reduction sum>, reduced_rank = 2 : i64} accumulate_after_first
// CHECK-NEXT: return

// The weight's gradient is added where it is kept; a transpose is a view.
// CHECK-LABEL: func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
// The last one begins to reduce the loss, then the bucket of gradients; @reduce waits for both.
// CHECK: sched.record [[#E0:]] on @compute {sched.in_last}
// CHECK-NEXT: sched.wait [[#E0]] on @over_data {sched.in_last}
// CHECK: sched.launch_collective{{ +}}all_reduce{{ +}}sum @communicator_0, %{{.*}} {sched.in_last, {{.*}}} : memref<1xf32>
// CHECK: sched.launch_map @fused_1 on @compute ins(%[[S:.*]]) outs(%[[S]])
// CHECK: %[[XT:.*]] = sched.buffer {{.*}} : memref<16x4xf32, strided<[1, 16]>>
// CHECK: %[[GRADIENT:.*]] = sched.buffer @device_arena[[[#DW]]] : memref<16x8xf32>
// CHECK: sched.launch matmul on @compute ins(%[[XT]], %[[S]]) outs(%[[GRADIENT]]) {{.*}} accumulate_after_first
// CHECK-NOT: launch_collective
// CHECK: return

// CHECK-LABEL: func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
// CHECK-NEXT: sched.record [[#E1:]] on @compute
// CHECK-NEXT: sched.wait [[#E1]] on @over_data
// CHECK-NEXT: %[[BUCKET:.*]] = sched.buffer @device_arena[[[#DW]]] : memref<136xf32>
// CHECK-NEXT: sched.launch_collective{{ +}}all_reduce{{ +}}sum @communicator_0, %[[BUCKET]] -> %[[BUCKET]]
// CHECK-NEXT: sched.record [[#E2:]] on @over_data
// CHECK-NEXT: sched.wait [[#E2]] on @compute
// CHECK-NEXT: return

// CHECK-LABEL: func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
// CHECK: sched.launch sgd on @compute ins(%[[W:.*]], %[[M:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) outs(%[[W]], %[[M]])

// CHECK: sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]

// CHECK: func.func private @[[GELU]](%[[A:.*]]: f32, %[[B:.*]]: f32) -> (f32, f32) attributes {sched.scalar_function}
// CHECK-NEXT: %[[SUM:.*]] = train.add %[[A]], %[[B]] : f32
// CHECK-NEXT: %[[Y:.*]] = train.gelu_tanh %[[SUM]] : f32
// CHECK-NEXT: return %[[SUM]], %[[Y]]
