// The operators of the `plan` dialect.
#ifndef WINDLASS_PLAN_OPS_TD
#define WINDLASS_PLAN_OPS_TD

include "mlir/Interfaces/SideEffectInterfaces.td"
include "windlass/Dialect/Plan/IR/PlanAttributes.td"

def ReshardOp : Op<PlanDialect, "reshard", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "the same value under another layout";
  let description = [{ The only place where the layout of a value differs between its producer and its consumer. }];
  let arguments = (ins Train_Tensor:$input, Plan_LayoutAttr:$from, Plan_LayoutAttr:$to);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `from` $from `to` $to `:` type($result) attr-dict";
  let hasVerifier = 1;
}

#endif
