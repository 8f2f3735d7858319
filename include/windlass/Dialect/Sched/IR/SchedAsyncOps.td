// Level L4: resources and collectives on local tensors.
#ifndef WINDLASS_SCHED_ASYNC_OPS_TD
#define WINDLASS_SCHED_ASYNC_OPS_TD

include "windlass/Dialect/Plan/IR/PlanAttributes.td"
include "windlass/Dialect/Sched/IR/SchedBase.td"

def ProgramOp : Sched_Op<"program", [Symbol, SymbolTable, IsolatedFromAbove, SingleBlock, NoTerminator,
                                     NoRegionArguments]> {
  let summary = "what all ranks of a position run: functions, resources, arenas, streams, communicators, a schedule";
  let description = [{
    A position is a mesh of devices with the chunks that it runs; a module has one program for each position, in their
    order. The module's attribute `sched.placement` says which chunk is on which position; without it there is one
    position with one chunk. The program holds all that its functions name, except the parameters: these are the job's
    and stay in the module. `plan.unit_bytes` and `plan.prefetch_bytes` are the program's.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DefaultValuedAttr<I64Attr, "0">:$position, Plan_MeshAttr:$mesh);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "$sym_name (`position` $position^)? `on` $mesh attr-dict-with-keyword $bodyRegion";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::windlass::plan::MeshAttr":$mesh)>];
  let hasVerifier = 1;
}

def ResourceOp : Sched_Declaration<"resource", [Symbol]> {
  let summary = "storage of fixed local shape that outlives functions";
  let description = [{
    `type` is the type of the rank's local slice, `global_type` of the whole value; `layout` relates them (with a flat
    layout the local slice has one dim). `logical_name` is the initializer's or input's name (state:
    `<weight>/exp_avg`). `of` names the train.parameter of the module that a parameter, gradient or state belongs to. An
    `input`, `sent` or `received` belongs to a `chunk` (without the attribute: 0) and exists once in each of the chunk's
    slots; a `sent` or `received` names the neighbour as `peer`. A border's tensors are declared in the same order on
    both sides. `arena`, which may be the slots of the chunk, and `offset` (bytes) are set at L5. `scalar` names the
    hyperparameter of a scalar.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Sched_ResourceKindAttr:$kind, TypeAttrOf<Train_Tensor>:$type,
                       TypeAttrOf<Train_Tensor>:$global_type, Plan_LayoutAttr:$layout,
                       OptionalAttr<StrAttr>:$logical_name, OptionalAttr<FlatSymbolRefAttr>:$of,
                       OptionalAttr<Train_HyperparameterAttr>:$scalar, OptionalAttr<I64Attr>:$chunk,
                       OptionalAttr<I64Attr>:$peer, OptionalAttr<FlatSymbolRefAttr>:$arena,
                       OptionalAttr<I64Attr>:$offset);
  let assemblyFormat = "$kind $sym_name `:` $type `of` $global_type $layout attr-dict";
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() { return ::llvm::cast<::mlir::RankedTensorType>(getType()); }
    ::mlir::RankedTensorType getGlobalTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getGlobalType());
    }
    /// Whether the resource is sent to or received from another position.
    bool isBorder() {
      return getKind() == ::windlass::sched::ResourceKind::sent || getKind() == ::windlass::sched::ResourceKind::received;
    }
    /// Whether each slot of a chunk has a copy of the resource.
    bool isOfSlot() { return getKind() == ::windlass::sched::ResourceKind::input || isBorder(); }
    /// Returns the chunk of a resource for which `isOfSlot` holds.
    int64_t getChunkNumber() { return static_cast<int64_t>(getChunk().value_or(0)); }
  }];
  let hasVerifier = 1;
}

def LoadOp : Sched_Op<"load", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemRead]>]> {
  let summary = "reads the present value of a resource";
  let arguments = (ins FlatSymbolRefAttr:$resource);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$resource `:` type($result) attr-dict";
}

def StoreOp : Sched_Op<"store", [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemWrite]>]> {
  let summary = "overwrites a resource";
  let arguments = (ins FlatSymbolRefAttr:$resource, Train_Tensor:$value);
  let assemblyFormat = "$resource `,` $value `:` type($value) attr-dict";
}

def AddToOp : Sched_Op<"add_to", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                  MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds to a resource; the first micro-batch of a step overwrites it";
  let arguments = (ins FlatSymbolRefAttr:$resource, Train_Tensor:$value);
  let assemblyFormat = "$resource `,` $value `:` type($value) attr-dict";
}

class Sched_Collective<string mnemonic, string text> : Sched_Op<mnemonic, [Pure]> {
  let summary = text;
}

def AllReduceOp : Sched_Collective<"all_reduce", "combines operands over axes; several operands are one bucket"> {
  let description = [{
    With `positions`, numbers that ascend, it combines the operands of these positions too: of the ranks that differ on
    the axes only, in each of them. Only reductions and updates may, and the positions combine the same in an order in
    which all of them meet.
  }];
  let arguments = (ins Variadic<Train_Tensor>:$inputs, StrArrayAttr:$axes, OptionalAttr<DenseI64ArrayAttr>:$positions,
                       Train_ReductionKindAttr:$kind);
  let results = (outs Variadic<Train_Tensor>:$results);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $kind $inputs `over` $axes (`and` `positions` $positions^)? attr-dict `:` functional-type(operands, results)
  }];
}

