// One layer with what LLaMA has and a GPT has not: RMS norm, rotary embedding, grouped queries, SwiGLU; with dropout of two
// kinds and a loss over elements that labels choose. Each level on 1, 2, 4 and 8 ranks leaves what L1 and L2 do.
// RUN: %python %source/integration_test/equivalence.py --build %binary --input %s --micro-batches 2 --ranks 1,2,4,8 --bucket-bytes 512 --work %t | FileCheck %s
// CHECK: equivalent: 34 comparisons, worst f64 {{[0-9.e+-]*}} of 1e-10, worst f32 {{[0-9.e+-]*}} of 1e-05
module attributes {train.model = "layer"} {
  train.parameter weight @wte "wte.weight" : tensor<11x8xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @n1s "norm1.weight" : tensor<8xf32> from #train.source<packed> {trainable}
  train.parameter weight @q "q.weight" : tensor<8x8xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @kv "kv.weight" : tensor<8x8xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @o "o.weight" : tensor<8x8xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @n2s "norm2.weight" : tensor<8xf32> from #train.source<packed> {trainable}
  train.parameter weight @gate "gate.weight" : tensor<8x12xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @up "up.weight" : tensor<8x12xf32> from #train.source<packed> {trainable, decays}
  train.parameter weight @down "down.weight" : tensor<12x8xf32> from #train.source<packed> {trainable, decays}
  func.func @loss(%ids: tensor<4x6xi64> {train.input = "input_ids", train.vocabulary = 11 : i64},
                  %labels: tensor<4x6xi64> {train.input = "labels", train.vocabulary = 11 : i64},
                  %keys: tensor<4x2xi64> {train.input = "dropout keys", train.feed = "random"}) -> tensor<f32> {
    %wte = train.read @wte : tensor<11x8xf32> {train.id = "wte"}
    %tokens = train.embedding %wte, %ids : tensor<11x8xf32>, tensor<4x6xi64> -> tensor<4x6x8xf32> {train.id = "tokens"}
    %column0 = train.slice %keys from [0, 0] sizes [4, 1] : tensor<4x2xi64> -> tensor<4x1xi64> {train.id = "column0"}
    %keys0 = train.reshape %column0 : tensor<4x1xi64> -> tensor<4xi64> {train.id = "keys0"}
    %x = train.dropout %tokens, %keys0 ratio 0.3 : tensor<4x6x8xf32>, tensor<4xi64> {train.id = "x"}

    %n1s = train.read @n1s : tensor<8xf32> {train.id = "n1s"}
    %n1, %rstd1 = train.rms_norm %x, %n1s epsilon 1.0e-5
        : tensor<4x6x8xf32>, tensor<8xf32> -> tensor<4x6x8xf32>, tensor<4x6xf32> {train.id = "n1"}
    %qw = train.read @q : tensor<8x8xf32> {train.id = "qw"}
    %kvw = train.read @kv : tensor<8x8xf32> {train.id = "kvw"}
    %q = train.matmul %n1, %qw batch [] x [] contract [2] x [0]
        : tensor<4x6x8xf32>, tensor<8x8xf32> -> tensor<4x6x8xf32> {train.id = "q"}
    %kv = train.matmul %n1, %kvw batch [] x [] contract [2] x [0]
        : tensor<4x6x8xf32>, tensor<8x8xf32> -> tensor<4x6x8xf32> {train.id = "kv"}
    %k, %v = train.split %kv axis 2 sizes [4, 4] : tensor<4x6x8xf32> -> tensor<4x6x4xf32>, tensor<4x6x4xf32> {train.id = "k"}
    %qh = train.reshape %q : tensor<4x6x8xf32> -> tensor<4x6x2x4xf32> {train.id = "qh"}
    %kh = train.reshape %k : tensor<4x6x4xf32> -> tensor<4x6x1x4xf32> {train.id = "kh"}
    %vh = train.reshape %v : tensor<4x6x4xf32> -> tensor<4x6x1x4xf32> {train.id = "vh"}
    %qt = train.transpose %qh [0, 2, 1, 3] : tensor<4x6x2x4xf32> -> tensor<4x2x6x4xf32> {train.id = "qt"}
    %kt = train.transpose %kh [0, 2, 1, 3] : tensor<4x6x1x4xf32> -> tensor<4x1x6x4xf32> {train.id = "kt"}
    %vt = train.transpose %vh [0, 2, 1, 3] : tensor<4x6x1x4xf32> -> tensor<4x1x6x4xf32> {train.id = "vt"}
    %places = train.iota 0 start 0.0 step 0.5 : tensor<6x4xf32> {train.id = "places"}
    %cosine = train.cos %places : tensor<6x4xf32> {train.id = "cosine"}
    %sine = train.sin %places : tensor<6x4xf32> {train.id = "sine"}
    %qr = train.rotary %qt, %cosine, %sine : tensor<4x2x6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32> {train.id = "qr"}
    %kr = train.rotary %kt, %cosine, %sine : tensor<4x1x6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32> {train.id = "kr"}
    %heads, %log = train.attention %qr, %kr, %vt scale 0.5 causal {train.id = "heads"}
        : (tensor<4x2x6x4xf32>, tensor<4x1x6x4xf32>, tensor<4x1x6x4xf32>) -> (tensor<4x2x6x4xf32>, tensor<4x2x6xf32>)
    %back = train.transpose %heads [0, 2, 1, 3] : tensor<4x2x6x4xf32> -> tensor<4x6x2x4xf32> {train.id = "back"}
    %joined = train.reshape %back : tensor<4x6x2x4xf32> -> tensor<4x6x8xf32> {train.id = "joined"}
    %ow = train.read @o : tensor<8x8xf32> {train.id = "ow"}
    %attended = train.matmul %joined, %ow batch [] x [] contract [2] x [0]
        : tensor<4x6x8xf32>, tensor<8x8xf32> -> tensor<4x6x8xf32> {train.id = "attended"}
    %column1 = train.slice %keys from [0, 1] sizes [4, 1] : tensor<4x2xi64> -> tensor<4x1xi64> {train.id = "column1"}
    %keys1 = train.reshape %column1 : tensor<4x1xi64> -> tensor<4xi64> {train.id = "keys1"}
    %thinned = train.dropout %attended, %keys1 ratio 0.5 : tensor<4x6x8xf32>, tensor<4xi64> {train.id = "thinned"}
    %x1 = train.add %x, %thinned : tensor<4x6x8xf32> {train.id = "x1"}

    %n2s = train.read @n2s : tensor<8xf32> {train.id = "n2s"}
    %n2, %rstd2 = train.rms_norm %x1, %n2s epsilon 1.0e-5
        : tensor<4x6x8xf32>, tensor<8xf32> -> tensor<4x6x8xf32>, tensor<4x6xf32> {train.id = "n2"}
    %gatew = train.read @gate : tensor<8x12xf32> {train.id = "gatew"}
    %upw = train.read @up : tensor<8x12xf32> {train.id = "upw"}
    %gate = train.matmul %n2, %gatew batch [] x [] contract [2] x [0]
        : tensor<4x6x8xf32>, tensor<8x12xf32> -> tensor<4x6x12xf32> {train.id = "gate"}
    %open = train.silu %gate : tensor<4x6x12xf32> {train.id = "open"}
    %up = train.matmul %n2, %upw batch [] x [] contract [2] x [0]
        : tensor<4x6x8xf32>, tensor<8x12xf32> -> tensor<4x6x12xf32> {train.id = "up"}
    %gated = train.mul %open, %up : tensor<4x6x12xf32> {train.id = "gated"}
    %downw = train.read @down : tensor<12x8xf32> {train.id = "downw"}
    %narrow = train.matmul %gated, %downw batch [] x [] contract [2] x [0]
        : tensor<4x6x12xf32>, tensor<12x8xf32> -> tensor<4x6x8xf32> {train.id = "narrow"}
    %x2 = train.add %x1, %narrow : tensor<4x6x8xf32> {train.id = "x2"}

    %logits = train.matmul %x2, %wte batch [] x [] contract [2] x [1]
        : tensor<4x6x8xf32>, tensor<11x8xf32> -> tensor<4x6x11xf32> {train.id = "logits"}
    %chances = train.softmax %logits : tensor<4x6x11xf32> {train.id = "chances"}
    %chosen = train.reshape %labels : tensor<4x6xi64> -> tensor<4x6x1xi64> {train.id = "chosen"}
    %taken = train.gather_elements %chances, %chosen axis 2
        : tensor<4x6x11xf32>, tensor<4x6x1xi64> -> tensor<4x6x1xf32> {train.id = "taken"}
    %logs = train.log %taken : tensor<4x6x1xf32> {train.id = "logs"}
    %minus = train.neg %logs : tensor<4x6x1xf32> {train.id = "minus"}
    %sum = train.reduce sum %minus dims [0, 1, 2] : tensor<4x6x1xf32> -> tensor<f32> {train.id = "sum"}
    %rows = train.constant dense<24.0> : tensor<f32>
    %loss = train.loss %sum, %rows : tensor<f32> {train.id = "loss"}
    return %loss : tensor<f32>
  }
}
