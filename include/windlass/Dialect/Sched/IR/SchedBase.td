// The `sched` dialect: what each rank does, first as functions on local tensors, then as commands on buffers.
#ifndef WINDLASS_SCHED_BASE_TD
#define WINDLASS_SCHED_BASE_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "windlass/Dialect/Sched/IR/SchedEnums.td"
include "windlass/Dialect/Train/IR/TrainBase.td"

class Sched_Op<string mnemonic, list<Trait> traits = []> : Op<SchedDialect, mnemonic, traits>;

def Sched_ActionAttr : AttrDef<SchedDialect, "Action"> {
  let mnemonic = "action";
  let summary = "an action of a chunk; `repeat` runs the `length` actions that follow it `count` times";
  let description = [{ The kinds are those of include/windlass/Schedule/ActionTable.h; a repeat has none. }];
  let parameters = (ins "::std::optional<::windlass::schedule::ActionKind>":$kind, DefaultValuedParameter<"int64_t", "0">:$chunk,
                        DefaultValuedParameter<"int64_t", "1">:$count, DefaultValuedParameter<"int64_t", "0">:$length);
  let assemblyFormat = "`<` custom<ActionKind>($kind) (`chunk` $chunk^)? (`x` $count^)? (`of` $length^)? `>`";
}

#endif
