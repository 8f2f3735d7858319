// Level L5: arenas, buffers, streams, events and commands.
#ifndef WINDLASS_SCHED_CMD_OPS_TD
#define WINDLASS_SCHED_CMD_OPS_TD

include "mlir/IR/BuiltinTypes.td"
include "windlass/Dialect/Plan/IR/PlanAttributes.td"
include "windlass/Dialect/Sched/IR/SchedBase.td"

def Sched_Buffer : MemRefOf<[Train_Element]>;

def Sched_KernelAttr : AttrDef<SchedDialect, "Kernel"> {
  let mnemonic = "kernel";
  let summary = "a kernel of the table include/windlass/Dialect/Sched/IR/Kernels.def";
  let parameters = (ins "::windlass::sched::KernelKind":$value);
  let assemblyFormat = "`<` custom<KernelName>($value) `>`";
  let returnType = "::windlass::sched::KernelKind";
  let convertFromStorage = "$_self.getValue()";
  let constBuilderCall = "::windlass::sched::KernelAttr::get($_builder.getContext(), $0)";
}

def ArenaOp : Sched_Declaration<"arena", [Symbol]> {
  let summary = "one allocation of `bytes` in a kind of memory";
  let description = [{
    `device` is the memory that kernels of the compute stream and collectives work on, `host` memory of the host that
    copies between the two reach (pinned, where the device is a GPU), `disk` a file that is read into the host's memory
    and written from there. A program has one arena of a kind at most.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_MemoryKindAttr:$kind, I64Attr:$bytes);
  let assemblyFormat = "$sym_name $kind `bytes` $bytes attr-dict";
  let hasVerifier = 1;
}

def SlotsOp : Sched_Declaration<"slots", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the slots of a chunk: `count` areas of `bytes` each, one after another in an arena from `offset` on";
  let description = [{
    A slot holds the inputs, the stash and the borders of one micro-batch in flight. Buffers and resources that name the
    slots as their arena begin at their offset in the slot that the schedule gives to the micro-batch for which the
    function runs, slot 0 for an evaluation; no other buffer is in the area. A program that has one chunk with one
    micro-batch in flight needs no slots: these values then share the arena with all others.

    A chunk may have further slots, marked `handed`, for what a backward hands to the weight gradient of the same
    micro-batch. A micro-batch has one of them from its backward to the end of its weight gradient.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$chunk, FlatSymbolRefAttr:$arena, I64Attr:$offset,
                       I64Attr:$count, I64Attr:$bytes, UnitAttr:$handed);
  let assemblyFormat = [{
    $sym_name (`handed` $handed^)? `chunk` $chunk `in` $arena `[` $offset `]` `count` $count `bytes` $bytes attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Returns the offset in the arena of the byte behind the last slot.
    int64_t getEnd() { return static_cast<int64_t>(getOffset() + getCount() * getBytes()); }
  }];
}

def StreamOp : Sched_Declaration<"stream", [Symbol]> {
  let summary = "a queue of commands that run one after another, beside those of other streams";
  let description = [{
    A stream has a number, by which schedules are checked and emitted programs name it: its place among the streams of
    the program. `kind` says what runs on it: kernels on memory of the device (`compute`, one stream of a program), the
    collectives of one communicator (`communicator`), copies from the host's arena to the device's (`h2d`) and back
    (`d2h`), kernels that the host runs on its own arena (`host`): fused functions, and the kernels that the table
    Kernels.def marks for the host; or copies from the disk's arena to the host's (`disk_read`) and back (`disk_write`).
    A copy to another memory moves bytes: its operand and result are dense and of one type.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Sched_StreamKindAttr:$kind);
  let assemblyFormat = "$sym_name $kind attr-dict";
}

def CommunicatorOp : Sched_Declaration<"communicator", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the ranks that differ only in their coordinates on `axes`; its collectives run on `stream`";
  let description = [{
    With `positions`, numbers that ascend, it has such ranks of each of these positions. No two communicators share a
    stream. `exchanges` says that some of its collectives are all-to-alls or permutes, in which a rank sends to other
    members directly: libraries keep more memory for that than for a ring.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes, OptionalAttr<DenseI64ArrayAttr>:$positions,
                       FlatSymbolRefAttr:$stream, UnitAttr:$exchanges);
  let assemblyFormat = [{
    $sym_name `over` $axes (`and` `positions` $positions^)? `on` $stream (`exchanges` $exchanges^)? attr-dict
  }];
}

def BufferOp : Sched_Op<"buffer", [Pure]> {
  let summary = "a window onto an arena; `offset` counts bytes, strides of the type count elements";
  let description = [{
    Two windows may name the same bytes (a reshape, a transpose, the part of a concatenation). The type's own offset is 0.
    `arena` names an arena or the slots of a chunk.
  }];
  let arguments = (ins FlatSymbolRefAttr:$arena, I64Attr:$offset);
  let results = (outs Sched_Buffer:$result);
  let assemblyFormat = "$arena `[` $offset `]` `:` type($result) attr-dict";
}

def LaunchOp : Sched_Op<"launch", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one kernel: the `train` op `kernel` on buffers";
  let description = [{
    `kernel` is one of the table include/windlass/Dialect/Sched/IR/Kernels.def (`windlass-opt --show-kernel-table`),
    which says how many operands and results it takes, and which results may have the place of an operand, or must.
    `ins` and `outs` stand for the op's operands and results in order; an unused result has an `outs` buffer too.
    `settings` are the op's own attributes, except: `matmul` takes its operands as views with the dims [batch.., rows..,
    contracted..] and [batch.., contracted.., columns..] and the settings `batch_rank` and `contract_rank`;
    `matmul_bias` (also takes a bias with the result's sizes and strides of 0, and a further matrix to add),
    `matmul_bias_gelu` (may have a second result, the sum), `matmul_gelu_grad` (also takes the input of GELU) and
    `matmul_bias_grad` (also sums its first or, with `sums_b`, second operand over the contracted dims) are a product
    without a batch and the operation that follows it;
    `add_layer_norm` and `add_rms_norm` write the sum of their first operands, as many as the setting `terms` says, and
    the norm of that; `layer_norm_grad` and `rms_norm_grad` may have a further operand, which is added to their first
    result, and accumulate to the other results only; `reduce` takes a view with the reduced dims last and the settings
    `kind` and `reduced_rank`. Kernels that are not `train` ops: `fill` (setting `value`, f64), `copy`, and `own_part`,
    which copies the rank's block of a view whose first dim counts the blocks (setting `axes`, the indices of the axes
    whose coordinates, first axis outermost, number the blocks). `count_labels` counts labels that are not
    `ignore_index`; `softmax_cross_entropy_with_grad` takes the gradient's factor, logits and labels, and returns the
    sum and, in the place of the logits, their gradient. `adamw`, `descend`, `ema`, `lion` and `sgd` work in place: their `outs`
    are the first of their `ins`, after which, for all but `ema`, the weight in 16 bits may follow; so do the second and third
    of `lamb` and the first of `momentum`, the state, beside which they write a direction; `adamw` may have several parameters, the operands and
    results of each together, scalars last, and `square_sum` several operands, whose squares it all sums. `accumulate` adds to the outs, `accumulate_after_first` does from the second
    micro-batch of a step on and overwrites in the first.
  }];
  let arguments = (ins Sched_KernelAttr:$kernel, FlatSymbolRefAttr:$stream, Variadic<Sched_Buffer>:$ins,
                       Variadic<Sched_Buffer>:$outs, DictionaryAttr:$settings, UnitAttr:$accumulate, UnitAttr:$accumulate_after_first);
  let assemblyFormat = [{
    custom<LaunchedKernel>($kernel) `on` $stream `ins` `(` $ins `)` `outs` `(` $outs `)` $settings
    (`accumulate` $accumulate^)? (`accumulate_after_first` $accumulate_after_first^)? attr-dict
    `:` functional-type($ins, $outs)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    const ::windlass::sched::KernelRow &getRow() { return ::windlass::sched::getRow(getKernel()); }
    ::windlass::sched::KernelArity getArity();
    /// Whether the result of number `out` may have the place of the operand of number `in`.
    bool mayWriteOver(size_t in, size_t out) { return getRow().mayWriteOver(getArity(), in, out); }
    /// Returns the number of the operand in whose place the result must be; none where it may be elsewhere.
    ::std::optional<size_t> getReplaced(size_t out) { return getRow().getReplaced(getArity(), out); }
    /// Whether the command adds to the result in the first micro-batch of a step or, with `isLater`, in others.
    bool addsTo(size_t out, bool isLater) {
      return (getAccumulate() || (isLater && getAccumulateAfterFirst())) && getRow().addsTo(out);
    }
    /// Returns an integer setting; 0 where it is not set.
    int64_t getIntegerSetting(::llvm::StringRef name);
  }];
}

