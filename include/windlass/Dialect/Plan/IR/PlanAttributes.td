// Meshes, strategies and layouts: attributes on `train` ops.
#ifndef WINDLASS_PLAN_ATTRIBUTES_TD
#define WINDLASS_PLAN_ATTRIBUTES_TD

include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "windlass/Dialect/Plan/IR/PlanEnums.td"
include "windlass/Dialect/Train/IR/TrainBase.td"

class Plan_Attr<string name, string attrMnemonic, list<Trait> traits = []> : AttrDef<PlanDialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Plan_MemoryKindAttr : EnumAttr<PlanDialect, Plan_MemoryKind, "memory_kind">;

def Plan_AxisAttr : Plan_Attr<"Axis", "axis"> {
  let summary = "a mesh axis, its size and its role";
  let description = [{
    The role says what is divided among the members: `replica`, the micro-batches of a step; `batch`, the graph's batch;
    `expert`, experts; `model`, which is left out of the text, any work of operators. The name is for people and for
    layouts.
  }];
  let parameters = (ins "::mlir::StringAttr":$name, "int64_t":$size,
                        DefaultValuedParameter<"::windlass::plan::AxisRole",
                                               "::windlass::plan::AxisRole::model">:$role);
  let assemblyFormat = "`<` $name `,` $size (`,` $role^)? `>`";
  let genVerifyDecl = 1;
}

def Plan_MeshAttr : Plan_Attr<"Mesh", "mesh"> {
  let summary = "the devices as a grid; ranks are numbered in row-major order of the axes";
  let parameters = (ins OptionalArrayRefParameter<"::windlass::plan::AxisAttr">:$axes);
  let assemblyFormat = "`<` `[` (`]`) : ($axes^ `]`)? `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Returns the position of the axis in the mesh, or -1.
    int64_t indexOf(::llvm::StringRef axis) const;
    /// Returns the number of members of the axis; 1 for an unknown axis.
    int64_t sizeOf(::llvm::StringRef axis) const;
    /// Returns the role of the axis; `model` for an unknown axis.
    AxisRole roleOf(::llvm::StringRef axis) const;
    /// Returns the axes of a role, in the order of the mesh.
    ::llvm::SmallVector<::mlir::StringAttr> axesOf(AxisRole role) const;
    /// Returns the product of the sizes of the axes of a role; 1 where there are none. For `replica` it is P.
    int64_t sizeOf(AxisRole role) const;
    /// Whether the members of the axis work on different parts of the data with the same weights: replicas, or parts of
    /// the batch.
    bool isDataAxis(::llvm::StringRef axis) const;
    /// Returns these axes, in the order of the mesh.
    ::llvm::SmallVector<::mlir::StringAttr> getDataAxes() const;
    /// Returns the number of ranks.
    int64_t getRanks() const;
    /// Returns the coordinates of a rank, one per axis.
    ::llvm::SmallVector<int64_t> coordinatesOf(int64_t rank) const;
  }];
}

def Plan_PipelineAttr : Plan_Attr<"Pipeline", "pipeline"> {
  let summary = "the positions of a pipeline, its schedule, and where the chunks of the model begin";
  let description = [{
    `schedule` is the name of a published schedule (`windlass/Schedule/NamedSchedules.h`), which places the chunks, or
    `own`: then `orders` has the lines of a schedule's text (`windlass/Schedule/Pipeline.h`).
    `begins` has the `train.id` of the first forward operator of each chunk but the first, in the order of the program:
    a chunk is a run of operators, and their adjoints belong to it too. Each position has devices of the module's mesh.
  }];
  let parameters = (ins "int64_t":$positions, "::mlir::StringAttr":$schedule,
                        ArrayRefParameter<"::mlir::StringAttr">:$begins,
                        OptionalArrayRefParameter<"::mlir::StringAttr">:$orders);
  let assemblyFormat = [{
    `<` `positions` `=` $positions `,` `schedule` `=` $schedule `,` `begins` `=` `[` $begins `]`
    (`,` `orders` `=` `[` $orders^ `]`)? `>`
  }];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t countChunks() const { return static_cast<int64_t>(getBegins().size()) + 1; }
  }];
}

def Plan_FactorAxesAttr : Plan_Attr<"FactorAxes", "split"> {
  let summary = "axes that split a named factor of an operator, outermost first";
  let description = [{
    With `blocks` > 1 the factor is that many equal blocks, each of which is split: the heads of a fused projection
    `[3 * heads * width]` are split in 3 blocks.
  }];
  let parameters = (ins "::mlir::StringAttr":$factor, ArrayRefParameter<"::mlir::StringAttr">:$axes,
                        DefaultValuedParameter<"int64_t", "1">:$blocks);
  let assemblyFormat = "`<` $factor `,` `[` $axes `]` (`,` `blocks` `=` $blocks^)? `>`";
}

def Plan_StrategyAttr : Plan_Attr<"Strategy", "strategy"> {
  let summary = "how an operator runs: the axes on its factors, and whether it is recomputed";
  let description = [{
    Forward operators of `@microbatch` with one `segment` are recomputed together, just before the backward operators
    that need their results; -1: the results that the backward pass needs are stashed.
  }];
  let parameters = (ins OptionalArrayRefParameter<"::windlass::plan::FactorAxesAttr">:$splits,
                        DefaultValuedParameter<"int64_t", "-1">:$segment);
  let assemblyFormat = "`<` `[` (`]`) : ($splits^ `]`)? (`segment` `=` $segment^)? `>`";
  let extraClassDeclaration = [{
    /// Returns the split of the factor of that name; null when it is whole.
    FactorAxesAttr splitOf(::llvm::StringRef factor) const;
    /// Returns the axes on the factor of that name; empty when it is whole.
    ::llvm::ArrayRef<::mlir::StringAttr> axesOf(::llvm::StringRef factor) const;
  }];
}

