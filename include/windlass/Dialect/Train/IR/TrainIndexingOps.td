// Reads and adds at places given by integer tensors.
#ifndef WINDLASS_TRAIN_INDEXING_OPS_TD
#define WINDLASS_TRAIN_INDEXING_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def EmbeddingOp : Train_InferredOp<"embedding", [Train_Differentiable, Train_ReducesInside]> {
  let summary = "rows of a table: result[ids.., d] = table[id, d]; ids in [0, rows)";
  let description = [{
    With `first` the table has some of `all_rows` rows only: as many equal parts as `first` has elements, each beginning
    with that row. An id in [0, all_rows) of a row that is in no part gives zeros.
  }];
  let arguments = (ins Train_FloatTensor:$table, Train_IndexTensor:$ids, Optional<Train_IndexTensor>:$first,
                       OptionalAttr<I64Attr>:$all_rows);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $table `,` $ids (`first` $first^ `of` $all_rows)? `:` type($table) `,` type($ids) (`,` type($first)^)? `->`
    type($result) attr-dict
  }];
  let hasVerifier = 1;
}

def EmbeddingGradOp : Train_InferredOp<"embedding_grad", [Train_ReducesInside]> {
  let summary = "sum of the gradient's rows by id, into a table of `rows` rows";
  let description = [{
    With `first` the table has some of `all_rows` rows only, as in `train.embedding`; ids of others add nothing.
  }];
  let arguments = (ins Train_IndexTensor:$ids, Train_FloatTensor:$gradient, Optional<Train_IndexTensor>:$first,
                       I64Attr:$rows, OptionalAttr<I64Attr>:$all_rows);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $ids `,` $gradient `rows` $rows (`first` $first^ `of` $all_rows)? `:` type($ids) `,` type($gradient)
    (`,` type($first)^)? `->` type($result) attr-dict
  }];
  let hasVerifier = 1;
}

def GatherOp : Train_InferredOp<"gather", [Train_Differentiable]> {
  let summary = "slices along `axis` chosen by `indices`, whose dims replace it; a negative index counts from the end";
  let arguments = (ins Train_Tensor:$input, Train_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `,` $indices `axis` $axis `:` type($input) `,` type($indices) `->` type($result) attr-dict";
  let hasVerifier = 1;
}

def ScatterAddOp : Train_InferredOp<"scatter_add", [Train_Differentiable]> {
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

def ScatterElementsAddOp : Train_InferredOp<"scatter_elements_add", [Train_Differentiable]> {
  let summary = "the adjoint of gather_elements: adds elements of `input` along `axis` of a zero tensor of `size` there";
  let arguments = (ins Train_IndexTensor:$indices, Train_FloatTensor:$input, I64Attr:$axis, I64Attr:$size);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $indices `,` $input `axis` $axis `size` $size `:` type($indices) `,` type($input) `->` type($result) attr-dict
  }];
  let hasVerifier = 1;
}

#endif
