// Reductions, softmax and normalisations.
#ifndef WINDLASS_TRAIN_REDUCTION_OPS_TD
#define WINDLASS_TRAIN_REDUCTION_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def ReduceOp : Train_InferredOp<"reduce", [Train_Differentiable]> {
  let summary = "combines the elements along `dims`, which vanish; equal extremes share the gradient of max or min";
  let description = [{ Sums add up in f32 where the operand is narrower; `wide` leaves them so. }];
  let arguments = (ins Train_ReductionKindAttr:$kind, Train_Tensor:$input, DenseI64ArrayAttr:$dims, UnitAttr:$wide);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$kind $input `dims` $dims (`wide` $wide^)? `:` type($input) `->` type($result) attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def SoftmaxOp : Train_ComputeOp<"softmax", [SameOperandsAndResultType, Train_Differentiable, Train_ReducesInside]> {
  let summary = "softmax over the last dim; a row of -inf gives NaN, as in PyTorch";
  let arguments = (ins Train_FloatTensor:$input);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$input `:` type($result) attr-dict";
  let hasVerifier = 1;
}

def SoftmaxGradOp : Train_ComputeOp<"softmax_grad", [SameOperandsAndResultType, Train_ReducesInside]> {
  let summary = "y (dy - sum(y dy)) over the last dim";
  let arguments = (ins Train_FloatTensor:$output, Train_FloatTensor:$gradient);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$output `,` $gradient `:` type($result) attr-dict";
  let hasVerifier = 1;
}

def LayerNormOp : Train_InferredOp<"layer_norm", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "(x - mean) rstd scale + bias over the last dim, with mean and rstd of the rows";
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale, Optional<Train_FloatTensor>:$bias,
                       F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$mean, Train_FloatTensor:$rstd);
  let assemblyFormat = [{
    $input `,` $scale (`,` $bias^)? `epsilon` $epsilon `:` type($input) `,` type($scale) (`,` type($bias)^)?
    `->` type($result) `,` type($mean) `,` type($rstd) attr-dict
  }];
  let hasVerifier = 1;
}

def LayerNormGradOp : Train_InferredOp<"layer_norm_grad", [Train_ReducesInside]> {
  let summary = "dx, dscale and dbias of layer_norm from dy, x, scale, mean and rstd";
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       Train_FloatTensor:$mean, Train_FloatTensor:$rstd);
  let results = (outs Train_FloatTensor:$input_gradient, Train_FloatTensor:$scale_gradient,
                      Train_FloatTensor:$bias_gradient);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def RmsNormOp : Train_InferredOp<"rms_norm", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "x rstd scale over the last dim, with rstd = 1/sqrt(mean(x^2) + epsilon) of the rows";
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$scale, F64Attr:$epsilon);
  let results = (outs Train_FloatTensor:$result, Train_FloatTensor:$rstd);
  let assemblyFormat = [{
    $input `,` $scale `epsilon` $epsilon `:` type($input) `,` type($scale) `->` type($result) `,` type($rstd) attr-dict
  }];
  let hasVerifier = 1;
}

def RmsNormGradOp : Train_InferredOp<"rms_norm_grad", [Train_ReducesInside]> {
  let summary = "dx and dscale of rms_norm from dy, x, scale and rstd";
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, Train_FloatTensor:$scale,
                       Train_FloatTensor:$rstd);
  let results = (outs Train_FloatTensor:$input_gradient, Train_FloatTensor:$scale_gradient);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif
