// RUN: not windlass-opt %s -onnx-convert-to-train -split-input-file 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: windlass-opt %s -onnx-convert-to-train=accept-altered-parameters -split-input-file | FileCheck %s
//
// What an exporter made of the module's parameters, by the graph signature and the traced calls.

// Two norms of equal values, merged into the first: the second trains no longer by itself.
// ERROR: error: {{.*}}the file holds another model than was exported: 2 of 4 parameters are not in it as the module had them: 'b.weight' (merged with 'a.weight'), 'b.bias' (merged with 'a.bias'); export it again with optimize=False, or go on with --accept-altered-parameters
onnx.graph "main" inputs ["x"] outputs ["loss"]
    signature [#onnx.spec<"PARAMETER", "p_a_weight", "a.weight">, #onnx.spec<"PARAMETER", "p_a_bias", "a.bias">,
               #onnx.spec<"PARAMETER", "p_b_weight", "b.weight">, #onnx.spec<"PARAMETER", "p_b_bias", "b.bias">] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "a.weight" from <"", 0, 32> kind "parameter" : tensor<8xf32>
  %b = onnx.initializer "a.bias" from <"", 32, 32> kind "parameter" : tensor<8xf32>
  %0 = onnx.node "LayerNormalization" since 17 (%x, %w, %b) with {axis = -1 : i64} scope "a" call <"layer_norm", "aten.layer_norm.default", "(%x, [8], %p_a_weight, %p_a_bias), kwargs = {}"> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> !onnx.value
  %1 = onnx.node "LayerNormalization" since 17 (%0, %w, %b) with {axis = -1 : i64} scope "b" call <"layer_norm_1", "aten.layer_norm.default", "(%layer_norm, [8], %p_b_weight, %p_b_bias), kwargs = {}"> : (!onnx.value, tensor<8xf32>, tensor<8xf32>) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
// CHECK: train.parameter  weight @w0 "a.weight"

// -----

// A weight that was transposed under another name trains, but not under its own.
// ERROR: error: {{.*}}1 of 1 parameter is not in it as the module had them: 'fc.weight' (transposed, now 'val_1')
onnx.graph "main" inputs ["x"] outputs ["loss"] signature [#onnx.spec<"PARAMETER", "p_fc_weight", "fc.weight">] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "val_1" from <"", 0, 512> : tensor<8x16xf32>
  %0 = onnx.node "MatMul" since 13 (%x, %w) scope "fc" call <"linear", "aten.linear.default", "(%x, %p_fc_weight), kwargs = {}"> : (tensor<4x8xf32>, tensor<8x16xf32>) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
// CHECK: train.parameter  weight @w0 "val_1" : tensor<8x16xf32> from <packed, "", 0, 512> {decays, reason = "unmarked; stands for the parameter 'fc.weight'", trainable}

// -----

// The other name of a tied weight may lack: nodes of its module read a parameter that comes later.
onnx.graph "main" inputs ["x"] outputs ["loss"]
    signature [#onnx.spec<"PARAMETER", "p_wte_weight", "wte.weight">, #onnx.spec<"PARAMETER", "p_head_weight", "head.weight">] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "head.weight" from <"", 0, 256> kind "parameter" : tensor<8x8xf32>
  %v = onnx.initializer "val_1" from <"", 256, 256> : tensor<8x8xf32>
  %0 = onnx.node "MatMul" since 13 (%x, %w) scope "wte" call <"linear", "aten.linear.default", "(%x, %p_head_weight), kwargs = {}"> : (tensor<4x8xf32>, tensor<8x8xf32>) -> !onnx.value
  %1 = onnx.node "MatMul" since 13 (%0, %v) scope "head" : (!onnx.value, tensor<8x8xf32>) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
// All parameters are there, so what is unmarked is none of them.
// CHECK: train.parameter  weight @w0 "head.weight" {{.*}} {decays, trainable}
// CHECK: train.parameter  buffer @b1 "val_1" {{.*}} {reason = "unmarked; the graph signature names all parameters, and this is none of them"}

// -----

// A parameter that nothing mentions, where a constant was folded, may be part of that constant.
// ERROR: error: {{.*}}1 of 2 parameters is not in it as the module had them: 'gate' (folded into a constant)
onnx.graph "main" inputs ["x"] outputs ["loss"]
    signature [#onnx.spec<"PARAMETER", "p_fc_weight", "fc.weight">, #onnx.spec<"PARAMETER", "p_gate", "gate">] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "fc.weight" from <"", 0, 256> kind "parameter" : tensor<8x8xf32>
  %0 = onnx.node "MatMul" since 13 (%x, %w) scope "fc" call <"matmul", "aten.matmul.default", "(%mul, %p_fc_weight), kwargs = {}"> : (tensor<4x8xf32>, tensor<8x8xf32>) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

// The same in a file whose constants are nodes still: nothing was folded, and what is not mentioned is not used.
onnx.graph "main" inputs ["x"] outputs ["loss"]
    signature [#onnx.spec<"PARAMETER", "p_fc_weight", "fc.weight">, #onnx.spec<"PARAMETER", "p_gate", "gate">] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "fc.weight" from <"", 0, 256> kind "parameter" : tensor<8x8xf32>
  %shape = onnx.node "Constant" since 13 () with {value_ints = array<i64: 32>} : () -> !onnx.value
  %0 = onnx.node "MatMul" since 13 (%x, %w) scope "fc" call <"matmul", "aten.matmul.default", "(%mul, %p_fc_weight), kwargs = {}"> : (tensor<4x8xf32>, tensor<8x8xf32>) -> !onnx.value
  %1 = onnx.node "Reshape" since 14 (%0, %shape) : (!onnx.value, !onnx.value) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

// A copy of a buffer never trains, whatever its name.
onnx.graph "main" inputs ["x"] outputs ["loss"]
    signature [#onnx.spec<"PARAMETER", "p_fc_weight", "fc.weight">, #onnx.spec<"BUFFER", "b_table", "table">] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "fc.weight" from <"", 0, 256> kind "parameter" : tensor<8x8xf32>
  %t = onnx.initializer "val_1" from <"", 256, 256> : tensor<8x8xf32>
  %0 = onnx.node "MatMul" since 13 (%x, %w) scope "fc" call <"matmul", "aten.matmul.default", "(%x, %p_fc_weight), kwargs = {}"> : (tensor<4x8xf32>, tensor<8x8xf32>) -> !onnx.value
  %1 = onnx.node "MatMul" since 13 (%0, %t) call <"matmul_1", "aten.matmul.default", "(%matmul, %b_table), kwargs = {}"> : (!onnx.value, tensor<8x8xf32>) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
// CHECK: train.parameter  buffer @b1 "val_1" {{.*}} {reason = "unmarked; stands for the buffer 'table'"}

// -----

// ERROR: error: {{.*}}node 'loss_node' ('aten.cross_entropy_loss.default' in the module) lacks label smoothing 0.1: write the smoothed loss out in the module, or go on with --accept-altered-parameters
onnx.graph "main" inputs ["x", "y"] outputs ["loss"] {
^bb0(%x: tensor<4x8xf32>, %y: tensor<4xi64>):
  %w = onnx.initializer "fc.weight" from <"", 0, 256> kind "parameter" : tensor<8x8xf32>
  %0 = onnx.node "MatMul" since 13 (%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> !onnx.value
  %loss = onnx.node "SoftmaxCrossEntropyLoss" since 13 (%0, %y) with {ignore_index = -100 : i64, reduction = "mean"} call <"cross_entropy_loss", "aten.cross_entropy_loss.default", "(%linear, %y, None, 1, -100, 0.1), kwargs = {}"> : (!onnx.value, tensor<4xi64>) -> !onnx.value loc("loss_node")
  onnx.return %loss : !onnx.value
}

// -----

// ERROR: error: {{.*}}lacks attention dropout 0.25: set the attention's dropout to 0
onnx.graph "main" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "fc.weight" from <"", 0, 256> kind "parameter" : tensor<8x8xf32>
  %ratio = onnx.initializer "ratio" value dense<0.25> : tensor<f32> : tensor<f32>
  %0 = onnx.node "MatMul" since 13 (%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> !onnx.value
  %1 = onnx.node "Dropout" since 13 (%0, %ratio) call <"sdpa", "aten.scaled_dot_product_attention.default", "(%q, %k, %v, None), kwargs = {dropout_p: 0.25, is_causal: True}"> : (!onnx.value, tensor<f32>) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

// Dropout that is active is what the call says.
onnx.graph "main" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "fc.weight" from <"", 0, 256> kind "parameter" : tensor<8x8xf32>
  %ratio = onnx.initializer "ratio" value dense<0.25> : tensor<f32> : tensor<f32>
  %true = onnx.initializer "true" value dense<true> : tensor<i1> : tensor<i1>
  %0 = onnx.node "MatMul" since 13 (%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> !onnx.value
  %1 = onnx.node "Dropout" since 13 (%0, %ratio, %true) call <"native_dropout", "aten.native_dropout.default", "(%linear, 0.25, True), kwargs = {}"> : (!onnx.value, tensor<f32>, tensor<i1>) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%1) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}

// -----

// ERROR: error: {{.*}}lacks a batch norm, which was folded into its weights
onnx.graph "main" inputs ["x"] outputs ["loss"] {
^bb0(%x: tensor<4x8xf32>):
  %w = onnx.initializer "fc.weight" from <"", 0, 256> kind "parameter" : tensor<8x8xf32>
  %0 = onnx.node "MatMul" since 13 (%x, %w) call <"bn", "aten._native_batch_norm_legit_functional.default", "(%linear, %w, %b, %m, %v, True, 0.1, 1e-05), kwargs = {}"> : (tensor<4x8xf32>, tensor<8x8xf32>) -> !onnx.value
  %loss = onnx.node "ReduceMean" since 18 (%0) with {keepdims = 0 : i64} : (!onnx.value) -> !onnx.value
  onnx.return %loss : !onnx.value
}