def LaunchMapOp : Sched_Op<"launch_map", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a fused scalar function over buffers of the iteration space's shape (broadcasts are 0 strides)";
  let arguments = (ins FlatSymbolRefAttr:$function, FlatSymbolRefAttr:$stream, Variadic<Sched_Buffer>:$ins,
                       Variadic<Sched_Buffer>:$outs, UnitAttr:$accumulate_after_first);
  let assemblyFormat = [{
    $function `on` $stream `ins` `(` $ins `)` `outs` `(` $outs `)`
    (`accumulate_after_first` $accumulate_after_first^)? attr-dict `:` functional-type($ins, $outs)
  }];
  let hasVerifier = 1;
}

def LaunchCollectiveOp : Sched_Op<"launch_collective", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a collective of dense buffers on the communicator's stream; an all_reduce works in place (in is out)";
  let description = [{
    An all_gather and a reduce_scatter may move several pairs of buffers, at most 64: `outs` has the buffer of each of
    `ins`. They are one command, with the latency of one. Only a permute has `destinations`: the member to which each
    member sends. Only a gather_rows and a scatter_rows have `experts`: they read rows and choices, and fill rows and a
    scratch; a scatter_rows overwrites the rows that it reads, which are its third result.
  }];
  let arguments = (ins Sched_CollectiveKindAttr:$kind, Train_ReductionKindAttr:$reduction, FlatSymbolRefAttr:$communicator,
                       Variadic<Sched_Buffer>:$ins, Variadic<Sched_Buffer>:$outs,
                       OptionalAttr<DenseI64ArrayAttr>:$destinations, OptionalAttr<I64Attr>:$experts);
  let assemblyFormat = [{
    $kind $reduction $communicator `,` $ins `->` $outs (`to` $destinations^)? (`experts` $experts^)? attr-dict
    `:` type($ins) `->` type($outs)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The most pairs of buffers of one command; the runtime takes as many (`collective_pairs::most`).
    static constexpr size_t kMostPairs = 64;
    /// Whether the command exchanges rows of tokens.
    bool exchangesRows() {
      return getKind() == CollectiveKind::gather_rows || getKind() == CollectiveKind::scatter_rows;
    }
  }];
}

def Sched_Event : ConfinedAttr<I64Attr, [IntNonNegative]>;

def RecordOp : Sched_Op<"record", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "marks the point that the stream has reached";
  let description = [{
    Events are numbered from 0; the largest recorded number determines how many a program has. One stream alone records
    an event, so that a later record of it is behind all that an earlier wait is for.
  }];
  let arguments = (ins Sched_Event:$event, FlatSymbolRefAttr:$stream);
  let assemblyFormat = "$event `on` $stream attr-dict";
}

def WaitOp : Sched_Op<"wait", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "holds the stream until the event's last record before it has been reached";
  let arguments = (ins Sched_Event:$event, FlatSymbolRefAttr:$stream);
  let assemblyFormat = "$event `on` $stream attr-dict";
}

#endif
