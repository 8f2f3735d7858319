// Reads and adds at places given by integer tensors.
#ifndef WINDLASS_TRAIN_INDEXING_OPS_TD
#define WINDLASS_TRAIN_INDEXING_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def EmbeddingOp : Train_InferredOp<"embedding", [Train_Differentiable]> {
  let summary = "rows of a table: result[ids.., d] = table[id, d]; ids in [0, rows)";
  let arguments = (ins Train_FloatTensor:$table, Train_IndexTensor:$ids);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$table `,` $ids `:` type($table) `,` type($ids) `->` type($result) attr-dict";
  let hasVerifier = 1;
}

def EmbeddingGradOp : Train_InferredOp<"embedding_grad"> {
  let summary = "sum of the gradient's rows by id, into a table of `rows` rows";
  let arguments = (ins Train_IndexTensor:$ids, Train_FloatTensor:$gradient, I64Attr:$rows);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$ids `,` $gradient `rows` $rows `:` type($ids) `,` type($gradient) `->` type($result) attr-dict";
  let hasVerifier = 1;
}

def GatherOp : Train_InferredOp<"gather", [Train_Differentiable]> {
  let summary = "slices along `axis` chosen by `indices`, whose dims replace it; a negative index counts from the end";
  let arguments = (ins Train_Tensor:$input, Train_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `,` $indices `axis` $axis `:` type($input) `,` type($indices) `->` type($result) attr-dict";
  let hasVerifier = 1;
}

def ScatterAddOp : Train_InferredOp<"scatter_add"> {
  let summary = "the adjoint of gather: adds slices of `input` along `axis` of a zero tensor of `size` there";
  let arguments = (ins Train_IndexTensor:$indices, Train_FloatTensor:$input, I64Attr:$axis, I64Attr:$size);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $indices `,` $input `axis` $axis `size` $size `:` type($indices) `,` type($input) `->` type($result) attr-dict
  }];
  let hasVerifier = 1;
}

def GatherElementsOp : Train_InferredOp<"gather_elements", [Train_Differentiable]> {
  let summary = "elements along `axis` chosen by `indices`: result[.., i, ..] = input[.., indices[.., i, ..], ..]";
  let description = [{
    Input and indices have the same dims but for `axis`; a negative index counts from the end.
  }];
  let arguments = (ins Train_Tensor:$input, Train_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `,` $indices `axis` $axis `:` type($input) `,` type($indices) `->` type($result) attr-dict";
  let hasVerifier = 1;
}

def ScatterElementsAddOp : Train_InferredOp<"scatter_elements_add"> {
  let summary = "the adjoint of gather_elements: adds elements of `input` along `axis` of a zero tensor of `size` there";
  let arguments = (ins Train_IndexTensor:$indices, Train_FloatTensor:$input, I64Attr:$axis, I64Attr:$size);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $indices `,` $input `axis` $axis `size` $size `:` type($indices) `,` type($input) `->` type($result) attr-dict
  }];
  let hasVerifier = 1;
}

#endif
