// Convolutions and pooling: operators whose window moves over the spatial dims.
#ifndef WINDLASS_TRAIN_CONVOLUTION_OPS_TD
#define WINDLASS_TRAIN_CONVOLUTION_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def ConvolutionOp : Train_InferredOp<"convolution", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "convolution (cross-correlation) over one to three spatial dims, in groups of channels";
  let description = [{
    input [batch, groups · in, spatial..], weight [groups · out, in, window..], result [batch, groups · out, spatial..]:
    result[b, g out + o, p] = sum over c and k of input[b, g in + c, p stride + k dilation - pad] weight[g out + o, c, k],
    where elements outside of the input are 0. The number of groups follows from the channels of input and weight.
    `strides` and `dilations` have a number for each spatial dim; `pads` has first the elements before each dim, then
    those behind each. Products add up in f32 where operands are narrower.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_FloatTensor:$weight, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight `strides` $strides `dilations` $dilations `pads` $pads attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def ConvolutionDataGradOp : Train_InferredOp<"convolution_data_grad", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "gradient of a convolution's input, which has the sizes `sizes`, from that of its result";
  let description = [{ In a forward pass it is a transposed convolution, so it has a gradient of its own. }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$weight, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `,` $weight `sizes` $sizes `strides` $strides `dilations` $dilations `pads` $pads attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def ConvolutionWeightGradOp : Train_InferredOp<"convolution_weight_grad", [Train_ReducesInside]> {
  let summary = "gradient of a convolution's weight, which has the sizes `sizes`, from that of its result";
  let description = [{ Where operands are narrower than f32, the result is f32. }];
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, DenseI64ArrayAttr:$sizes,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `,` $input `sizes` $sizes `strides` $strides `dilations` $dilations `pads` $pads attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def MaxPoolOp : Train_InferredOp<"max_pool", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "maximum of each window of one to three spatial dims";
  let description = [{
    input [batch, channels, spatial..]. The window, `strides`, `dilations` and `pads` are as those of
    `train.convolution`; elements outside of the input do not count, and each window has at least one inside. A NaN is
    larger than any number.
  }];
  let arguments = (ins Train_FloatTensor:$input, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $input `window` $window `strides` $strides `dilations` $dilations `pads` $pads attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def MaxPoolGradOp : Train_InferredOp<"max_pool_grad", [Train_ReducesInside]> {
  let summary = "gradient of max_pool: each window's gradient goes to the first of its largest elements";
  let arguments = (ins Train_FloatTensor:$gradient, Train_FloatTensor:$input, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `,` $input `window` $window `strides` $strides `dilations` $dilations `pads` $pads attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def AveragePoolOp : Train_InferredOp<"average_pool", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "mean of each window of one to three spatial dims";
  let description = [{
    Like `train.max_pool`, but the mean of the elements inside of the input; with `counts_pads` their sum by the
    elements of the whole window.
  }];
  let arguments = (ins Train_FloatTensor:$input, DenseI64ArrayAttr:$window, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads, UnitAttr:$counts_pads);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $input `window` $window `strides` $strides `dilations` $dilations `pads` $pads (`counts_pads` $counts_pads^)?
    attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

def AveragePoolGradOp : Train_InferredOp<"average_pool_grad", [Train_ReducesInside]> {
  let summary = "gradient of average_pool's input, which has the sizes `sizes`";
  let arguments = (ins Train_FloatTensor:$gradient, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$window,
                       DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads,
                       UnitAttr:$counts_pads);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $gradient `sizes` $sizes `window` $window `strides` $strides `dilations` $dilations `pads` $pads
    (`counts_pads` $counts_pads^)? attr-dict `:` type($gradient) `->` type($result)
  }];
  let hasVerifier = 1;
}

#endif
