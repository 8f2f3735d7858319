// The named strategies' rules of what stays on the device and what goes to the host's memory.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_TIERS_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_TIERS_H

#include "windlass/Dialect/Plan/Transforms/Offload.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Error.h"

namespace windlass::plan {

/// What a rule is told about the device besides the module.
struct TierFacts {
  /// The strategy's number, of rules that take one: the share of the optimizer's state that stays on the device, from 0
  /// to 1, or the number of subgroups of which the device updates one.
  double share = 0;
  int64_t stride = 0;
  /// The number of ranks that share the data.
  int64_t ranks = 1;
  /// The bytes of a device, and of what it holds besides weights, gradients and state from step to step.
  int64_t deviceBytes = 0, bufferBytes = 0;
  /// The bytes of the largest set of activations that is live at one time, with all blocks recomputed.
  int64_t activationBytes = 0;
  /// The bytes of a device that are free where the host holds all that it may, with all blocks recomputed.
  int64_t freeBytes = 0;
};

/// What a rule has chosen, parameters by symbol.
struct TierChoice {
  /// The parameters whose shards stay on the device, and those whose gradient, master copy and state do.
  llvm::DenseSet<mlir::StringAttr> weights, states;
  /// The parameters whose state comes from the host to the device for the update. Their gradients stay on the device.
  llvm::DenseSet<mlir::StringAttr> updatedOnDevice;
  /// The parameters of which each rank keeps the whole weight on its device.
  llvm::DenseSet<mlir::StringAttr> whole;
  /// The sizes of units and of the window of prefetches, where the rule chooses them; else 0.
  int64_t unitBytes = 0, prefetchBytes = 0;
  /// Whether gathered weights are kept for the backward pass.
  bool keepsGathers = false;
};

/// Takes a module with the parameters, and with plans where the rule measures one; returns the choice, or the end of a
/// sentence, which begins with the strategy, that says why there is none.
using TierChooser = llvm::Expected<TierChoice> (*)(mlir::ModuleOp module, const TierFacts &facts);

/// What a rule measures before it chooses: nothing; the activations, where all weights are whole on the device; or the
/// memory that is free where the host holds all that the rule may place there.
enum class TierMeasure { nothing, activations, free };

/// The number with which a strategy is written, NAME=F or NAME=K, instead of a number of ranks.
enum class TierNumber { none, share, stride };

/// How a named strategy uses the host's memory.
struct TierRule {
  /// What the host holds; `choose` leaves parts of it on the device.
  Offload offload = Offload::none;
  /// The function that chooses what stays on the device; null: nothing of what `offload` says.
  TierChooser choose = nullptr;
  TierMeasure measure = TierMeasure::nothing;
  TierNumber takes = TierNumber::none;
  /// Whether the memory of a device has to be one of its own, beside the host's.
  bool needsOwnMemory = false;
  /// Whether `choose` gives the size of units, which is not searched then.
  bool choosesUnits = false;
  /// Whether the backward pass recomputes all blocks.
  bool recomputesBlocks() const { return measure != TierMeasure::nothing; }
};

/// Labels the parameters of a module at L2 with what `rule` keeps on the host, as far as `chosen` does not keep it on
/// the device.
void labelTiers(mlir::ModuleOp module, const TierRule &rule, const TierChoice &chosen);

/// Gives a module at L3, whose parameters were labelled before the strategy was applied, the rest of the choice.
void applyTiers(mlir::ModuleOp module, const TierRule &rule, const TierChoice &chosen);

/// Sets all blocks of a module at L3 to be recomputed.
void recomputeAllBlocks(mlir::ModuleOp module);

/// The rule of `twinflow=F`: the state of the parameters that are used first stays on the device, up to the share F of
/// all elements.
llvm::Expected<TierChoice> keepShare(mlir::ModuleOp module, const TierFacts &facts);

/// The rule of `dos=K`: of subgroups of 100 million elements for each rank, in call order, the device updates every Kth
/// (arXiv 2410.21316). A weight belongs to the subgroup in which its middle is.
llvm::Expected<TierChoice> updateEveryKthOnDevice(mlir::ModuleOp module, const TierFacts &facts);

/// The rule of `gemini`: in call order, first weights and then states stay on the device while they fit.
llvm::Expected<TierChoice> keepWhatFits(mlir::ModuleOp planned, const TierFacts &facts);

/// The rule of `elixir` (`Elixir.h`).
llvm::Expected<TierChoice> placeChunks(mlir::ModuleOp planned, const TierFacts &facts);

} // namespace windlass::plan

#endif
