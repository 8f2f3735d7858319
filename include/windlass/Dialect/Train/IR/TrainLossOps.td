// Losses as (sum, count), so that a split of batch or tokens stays exact.
#ifndef WINDLASS_TRAIN_LOSS_OPS_TD
#define WINDLASS_TRAIN_LOSS_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def SoftmaxCrossEntropyOp : Train_InferredOp<"softmax_cross_entropy", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "sum over rows of -log softmax(logits)[label], and the number of rows that count";
  let description = [{
    logits [rows.., classes], labels [rows..]. Rows whose label is `ignore_index` count nothing. Results: sum and count
    (scalars of the logits' type, or f32 where that is narrower) and log_sum [rows..], the logarithm of each row's denominator: -inf for a row of -inf.
  }];
  let arguments = (ins Train_FloatTensor:$logits, Train_IndexTensor:$labels, I64Attr:$ignore_index);
  let results = (outs Train_FloatTensor:$sum, Train_FloatTensor:$count, Train_FloatTensor:$log_sum);
  let assemblyFormat = "$logits `,` $labels `ignore` $ignore_index attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def SoftmaxCrossEntropyGradOp : Train_InferredOp<"softmax_cross_entropy_grad", [Train_ReducesInside]> {
  let summary = "gradient of the sum with respect to the logits";
  let arguments = (ins Train_FloatScalarTensor:$gradient, Train_FloatTensor:$logits, Train_IndexTensor:$labels,
                       Train_FloatTensor:$log_sum, I64Attr:$ignore_index);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `,` $logits `,` $labels `,` $log_sum `ignore` $ignore_index attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def LossOp : Train_ComputeOp<"loss", [SameOperandsAndResultType, Train_Differentiable]> {
  let summary = "sum / count; the count is not differentiated; 0/0 is NaN, as in PyTorch";
  let description = [{ sum may be unreduced (so is the result then); count must be whole. }];
  let arguments = (ins Train_FloatScalarTensor:$sum, Train_FloatScalarTensor:$count);
  let results = (outs Train_FloatScalarTensor:$result);
  let assemblyFormat = "$sum `,` $count `:` type($result) attr-dict";
}

#endif
