// The `sched` dialect: what each rank does, first as functions on local tensors, then as commands on buffers.
#ifndef WINDLASS_SCHED_BASE_TD
#define WINDLASS_SCHED_BASE_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "windlass/Dialect/Sched/IR/SchedEnums.td"
include "windlass/Dialect/Train/IR/TrainBase.td"

/// An operation that a program declares once; the rest of a program are functions.
class Sched_Declaration<string mnemonic, list<Trait> traits = []>
    : Op<SchedDialect, mnemonic, !listconcat(traits, [HasParent<"ProgramOp">])>;

class Sched_Op<string mnemonic, list<Trait> traits = []> : Op<SchedDialect, mnemonic, traits>;

def Sched_ActionAttr : AttrDef<SchedDialect, "Action"> {
  let mnemonic = "action";
  let summary = "an action of a chunk; `repeat` runs the `length` actions that follow it `count` times";
  let description = [{
    The kinds are those of include/windlass/Schedule/ActionTable.h; a repeat has none. A send or receive names the chunk
    at the other end as its peer. An action without a micro-batch belongs to the micro-batch after that of the previous
    action of its kind and chunks.
  }];
  let parameters = (ins "::std::optional<::windlass::schedule::ActionKind>":$kind, DefaultValuedParameter<"int64_t", "0">:$chunk,
                        DefaultValuedParameter<"int64_t", "1">:$count, DefaultValuedParameter<"int64_t", "0">:$length,
                        DefaultValuedParameter<"int64_t", "-1">:$peerChunk, DefaultValuedParameter<"int64_t", "-1">:$microBatch);
  let assemblyFormat = [{
    `<` custom<ActionKind>($kind) (`chunk` $chunk^)? (`peer` $peerChunk^)? (`micro_batch` $microBatch^)?
    (`x` $count^)? (`of` $length^)? `>`
  }];
}

def Sched_PlacementAttr : AttrDef<SchedDialect, "Placement"> {
  let mnemonic = "placement";
  let summary = "the position of each chunk, and the first chunk of each chain (include/windlass/Schedule/Placement.h)";
  let parameters = (ins ArrayRefParameter<"int64_t">:$chunks, OptionalArrayRefParameter<"int64_t">:$chains);
  let assemblyFormat = "`<` `[` $chunks `]` (`chains` `[` $chains^ `]`)? `>`";
}

def Sched_StepAttr : AttrDef<SchedDialect, "Step"> {
  let mnemonic = "step";
  let summary = "what a function does in a run: its role and its chunk";
  let parameters = (ins EnumParameter<Sched_StepRole>:$role, "int64_t":$chunk);
  let assemblyFormat = "`<` $role `,` `chunk` $chunk `>`";
}

#endif
