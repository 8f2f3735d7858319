module attributes {train.model = "gpt"} {
  train.parameter weight @wte "wte" : tensor<16x16xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @wpe "wpe" : tensor<8x16xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @ln1_0 "h.0.ln1" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @ln1b_0 "h.0.ln1b" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @wqkv_0 "h.0.qkv" : tensor<16x48xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @bqkv_0 "h.0.bqkv" : tensor<48xf32> from #train.source<none> {trainable}
  train.parameter weight @wo_0 "h.0.wo" : tensor<16x16xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @bo_0 "h.0.bo" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @ln2_0 "h.0.ln2" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @ln2b_0 "h.0.ln2b" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @wf_0 "h.0.wf" : tensor<16x64xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @bf_0 "h.0.bf" : tensor<64xf32> from #train.source<none> {trainable}
  train.parameter weight @wp_0 "h.0.wp" : tensor<64x16xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @bp_0 "h.0.bp" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @ln1_1 "h.1.ln1" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @ln1b_1 "h.1.ln1b" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @wqkv_1 "h.1.qkv" : tensor<16x48xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @bqkv_1 "h.1.bqkv" : tensor<48xf32> from #train.source<none> {trainable}
  train.parameter weight @wo_1 "h.1.wo" : tensor<16x16xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @bo_1 "h.1.bo" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @ln2_1 "h.1.ln2" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @ln2b_1 "h.1.ln2b" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @wf_1 "h.1.wf" : tensor<16x64xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @bf_1 "h.1.bf" : tensor<64xf32> from #train.source<none> {trainable}
  train.parameter weight @wp_1 "h.1.wp" : tensor<64x16xf32> from #train.source<none> {trainable, decays}
  train.parameter weight @bp_1 "h.1.bp" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @lnf "lnf" : tensor<16xf32> from #train.source<none> {trainable}
  train.parameter weight @lnfb "lnfb" : tensor<16xf32> from #train.source<none> {trainable}
  func.func @loss(%ids: tensor<4x8xi64> {train.input = "input_ids", train.vocabulary = 16 : i64}) -> tensor<f32> {
    %wte = train.read @wte : tensor<16x16xf32> {train.id = "wte"}
    %emb = train.embedding %wte, %ids : tensor<16x16xf32>, tensor<4x8xi64> -> tensor<4x8x16xf32> {train.id = "emb"}
    %wpe = train.read @wpe : tensor<8x16xf32> {train.id = "wpe"}
    %pos = train.iota 0 start 0.0 step 1.0 : tensor<8xi64> {train.id = "pos"}
    %pe = train.embedding %wpe, %pos : tensor<8x16xf32>, tensor<8xi64> -> tensor<8x16xf32> {train.id = "pe"}
    %peb = train.broadcast %pe dims [1, 2] : tensor<8x16xf32> -> tensor<4x8x16xf32> {train.id = "peb"}
    %x0 = train.add %emb, %peb : tensor<4x8x16xf32> {train.id = "x0"}
    %ln1_0 = train.read @ln1_0 : tensor<16xf32> {train.id = "h.0/ln1/s"}
    %ln1b_0 = train.read @ln1b_0 : tensor<16xf32> {train.id = "h.0/ln1/b"}
    %n1_0:3 = train.layer_norm %x0, %ln1_0, %ln1b_0 epsilon 1.0e-05 : tensor<4x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>, tensor<4x8xf32>, tensor<4x8xf32> {train.id = "h.0/ln1"}
    %wqkv_0 = train.read @wqkv_0 : tensor<16x48xf32> {train.id = "h.0/wqkv"}
    %qkvm_0 = train.matmul %n1_0#0, %wqkv_0 batch [] x [] contract [2] x [0] : tensor<4x8x16xf32>, tensor<16x48xf32> -> tensor<4x8x48xf32> {train.id = "h.0/qkvm"}
    %bqkv_0 = train.read @bqkv_0 : tensor<48xf32> {train.id = "h.0/bqkv"}
    %qkvbb_0 = train.broadcast %bqkv_0 dims [2] : tensor<48xf32> -> tensor<4x8x48xf32> {train.id = "h.0/qkvbb"}
    %qkv_0 = train.add %qkvm_0, %qkvbb_0 : tensor<4x8x48xf32> {train.id = "h.0/qkv"}
    %sp_0:3 = train.split %qkv_0 axis 2 sizes [16, 16, 16] : tensor<4x8x48xf32> -> tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32> {train.id = "h.0/split"}
    %qr_0 = train.reshape %sp_0#0 : tensor<4x8x16xf32> -> tensor<4x8x2x8xf32> {train.id = "h.0/qr"}
    %qt_0 = train.transpose %qr_0 [0, 2, 1, 3] : tensor<4x8x2x8xf32> -> tensor<4x2x8x8xf32> {train.id = "h.0/qt"}
    %kr_0 = train.reshape %sp_0#1 : tensor<4x8x16xf32> -> tensor<4x8x2x8xf32> {train.id = "h.0/kr"}
    %kt_0 = train.transpose %kr_0 [0, 2, 1, 3] : tensor<4x8x2x8xf32> -> tensor<4x2x8x8xf32> {train.id = "h.0/kt"}
    %vr_0 = train.reshape %sp_0#2 : tensor<4x8x16xf32> -> tensor<4x8x2x8xf32> {train.id = "h.0/vr"}
    %vt_0 = train.transpose %vr_0 [0, 2, 1, 3] : tensor<4x8x2x8xf32> -> tensor<4x2x8x8xf32> {train.id = "h.0/vt"}
    %at_0:2 = train.attention %qt_0, %kt_0, %vt_0 scale 3.53553390593273786e-01 causal {train.id = "h.0/attn"} : (tensor<4x2x8x8xf32>, tensor<4x2x8x8xf32>, tensor<4x2x8x8xf32>) -> (tensor<4x2x8x8xf32>, tensor<4x2x8xf32>)
    %ot_0 = train.transpose %at_0#0 [0, 2, 1, 3] : tensor<4x2x8x8xf32> -> tensor<4x8x2x8xf32> {train.id = "h.0/ot"}
    %or_0 = train.reshape %ot_0 : tensor<4x8x2x8xf32> -> tensor<4x8x16xf32> {train.id = "h.0/or"}
    %wo_0 = train.read @wo_0 : tensor<16x16xf32> {train.id = "h.0/wo"}
    %prm_0 = train.matmul %or_0, %wo_0 batch [] x [] contract [2] x [0] : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32> {train.id = "h.0/prm"}
    %bo_0 = train.read @bo_0 : tensor<16xf32> {train.id = "h.0/bo"}
    %prbb_0 = train.broadcast %bo_0 dims [2] : tensor<16xf32> -> tensor<4x8x16xf32> {train.id = "h.0/prbb"}
    %pr_0 = train.add %prm_0, %prbb_0 : tensor<4x8x16xf32> {train.id = "h.0/pr"}
    %res_0 = train.add %x0, %pr_0 : tensor<4x8x16xf32> {train.id = "h.0/res"}
    %ln2_0 = train.read @ln2_0 : tensor<16xf32> {train.id = "h.0/ln2/s"}
    %ln2b_0 = train.read @ln2b_0 : tensor<16xf32> {train.id = "h.0/ln2/b"}
    %n2_0:3 = train.layer_norm %res_0, %ln2_0, %ln2b_0 epsilon 1.0e-05 : tensor<4x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>, tensor<4x8xf32>, tensor<4x8xf32> {train.id = "h.0/ln2"}
    %wf_0 = train.read @wf_0 : tensor<16x64xf32> {train.id = "h.0/wf"}
    %fcm_0 = train.matmul %n2_0#0, %wf_0 batch [] x [] contract [2] x [0] : tensor<4x8x16xf32>, tensor<16x64xf32> -> tensor<4x8x64xf32> {train.id = "h.0/fcm"}
    %bf_0 = train.read @bf_0 : tensor<64xf32> {train.id = "h.0/bf"}
    %fcbb_0 = train.broadcast %bf_0 dims [2] : tensor<64xf32> -> tensor<4x8x64xf32> {train.id = "h.0/fcbb"}
    %fc_0 = train.add %fcm_0, %fcbb_0 : tensor<4x8x64xf32> {train.id = "h.0/fc"}
    %ge_0 = train.gelu_tanh %fc_0 : tensor<4x8x64xf32> {train.id = "h.0/gelu"}
    %wp_0 = train.read @wp_0 : tensor<64x16xf32> {train.id = "h.0/wp"}
    %pjm_0 = train.matmul %ge_0, %wp_0 batch [] x [] contract [2] x [0] : tensor<4x8x64xf32>, tensor<64x16xf32> -> tensor<4x8x16xf32> {train.id = "h.0/pjm"}
    %bp_0 = train.read @bp_0 : tensor<16xf32> {train.id = "h.0/bp"}
    %pjbb_0 = train.broadcast %bp_0 dims [2] : tensor<16xf32> -> tensor<4x8x16xf32> {train.id = "h.0/pjbb"}
    %pj_0 = train.add %pjm_0, %pjbb_0 : tensor<4x8x16xf32> {train.id = "h.0/pj"}
    %out_0 = train.add %res_0, %pj_0 : tensor<4x8x16xf32> {train.id = "h.0/out"}
    %ln1_1 = train.read @ln1_1 : tensor<16xf32> {train.id = "h.1/ln1/s"}
    %ln1b_1 = train.read @ln1b_1 : tensor<16xf32> {train.id = "h.1/ln1/b"}
    %n1_1:3 = train.layer_norm %out_0, %ln1_1, %ln1b_1 epsilon 1.0e-05 : tensor<4x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>, tensor<4x8xf32>, tensor<4x8xf32> {train.id = "h.1/ln1"}
    %wqkv_1 = train.read @wqkv_1 : tensor<16x48xf32> {train.id = "h.1/wqkv"}
    %qkvm_1 = train.matmul %n1_1#0, %wqkv_1 batch [] x [] contract [2] x [0] : tensor<4x8x16xf32>, tensor<16x48xf32> -> tensor<4x8x48xf32> {train.id = "h.1/qkvm"}
    %bqkv_1 = train.read @bqkv_1 : tensor<48xf32> {train.id = "h.1/bqkv"}
    %qkvbb_1 = train.broadcast %bqkv_1 dims [2] : tensor<48xf32> -> tensor<4x8x48xf32> {train.id = "h.1/qkvbb"}
    %qkv_1 = train.add %qkvm_1, %qkvbb_1 : tensor<4x8x48xf32> {train.id = "h.1/qkv"}
    %sp_1:3 = train.split %qkv_1 axis 2 sizes [16, 16, 16] : tensor<4x8x48xf32> -> tensor<4x8x16xf32>, tensor<4x8x16xf32>, tensor<4x8x16xf32> {train.id = "h.1/split"}
    %qr_1 = train.reshape %sp_1#0 : tensor<4x8x16xf32> -> tensor<4x8x2x8xf32> {train.id = "h.1/qr"}
    %qt_1 = train.transpose %qr_1 [0, 2, 1, 3] : tensor<4x8x2x8xf32> -> tensor<4x2x8x8xf32> {train.id = "h.1/qt"}
    %kr_1 = train.reshape %sp_1#1 : tensor<4x8x16xf32> -> tensor<4x8x2x8xf32> {train.id = "h.1/kr"}
    %kt_1 = train.transpose %kr_1 [0, 2, 1, 3] : tensor<4x8x2x8xf32> -> tensor<4x2x8x8xf32> {train.id = "h.1/kt"}
    %vr_1 = train.reshape %sp_1#2 : tensor<4x8x16xf32> -> tensor<4x8x2x8xf32> {train.id = "h.1/vr"}
    %vt_1 = train.transpose %vr_1 [0, 2, 1, 3] : tensor<4x8x2x8xf32> -> tensor<4x2x8x8xf32> {train.id = "h.1/vt"}
    %at_1:2 = train.attention %qt_1, %kt_1, %vt_1 scale 3.53553390593273786e-01 causal {train.id = "h.1/attn"} : (tensor<4x2x8x8xf32>, tensor<4x2x8x8xf32>, tensor<4x2x8x8xf32>) -> (tensor<4x2x8x8xf32>, tensor<4x2x8xf32>)
    %ot_1 = train.transpose %at_1#0 [0, 2, 1, 3] : tensor<4x2x8x8xf32> -> tensor<4x8x2x8xf32> {train.id = "h.1/ot"}
    %or_1 = train.reshape %ot_1 : tensor<4x8x2x8xf32> -> tensor<4x8x16xf32> {train.id = "h.1/or"}
    %wo_1 = train.read @wo_1 : tensor<16x16xf32> {train.id = "h.1/wo"}
    %prm_1 = train.matmul %or_1, %wo_1 batch [] x [] contract [2] x [0] : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32> {train.id = "h.1/prm"}
    %bo_1 = train.read @bo_1 : tensor<16xf32> {train.id = "h.1/bo"}
    %prbb_1 = train.broadcast %bo_1 dims [2] : tensor<16xf32> -> tensor<4x8x16xf32> {train.id = "h.1/prbb"}
    %pr_1 = train.add %prm_1, %prbb_1 : tensor<4x8x16xf32> {train.id = "h.1/pr"}
    %res_1 = train.add %out_0, %pr_1 : tensor<4x8x16xf32> {train.id = "h.1/res"}
    %ln2_1 = train.read @ln2_1 : tensor<16xf32> {train.id = "h.1/ln2/s"}
    %ln2b_1 = train.read @ln2b_1 : tensor<16xf32> {train.id = "h.1/ln2/b"}
    %n2_1:3 = train.layer_norm %res_1, %ln2_1, %ln2b_1 epsilon 1.0e-05 : tensor<4x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>, tensor<4x8xf32>, tensor<4x8xf32> {train.id = "h.1/ln2"}
    %wf_1 = train.read @wf_1 : tensor<16x64xf32> {train.id = "h.1/wf"}
    %fcm_1 = train.matmul %n2_1#0, %wf_1 batch [] x [] contract [2] x [0] : tensor<4x8x16xf32>, tensor<16x64xf32> -> tensor<4x8x64xf32> {train.id = "h.1/fcm"}
    %bf_1 = train.read @bf_1 : tensor<64xf32> {train.id = "h.1/bf"}
    %fcbb_1 = train.broadcast %bf_1 dims [2] : tensor<64xf32> -> tensor<4x8x64xf32> {train.id = "h.1/fcbb"}
    %fc_1 = train.add %fcm_1, %fcbb_1 : tensor<4x8x64xf32> {train.id = "h.1/fc"}
    %ge_1 = train.gelu_tanh %fc_1 : tensor<4x8x64xf32> {train.id = "h.1/gelu"}
    %wp_1 = train.read @wp_1 : tensor<64x16xf32> {train.id = "h.1/wp"}
    %pjm_1 = train.matmul %ge_1, %wp_1 batch [] x [] contract [2] x [0] : tensor<4x8x64xf32>, tensor<64x16xf32> -> tensor<4x8x16xf32> {train.id = "h.1/pjm"}
    %bp_1 = train.read @bp_1 : tensor<16xf32> {train.id = "h.1/bp"}
    %pjbb_1 = train.broadcast %bp_1 dims [2] : tensor<16xf32> -> tensor<4x8x16xf32> {train.id = "h.1/pjbb"}
    %pj_1 = train.add %pjm_1, %pjbb_1 : tensor<4x8x16xf32> {train.id = "h.1/pj"}
    %out_1 = train.add %res_1, %pj_1 : tensor<4x8x16xf32> {train.id = "h.1/out"}
    %lnf = train.read @lnf : tensor<16xf32> {train.id = "lnf/s"}
    %lnfb = train.read @lnfb : tensor<16xf32> {train.id = "lnf/b"}
    %nf:3 = train.layer_norm %out_1, %lnf, %lnfb epsilon 1.0e-05 : tensor<4x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>, tensor<4x8xf32>, tensor<4x8xf32> {train.id = "lnf"}
    %lg = train.matmul %nf#0, %wte batch [] x [] contract [2] x [1] : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32> {train.id = "logits"}
    %sl = train.slice %lg from [0, 0, 0] sizes [4, 7, 16] : tensor<4x8x16xf32> -> tensor<4x7x16xf32> {train.id = "shift"}
    %tg = train.slice %ids from [0, 1] sizes [4, 7] : tensor<4x8xi64> -> tensor<4x7xi64> {train.id = "labels"}
    %ce:3 = train.softmax_cross_entropy %sl, %tg ignore -100 {train.id = "ce"} : (tensor<4x7x16xf32>, tensor<4x7xi64>) -> (tensor<f32>, tensor<f32>, tensor<4x7xf32>)
    %loss = train.loss %ce#0, %ce#1 : tensor<f32> {train.id = "loss"}
    return %loss : tensor<f32>
  }
}
