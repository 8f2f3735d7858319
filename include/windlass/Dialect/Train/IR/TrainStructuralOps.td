// Operators that make or move values without arithmetic.
#ifndef WINDLASS_TRAIN_STRUCTURAL_OPS_TD
#define WINDLASS_TRAIN_STRUCTURAL_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def ConstantOp : Train_ComputeOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a small constant, mostly a splat";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def IotaOp : Train_ComputeOp<"iota"> {
  let summary = "start + step * index along one dim, the same along all others";
  let arguments = (ins I64Attr:$dim, F64Attr:$start, F64Attr:$step);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$dim `start` $start `step` $step `:` type($result) attr-dict";
  let hasVerifier = 1;
}

def BroadcastOp : Train_ComputeOp<"broadcast", [Train_Differentiable]> {
  let summary = "repeats a value along new dims";
  let description = [{
    Operand dim `i` is result dim `dims[i]`, of the same size; `dims` increase strictly. Dims of size 1 that are to be
    stretched are removed by a reshape before.
  }];
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `dims` $dims `:` type($input) `->` type($result) attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def ReshapeOp : Train_ComputeOp<"reshape", [Train_Differentiable]> {
  let summary = "the same elements in row-major order under another shape";
  let arguments = (ins Train_Tensor:$input);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `:` type($input) `->` type($result) attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def TransposeOp : Train_InferredOp<"transpose", [Train_Differentiable]> {
  let summary = "permutes dims: result dim i is operand dim permutation[i]";
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input $permutation `:` type($input) `->` type($result) attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def SliceOp : Train_InferredOp<"slice", [Train_Differentiable]> {
  let summary = "a box of `sizes` elements from `starts`";
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `from` $starts `sizes` $sizes `:` type($input) `->` type($result) attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def PadOp : Train_InferredOp<"pad", [Train_Differentiable]> {
  let summary = "`low` and `high` elements of `value` around the operand";
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high, F64Attr:$value);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `low` $low `high` $high `value` $value `:` type($input) `->` type($result) attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def ConcatOp : Train_InferredOp<"concat", [Train_Differentiable]> {
  let summary = "operands one after another along `axis`";
  let arguments = (ins Variadic<Train_Tensor>:$inputs, I64Attr:$axis);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$inputs `axis` $axis `:` type($inputs) `->` type($result) attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def SplitOp : Train_InferredOp<"split", [Train_Differentiable]> {
  let summary = "parts of `sizes` elements along `axis`";
  let arguments = (ins Train_Tensor:$input, I64Attr:$axis, DenseI64ArrayAttr:$sizes);
  let results = (outs Variadic<Train_Tensor>:$results);
  let assemblyFormat = "$input `axis` $axis `sizes` $sizes `:` type($input) `->` type($results) attr-dict";
  let hasVerifier = 1;
}

#endif