class Sched_JoinedCollective<string mnemonic, string text> : Sched_Collective<mnemonic, text> {
  let description = [{
    Several operands, each with a result of its own, are one unit: one command moves them all.
  }];
  let arguments = (ins Variadic<Train_Tensor>:$inputs, I64Attr:$dim, StrArrayAttr:$axes);
  let results = (outs Variadic<Train_Tensor>:$results);
  let assemblyFormat = "$inputs `dim` $dim `over` $axes attr-dict `:` type($inputs) `->` type($results)";
  let hasVerifier = 1;
}

def AllGatherOp : Sched_JoinedCollective<"all_gather", "joins the members' parts along `dim`, in order of their coordinate">;

def ReduceScatterOp : Sched_JoinedCollective<"reduce_scatter", "each member's part along `dim` of the members' sum">;

def AllToAllOp : Sched_Collective<"all_to_all", "splits along `split_dim`, exchanges, joins along `concat_dim`"> {
  let arguments = (ins Train_Tensor:$input, I64Attr:$split_dim, I64Attr:$concat_dim, StrArrayAttr:$axes);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `split` $split_dim `concat` $concat_dim `over` $axes attr-dict `:` type($input) `->` type($result)";
}

def PermuteOp : Sched_Collective<"permute", "each member sends its value to one member and receives one"> {
  let description = [{
    Member i, by its coordinates on `axes` as one number, sends to member `destinations[i]`. A member that sends to
    itself keeps its value.
  }];
  let arguments = (ins Train_Tensor:$input, DenseI64ArrayAttr:$destinations, StrArrayAttr:$axes);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `to` $destinations `over` $axes attr-dict `:` type($input) `->` type($result)";
  let hasVerifier = 1;
}

class Sched_RowExchange<string mnemonic, string text> : Sched_Collective<mnemonic, text> {
  let arguments = (ins Train_Tensor:$input, Train_Tensor:$choices, I64Attr:$experts, StrArrayAttr:$axes);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = [{
    $input `for` $choices `of` $experts `over` $axes attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the value with the rows of all members' tokens.
    ::mlir::RankedTensorType getWholeType();
    /// Returns the value with the rows of one member's tokens.
    ::mlir::RankedTensorType getPartType();
    int64_t getMembers() { return getWholeType().getDimSize(0) / getPartType().getDimSize(0); }
  }];
}

def GatherRowsOp : Sched_RowExchange<"gather_rows", "brings rows of tokens to the members with the experts of their choice"> {
  let description = [{
    `input` has the rows of the member's tokens. `choices` has the choices of all members' tokens, in the order of the
    members' coordinates, and is the same on all members. It holds indices of `experts` experts, of which each member
    has an equal part in that order. The result has a place for the row of every token; the rows of tokens that choose no
    expert of the member are undefined.
  }];
}

def ScatterRowsOp : Sched_RowExchange<"scatter_rows", "sums up the rows of each token on the members with the experts of its choice"> {
  let description = [{
    The way back of `sched.gather_rows`: `input` has a row for each token of all members. The result has a row for each of
    the member's own tokens: the sum of the token's rows on the members that have an expert of its choice, and 0 where
    no member has one.
  }];
}

def OwnPartOp : Sched_Collective<"own_part", "the rank's own part along `dim`; moves nothing between devices"> {
  let arguments = (ins Train_Tensor:$input, I64Attr:$dim, StrArrayAttr:$axes);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `dim` $dim `over` $axes attr-dict `:` type($input) `->` type($result)";
}

def MoveOp : Sched_Op<"move", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "the value, copied into a kind of memory";
  let description = [{
    Resources say by their layouts which memory they are in; other results are where their operands are, and all
    operands of an operator are in one kind of memory. Only optimizer steps and element-wise functions run on values in
    the host's memory, and none on those on a disk, which move from and to the host's memory only.
  }];
  let arguments = (ins Train_Tensor:$input, Plan_MemoryKindAttr:$memory);
  let results = (outs Train_Tensor:$result);
  let assemblyFormat = "$input `to` $memory attr-dict `:` type($input)";
}

def MapOp : Sched_Op<"map", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a fused chain of element-wise ops: a scalar function over an iteration space";
  let description = [{
    `function` is a func.func on scalars whose body holds element-wise `train` ops (and arith.constant). The iteration
    space is the shape of the results, which is equal for all. Operand i has the dims `operand_dims[i]` of it, in
    increasing order: a broadcast costs nothing.
  }];
  let arguments = (ins FlatSymbolRefAttr:$function, Variadic<Train_Tensor>:$inputs, ArrayAttr:$operand_dims);
  let results = (outs Variadic<Train_Tensor>:$results);
  let assemblyFormat = "$function `(` $inputs `)` `dims` $operand_dims attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

def ScheduleOp : Sched_Declaration<"schedule"> {
  let summary = "a rank's actions of one step";
  let arguments = (ins ArrayAttr:$actions);
  let assemblyFormat = "$actions attr-dict";
  let hasVerifier = 1;
}

#endif
