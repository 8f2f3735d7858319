// The experts of a mixture: feed-forward nets of which each token goes through a few.
#ifndef WINDLASS_TRAIN_EXPERT_OPS_TD
#define WINDLASS_TRAIN_EXPERT_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def ExpertsOp : Train_InferredOp<"experts", [AttrSizedOperandSegments, Train_Differentiable, Train_ReducesInside]> {
  let summary = "weighted sum of the chosen experts' results for each token";
  let description = [{
    input [tokens, in], choices and weights [tokens, chosen], up [experts, hidden, in], down [experts, out, width]:
    result[t] = sum over c of weights[t, c] down[e] activation(up[e] input[t]), where e = choices[t, c] in [0, experts).
    Without `gated` hidden is the width. With it, hidden is twice the width: the activation of the first half is
    multiplied by the second. With `inputs_first` up is [experts, in, hidden] and down is [experts, width, out].
    With `gate`, of the shape of up, the activation of gate[e] input[t] is multiplied by up[e] input[t].

    With `first` the matrices have some of `all_rows` experts only, as a table of `train.embedding` has some rows: the
    others give zeros. Nothing but its operands is kept for the gradient, which computes the hidden values again. Products
    add up in f32 where operands are narrower.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_IndexTensor:$choices, Train_FloatTensor:$weights,
                       Train_FloatTensor:$up, Train_FloatTensor:$down, Optional<Train_FloatTensor>:$gate,
                       Optional<Train_IndexTensor>:$first, OptionalAttr<I64Attr>:$all_rows,
                       Train_ExpertActivationAttr:$activation, UnitAttr:$gated, UnitAttr:$inputs_first);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $input `to` $choices `by` $weights `through` $up `,` $down (`gate` $gate^)? (`first` $first^ `of` $all_rows)?
    $activation (`gated` $gated^)? (`inputs_first` $inputs_first^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def ExpertsGradOp : Train_InferredOp<"experts_grad", [AttrSizedOperandSegments, Train_ReducesInside]> {
  let summary = "gradients of the input, the weights and the matrices of `train.experts`";
  let description = [{ The gradients of the matrices are f32 where operands are narrower. }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, Train_IndexTensor:$choices,
                       Train_FloatTensor:$weights, Train_FloatTensor:$up, Train_FloatTensor:$down,
                       Optional<Train_FloatTensor>:$gate, Optional<Train_IndexTensor>:$first,
                       OptionalAttr<I64Attr>:$all_rows, Train_ExpertActivationAttr:$activation, UnitAttr:$gated,
                       UnitAttr:$inputs_first);
  let results = (outs Train_FloatTensor:$input_gradient, Train_FloatTensor:$weights_gradient,
                      Train_FloatTensor:$up_gradient, Train_FloatTensor:$down_gradient,
                      Optional<Train_FloatTensor>:$gate_gradient);
  let assemblyFormat = [{
    $gradient `,` $input `to` $choices `by` $weights `through` $up `,` $down (`gate` $gate^)?
    (`first` $first^ `of` $all_rows)? $activation (`gated` $gated^)? (`inputs_first` $inputs_first^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif
