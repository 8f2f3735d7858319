// RUN: windlass-opt %s -sched-fuse-elementwise -sched-lower-to-commands -sched-verify-commands | FileCheck %s
// Rows of 16-bit matrices begin at multiples of 16 bytes, unless they are short or somebody needs them dense.

#whole0 = #plan.layout<[]>
#x = #plan.layout<[#plan.dim<[#plan.factor<4>]>, #plan.dim<[#plan.factor<16>]>]>
#w = #plan.layout<[#plan.dim<[#plan.factor<16>]>, #plan.dim<[#plan.factor<65>]>]>
#narrow = #plan.layout<[#plan.dim<[#plan.factor<16>]>, #plan.dim<[#plan.factor<5>]>]>

module {
sched.program @program on <[#plan.axis<"data", 1>]> {
  sched.resource input @x : tensor<4x16xbf16> of tensor<4x16xbf16> #x {logical_name = "x"}
  sched.resource parameter @w : tensor<16x65xbf16> of tensor<16x65xbf16> #w {logical_name = "w"}
  sched.resource parameter @n : tensor<16x5xbf16> of tensor<16x5xbf16> #narrow {logical_name = "n"}
  sched.resource gradient @dw : tensor<16x65xbf16> of tensor<16x65xbf16> #w
  sched.resource loss @loss : tensor<bf16> of tensor<bf16> #whole0
  sched.resource grad_norm @norm : tensor<f32> of tensor<f32> #whole0

  // CHECK-LABEL: func.func @forward
  func.func @forward() -> (tensor<4x16xbf16>, tensor<4x65xbf16>) attributes {sched.step = #sched.step<forward, chunk 0>} {
    %x = sched.load @x : tensor<4x16xbf16>
    %w = sched.load @w : tensor<16x65xbf16>
    %n = sched.load @n : tensor<16x5xbf16>
    // CHECK: launch matmul{{.*}} -> memref<4x65xbf16, strided<[72, 1]>>
    %y = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<4x16xbf16>, tensor<16x65xbf16> -> tensor<4x65xbf16>
    // CHECK: launch reduce{{.*}} : (memref<2x2x65xbf16, strided<[144, 72, 1]>>)
    %rows = train.reshape %y : tensor<4x65xbf16> -> tensor<2x2x65xbf16>
    %l = train.reduce sum %rows dims [0, 1, 2] : tensor<2x2x65xbf16> -> tensor<bf16>
    // CHECK: launch matmul{{.*}} -> memref<4x5xbf16>
    %short = train.matmul %x, %n batch [] x [] contract [1] x [0] : tensor<4x16xbf16>, tensor<16x5xbf16> -> tensor<4x5xbf16>
    %k = train.reduce sum %short dims [0, 1] : tensor<4x5xbf16> -> tensor<bf16>
    // CHECK: launch matmul{{.*}} -> memref<4x65xbf16>
    %flat = train.matmul %x, %w batch [] x [] contract [1] x [0] : tensor<4x16xbf16>, tensor<16x65xbf16> -> tensor<4x65xbf16>
    %line = train.reshape %flat : tensor<4x65xbf16> -> tensor<260xbf16>
    %m = train.reduce sum %line dims [0] : tensor<260xbf16> -> tensor<bf16>
    %lk = train.add %l, %k : tensor<bf16>
    %all = train.add %lk, %m : tensor<bf16>
    sched.add_to @loss, %all : tensor<bf16>
    return %x, %y : tensor<4x16xbf16>, tensor<4x65xbf16>
  }
  // CHECK-LABEL: func.func @backward
  func.func @backward(%x: tensor<4x16xbf16>, %y: tensor<4x65xbf16>) attributes {sched.step = #sched.step<backward, chunk 0>} {
    // CHECK: launch_map {{.*}} : (memref<4x65xbf16, strided<[72, 1]>>) -> memref<4x65xbf16, strided<[72, 1]>>
    %dy = train.neg %y : tensor<4x65xbf16>
    // CHECK: launch matmul{{.*}} -> memref<16x65xbf16>
    %dw = train.matmul %x, %dy batch [] x [] contract [0] x [0] : tensor<4x16xbf16>, tensor<4x65xbf16> -> tensor<16x65xbf16>
    sched.add_to @dw, %dw : tensor<16x65xbf16>
    // What no product touches lies as what it may be computed in the place of: as the sum with a bias in that of scores.
    // CHECK: launch_map {{.*}} : (memref<4x65xbf16, strided<[72, 1]>>) -> memref<4x65xbf16, strided<[72, 1]>>
    %e = train.exp %y : tensor<4x65xbf16>
    %s = train.reduce sum %e dims [0, 1] : tensor<4x65xbf16> -> tensor<bf16>
    sched.add_to @loss, %s : tensor<bf16>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} { return }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %one = train.constant dense<1.0> : tensor<f32>
    sched.store @norm, %one : tensor<f32>
    return
  }
  sched.schedule [#sched.action<repeat x 2 of 2>, #sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
}
}
