// Matrix products.
#ifndef WINDLASS_TRAIN_CONTRACTION_OPS_TD
#define WINDLASS_TRAIN_CONTRACTION_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def MatmulOp : Train_InferredOp<"matmul", [Train_Differentiable]> {
  let summary = "contraction over any dims, with any batch dims";
  let description = [{
    Result dims are the batch dims in the order of `lhs_batch`, then the remaining dims of lhs, then those of rhs, each
    in operand order. `lhs_batch[i]` pairs with `rhs_batch[i]`, `lhs_contract[i]` with `rhs_contract[i]`. Products add
    up in f32 where operands are narrower; `wide` leaves the sums so.
  }];
  let arguments = (ins Train_FloatTensor:$lhs, Train_FloatTensor:$rhs, DenseI64ArrayAttr:$lhs_batch,
                       DenseI64ArrayAttr:$rhs_batch, DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract,
                       UnitAttr:$wide);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `batch` $lhs_batch `x` $rhs_batch `contract` $lhs_contract `x` $rhs_contract (`wide` $wide^)?
    `:` type($lhs) `,` type($rhs) `->` type($result) attr-dict
  }];
  let extraClassDeclaration = [{
    /// Returns the dims of lhs or rhs that are neither batch nor contracted, in operand order.
    ::llvm::SmallVector<int64_t> getLhsFreeDims();
    ::llvm::SmallVector<int64_t> getRhsFreeDims();
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

#endif
