// Scaled dot-product attention and the position embedding of its queries and keys.
#ifndef WINDLASS_TRAIN_ATTENTION_OPS_TD
#define WINDLASS_TRAIN_ATTENTION_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def AttentionOp : Train_InferredOp<"attention", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "softmax(scale q k^T + mask) v per head, with the logarithm of the softmax's denominator";
  let description = [{
    query [batch, heads, tokens, depth], key [batch, key heads, keys, depth], value [batch, key heads, keys, width]; heads
    are a multiple of key heads (grouped queries), query head h uses key head h / (heads / key heads). `mask` is added
    and has the dims [batch, heads, tokens, keys]; stretched ones come by `train.broadcast`. `causal` leaves out
    key s for token t where s > t + keys - tokens. A row without keys gives zeros. Results: [batch, heads, tokens,
    width] and the row logarithms [batch, heads, tokens].

    The depth is not split: whole scores [tokens, keys] would have to be summed between ranks before the softmax.
  }];
  let arguments = (ins Train_FloatTensor:$query, Train_FloatTensor:$key, Train_FloatTensor:$value,
                       Optional<Train_FloatTensor>:$mask, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$log_sum);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`mask` $mask^)? `scale` $scale (`causal` $causal^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def AttentionGradOp : Train_InferredOp<"attention_grad", [Train_ReducesInside]> {
  let summary = "gradients of query, key and value; the mask gets none";
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$query, Train_FloatTensor:$key,
                       Train_FloatTensor:$value, Optional<Train_FloatTensor>:$mask, Train_FloatTensor:$output,
                       Train_FloatTensor:$log_sum, F64Attr:$scale, UnitAttr:$causal);
  let results = (outs Train_FloatTensor:$query_gradient, Train_FloatTensor:$key_gradient,
                      Train_FloatTensor:$value_gradient);
  let assemblyFormat = [{
    $gradient `,` $query `,` $key `,` $value (`mask` $mask^)? `output` $output `,` $log_sum `scale` $scale
    (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def RotaryOp : Train_ComputeOp<"rotary", [AllTypesMatch<["input", "result"]>, Train_Differentiable]> {
  let summary = "rotary position embedding: x cosine + (-x2, x1) sine, where x1 and x2 are the halves of a row";
  let description = [{
    input [dims.., tokens, depth] with an even depth; cosine and sine [tokens, depth], which get no gradient. With
    `transposed` the transpose of that map of rows, which is its gradient: x cosine + (u2, -u1), where u = x sine.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$cosine, Train_FloatTensor:$sine,
                       UnitAttr:$transposed);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $cosine `,` $sine (`transposed` $transposed^)? `:` type($input) `,` type($cosine) `,` type($sine) attr-dict
  }];
  let hasVerifier = 1;
}

#endif
