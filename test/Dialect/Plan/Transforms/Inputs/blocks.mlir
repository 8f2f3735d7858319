// L1: two blocks of two halves, each half with a residual sum; a mask that both read; a block that nothing cuts.

train.parameter weight @w0 "h.0.a" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @w1 "h.0.b" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @w2 "h.1.a" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @w3 "h.1.b" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @w4 "tail.0.a" : tensor<4x4xf32> from <packed> {trainable}
train.parameter weight @w5 "in.a" : tensor<4x4xf32> from <packed> {trainable}

func.func @loss(%input: tensor<2x4xf32> {train.input = "x"}, %m: tensor<2x4xf32> {train.input = "m"}) -> tensor<f32> {
  %mask = train.exp %m : tensor<2x4xf32> {train.id = "h.0/mask.0"}
  %in = train.read @w5 : tensor<4x4xf32> {train.id = "read.5"}
  %x = train.matmul %input, %in batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "in/matmul.0"}
  %a0 = train.read @w0 : tensor<4x4xf32> {train.id = "read.0"}
  %0 = train.matmul %x, %a0 batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "h.0/matmul.0"}
  %1 = train.add %0, %mask : tensor<2x4xf32> {train.id = "h.0/add.0"}
  %2 = train.softmax %1 : tensor<2x4xf32> {train.id = "h.0/softmax.0"}
  %p0 = train.sigmoid %2 : tensor<2x4xf32> {train.id = "h.0/sigmoid.0"}
  %3 = train.add %x, %p0 : tensor<2x4xf32> {train.id = "h.0/add.1"}
  %b0 = train.read @w1 : tensor<4x4xf32> {train.id = "read.1"}
  %4 = train.matmul %3, %b0 batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "h.0/matmul.1"}
  %5 = train.tanh %4 : tensor<2x4xf32> {train.id = "h.0/tanh.0"}
  %6 = train.add %3, %5 : tensor<2x4xf32> {train.id = "h.0/add.2"}
  %a1 = train.read @w2 : tensor<4x4xf32> {train.id = "read.2"}
  %7 = train.matmul %6, %a1 batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "h.1/matmul.0"}
  %8 = train.add %7, %mask : tensor<2x4xf32> {train.id = "h.1/add.0"}
  %9 = train.softmax %8 : tensor<2x4xf32> {train.id = "h.1/softmax.0"}
  %p1 = train.sigmoid %9 : tensor<2x4xf32> {train.id = "h.1/sigmoid.0"}
  %10 = train.add %6, %p1 : tensor<2x4xf32> {train.id = "h.1/add.1"}
  %b1 = train.read @w3 : tensor<4x4xf32> {train.id = "read.3"}
  %11 = train.matmul %10, %b1 batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "h.1/matmul.1"}
  %12 = train.tanh %11 : tensor<2x4xf32> {train.id = "h.1/tanh.0"}
  %13 = train.add %10, %12 : tensor<2x4xf32> {train.id = "h.1/add.2"}
  %c = train.read @w4 : tensor<4x4xf32> {train.id = "read.4"}
  %14 = train.matmul %13, %c batch [] x [] contract [1] x [0] : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32> {train.id = "tail.0/matmul.0"}
  %15 = train.sigmoid %14 : tensor<2x4xf32> {train.id = "tail.0/sigmoid.0"}
  %16 = train.mul %14, %15 : tensor<2x4xf32> {train.id = "tail.0/mul.0"}
  %17 = train.mul %16, %13 : tensor<2x4xf32> {train.id = "tail.0/mul.1"}
  %r = train.reduce sum %17 dims [0, 1] : tensor<2x4xf32> -> tensor<f32> {train.id = "head/sum.0"}
  return %r : tensor<f32>
}
