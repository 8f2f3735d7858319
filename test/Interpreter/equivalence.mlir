// One transformer layer with every op of a GPT, from L1 through the passes to commands: each level on 1, 2, 4 and 8 ranks
// leaves what L1 and L2 do. With G = 2 and a batch of 4 these are P = 1 and 2 with batch splits of 1, 2 and 4.
// RUN: %python %source/integration_test/equivalence.py --build %binary --input %s --micro-batches 2 --ranks 1,2,4,8 --bucket-bytes 512 --work %t | FileCheck %s
// CHECK: equivalent: 34 comparisons, worst f64 {{[0-9.e+-]*}} of 1e-10, worst f32 {{[0-9.e+-]*}} of 1e-05
module attributes {train.model = "layer"} {
  train.parameter weight @wte "wte.weight" : tensor<11x8xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @wpe "wpe.weight" : tensor<6x8xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @ln1s "ln1.weight" : tensor<8xf32> from #train.source<packed> {trainable}
  train.parameter weight @ln1b "ln1.bias" : tensor<8xf32> from #train.source<packed> {trainable}
  train.parameter weight @qkv "qkv.weight" : tensor<8x24xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @qkvb "qkv.bias" : tensor<24xf32> from #train.source<packed> {trainable}
  train.parameter weight @proj "proj.weight" : tensor<8x8xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @ln2s "ln2.weight" : tensor<8xf32> from #train.source<packed> {trainable}
  train.parameter weight @ln2b "ln2.bias" : tensor<8xf32> from #train.source<packed> {trainable}
  train.parameter weight @up "up.weight" : tensor<8x16xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @down "down.weight" : tensor<16x8xf32> from #train.source<packed> {trainable, decays}
  func.func @loss(%ids: tensor<4x6xi64> {train.input = "input_ids", train.vocabulary = 11 : i64},
                  %labels: tensor<4x6xi64> {train.input = "labels", train.vocabulary = 11 : i64}) -> tensor<f32> {
    %wte = train.read @wte : tensor<11x8xf32> {train.id = "wte"}
    %wpe = train.read @wpe : tensor<6x8xf32> {train.id = "wpe"}
    %positions = train.iota 0 start 0.0 step 1.0 : tensor<6xi64> {train.id = "positions"}
    %tokens = train.embedding %wte, %ids : tensor<11x8xf32>, tensor<4x6xi64> -> tensor<4x6x8xf32> {train.id = "tokens"}
    %places = train.embedding %wpe, %positions : tensor<6x8xf32>, tensor<6xi64> -> tensor<6x8xf32> {train.id = "places"}
    %spread = train.broadcast %places dims [1, 2] : tensor<6x8xf32> -> tensor<4x6x8xf32> {train.id = "spread"}
    %x = train.add %tokens, %spread : tensor<4x6x8xf32> {train.id = "x"}

    %ln1s = train.read @ln1s : tensor<8xf32> {train.id = "ln1s"}
    %ln1b = train.read @ln1b : tensor<8xf32> {train.id = "ln1b"}
    %n1, %mean1, %rstd1 = train.layer_norm %x, %ln1s, %ln1b epsilon 1.0e-5
        : tensor<4x6x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<4x6x8xf32>, tensor<4x6xf32>, tensor<4x6xf32> {train.id = "n1"}
    %qkvw = train.read @qkv : tensor<8x24xf32> {train.id = "qkvw"}
    %qkvb = train.read @qkvb : tensor<24xf32> {train.id = "qkvb"}
    %product = train.matmul %n1, %qkvw batch [] x [] contract [2] x [0]
        : tensor<4x6x8xf32>, tensor<8x24xf32> -> tensor<4x6x24xf32> {train.id = "product"}
    %biases = train.broadcast %qkvb dims [2] : tensor<24xf32> -> tensor<4x6x24xf32> {train.id = "biases"}
    %qkv = train.add %product, %biases : tensor<4x6x24xf32> {train.id = "qkv"}
    %q, %k, %v = train.split %qkv axis 2 sizes [8, 8, 8]
        : tensor<4x6x24xf32> -> tensor<4x6x8xf32>, tensor<4x6x8xf32>, tensor<4x6x8xf32> {train.id = "q"}
    %qh = train.reshape %q : tensor<4x6x8xf32> -> tensor<4x6x2x4xf32> {train.id = "qh"}
    %kh = train.reshape %k : tensor<4x6x8xf32> -> tensor<4x6x2x4xf32> {train.id = "kh"}
    %vh = train.reshape %v : tensor<4x6x8xf32> -> tensor<4x6x2x4xf32> {train.id = "vh"}
    %qt = train.transpose %qh [0, 2, 1, 3] : tensor<4x6x2x4xf32> -> tensor<4x2x6x4xf32> {train.id = "qt"}
    %kt = train.transpose %kh [0, 2, 1, 3] : tensor<4x6x2x4xf32> -> tensor<4x2x6x4xf32> {train.id = "kt"}
    %vt = train.transpose %vh [0, 2, 1, 3] : tensor<4x6x2x4xf32> -> tensor<4x2x6x4xf32> {train.id = "vt"}
    %heads, %log = train.attention %qt, %kt, %vt scale 0.5 causal {train.id = "heads"}
        : (tensor<4x2x6x4xf32>, tensor<4x2x6x4xf32>, tensor<4x2x6x4xf32>) -> (tensor<4x2x6x4xf32>, tensor<4x2x6xf32>)
    %back = train.transpose %heads [0, 2, 1, 3] : tensor<4x2x6x4xf32> -> tensor<4x6x2x4xf32> {train.id = "back"}
    %joined = train.reshape %back : tensor<4x6x2x4xf32> -> tensor<4x6x8xf32> {train.id = "joined"}
    %projw = train.read @proj : tensor<8x8xf32> {train.id = "projw"}
    %attended = train.matmul %joined, %projw batch [] x [] contract [2] x [0]
        : tensor<4x6x8xf32>, tensor<8x8xf32> -> tensor<4x6x8xf32> {train.id = "attended"}
    %x1 = train.add %x, %attended : tensor<4x6x8xf32> {train.id = "x1"}

    %ln2s = train.read @ln2s : tensor<8xf32> {train.id = "ln2s"}
    %ln2b = train.read @ln2b : tensor<8xf32> {train.id = "ln2b"}
    %n2, %mean2, %rstd2 = train.layer_norm %x1, %ln2s, %ln2b epsilon 1.0e-5
        : tensor<4x6x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<4x6x8xf32>, tensor<4x6xf32>, tensor<4x6xf32> {train.id = "n2"}
    %flat = train.reshape %n2 : tensor<4x6x8xf32> -> tensor<24x8xf32> {train.id = "flat"}
    %upw = train.read @up : tensor<8x16xf32> {train.id = "upw"}
    %wide = train.matmul %flat, %upw batch [] x [] contract [1] x [0]
        : tensor<24x8xf32>, tensor<8x16xf32> -> tensor<24x16xf32> {train.id = "wide"}
    %active = train.gelu_tanh %wide : tensor<24x16xf32> {train.id = "active"}
    %downw = train.read @down : tensor<16x8xf32> {train.id = "downw"}
    %narrow = train.matmul %active, %downw batch [] x [] contract [1] x [0]
        : tensor<24x16xf32>, tensor<16x8xf32> -> tensor<24x8xf32> {train.id = "narrow"}
    %unflat = train.reshape %narrow : tensor<24x8xf32> -> tensor<4x6x8xf32> {train.id = "unflat"}
    %x2 = train.add %x1, %unflat : tensor<4x6x8xf32> {train.id = "x2"}

    // The output layer shares the table; position t is to predict token t + 1, of which the last one has none.
    %logits = train.matmul %x2, %wte batch [] x [] contract [2] x [1]
        : tensor<4x6x8xf32>, tensor<11x8xf32> -> tensor<4x6x11xf32> {train.id = "logits"}
    %later = train.slice %labels from [0, 1] sizes [4, 5] : tensor<4x6xi64> -> tensor<4x5xi64> {train.id = "later"}
    %next = train.pad %later low [0, 0] high [0, 1] value -100.0 : tensor<4x5xi64> -> tensor<4x6xi64> {train.id = "next"}
    %sum, %count, %log_sum = train.softmax_cross_entropy %logits, %next ignore -100 {train.id = "sum"}
        : (tensor<4x6x11xf32>, tensor<4x6xi64>) -> (tensor<f32>, tensor<f32>, tensor<4x6xf32>)
    %loss = train.loss %sum, %count : tensor<f32> {train.id = "loss"}
    return %loss : tensor<f32>
  }
}