def Plan_FactorLayoutAttr : Plan_Attr<"FactorLayout", "factor"> {
  let summary = "a factor of a dimension: its size and the axes on it, outermost first";
  let parameters = (ins "int64_t":$size, OptionalArrayRefParameter<"::mlir::StringAttr">:$axes);
  let assemblyFormat = "`<` $size (`,` `[` $axes^ `]`)? `>`";
  let genVerifyDecl = 1;
}

def Plan_DimLayoutAttr : Plan_Attr<"DimLayout", "dim"> {
  let summary = "the factors of a dimension, major to minor";
  let parameters = (ins OptionalArrayRefParameter<"::windlass::plan::FactorLayoutAttr">:$factors);
  let assemblyFormat = "`<` `[` (`]`) : ($factors^ `]`)? `>`";
}

def Plan_UnreducedAttr : Plan_Attr<"Unreduced", "unreduced"> {
  let summary = "an axis over which parts are still to be combined, and how";
  let parameters = (ins "::mlir::StringAttr":$axis, EnumParameter<Train_ReductionKind>:$kind);
  let assemblyFormat = "`<` $axis `,` $kind `>`";
}

def Plan_LayoutAttr : Plan_Attr<"Layout", "layout"> {
  let summary = "where the parts of a value are";
  let description = [{
    `flat` axes cut the local slice that the splits of the dims leave on a rank: flattened in row-major order and padded
    with zeros to a multiple of the product of the axes' sizes, it becomes equal ranges, one for each member, numbered
    by the axes, outermost first. Only the accumulated gradient and the master copy of a parameter are flat, and the
    values that `@update` computes from them.
  }];
  let parameters = (ins OptionalArrayRefParameter<"::windlass::plan::DimLayoutAttr">:$dims,
                        OptionalArrayRefParameter<"::mlir::StringAttr">:$flat,
                        OptionalArrayRefParameter<"::windlass::plan::UnreducedAttr">:$unreduced,
                        DefaultValuedParameter<"::windlass::plan::MemoryKind",
                                               "::windlass::plan::MemoryKind::device">:$memory);
  // No comma before `memory`: after a comma the generated parser expects `unreduced`.
  let assemblyFormat = [{
    `<` `[` (`]`) : ($dims^ `]`)? (`flat` `=` `[` $flat^ `]`)? (`,` `unreduced` `=` `[` $unreduced^ `]`)?
    (`memory` `=` $memory^)? `>`
  }];
  let builders = [
    // Without flat axes.
    AttrBuilder<(ins "::llvm::ArrayRef<::windlass::plan::DimLayoutAttr>":$dims,
                     "::llvm::ArrayRef<::windlass::plan::UnreducedAttr>":$unreduced,
                     "::windlass::plan::MemoryKind":$memory), [{
      return $_get($_ctxt, dims, ::llvm::ArrayRef<::mlir::StringAttr>(), unreduced, memory);
    }]>
  ];
  let extraClassDeclaration = [{
    /// Returns the layout of a value that is whole on every rank: one unsplit factor per dim.
    static LayoutAttr getWhole(::mlir::RankedTensorType type);
    bool isWhole() const;
    /// Fails with a diagnostic unless the layout has the dims of `type` and the factors of each multiply to its size.
    ::llvm::LogicalResult verifyFits(::mlir::RankedTensorType type,
                                     ::llvm::function_ref<::mlir::InFlightDiagnostic()> emitError) const;
    /// Returns the same layout with other unreduced axes, with other flat axes, or in another memory.
    LayoutAttr withUnreduced(::llvm::ArrayRef<UnreducedAttr> unreduced) const;
    LayoutAttr withFlat(::llvm::ArrayRef<::mlir::StringAttr> flat) const;
    LayoutAttr withMemory(::windlass::plan::MemoryKind memory) const;
    /// Returns the number of ranges that the flat axes make; 1 where nothing is flattened.
    int64_t getFlatParts(MeshAttr mesh) const;
    /// Returns the type of a rank's local slice, with one dim where it is a range; every split of a dim must divide it.
    ::mlir::RankedTensorType getLocalType(::mlir::RankedTensorType global, MeshAttr mesh) const;
  }];
}

def Plan_SegmentAttr : Plan_Attr<"Segment", "segment"> {
  let summary = "marks a forward operator as part of a block that can be recomputed";
  let description = [{
    `block` names the block; `part` is the half of it to which the operator belongs, empty where the block has no halves.
  }];
  let parameters = (ins "::mlir::StringAttr":$block, "::mlir::StringAttr":$part);
  let assemblyFormat = "`<` $block `,` $part `>`";
}

def Plan_RepeatAttr : Plan_Attr<"Repeat", "repeat"> {
  let summary = "marks an op as part of instance `index` of a class of structurally equal blocks";
  let parameters = (ins "::mlir::StringAttr":$class_name, "int64_t":$index);
  let assemblyFormat = "`<` $class_name `,` $index `>`";
}

#endif
