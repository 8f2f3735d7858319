// Operators with random results.
#ifndef WINDLASS_TRAIN_RANDOM_OPS_TD
#define WINDLASS_TRAIN_RANDOM_OPS_TD

include "windlass/Dialect/Train/IR/TrainBase.td"

def DropoutOp : Train_ComputeOp<"dropout", [AllTypesMatch<["input", "result"]>, Train_Differentiable]> {
  let summary = "drops elements of each sample at the rate `ratio` and divides the others by 1 - ratio";
  let description = [{
    input [samples, ..], keys [samples]. Which elements are dropped is a function of the sample's key and of the
    element's index in the sample (`windlass/rt/philox.h`), so that the mask does not depend on how the samples are
    divided among ranks and micro-batches, and the gradient computes it again. @evaluate has no dropout.
  }];
  let arguments = (ins Train_FloatTensor:$input, Train_IndexTensor:$keys, F64Attr:$ratio);
  let results = (outs Train_FloatTensor:$result);
  let assemblyFormat = "$input `,` $keys `ratio` $ratio `:` type($input) `,` type($keys) attr-dict";
  let hasVerifier = 1;
}

#endif
