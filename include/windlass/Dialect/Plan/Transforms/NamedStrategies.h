// The registry of named strategies, and how a text such as "zero1*megatron=2" names them. All code that lists,
// compares, measures or explains strategies reads the registry: a strategy needs nothing but its row and what the row
// refers to.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_NAMEDSTRATEGIES_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_NAMEDSTRATEGIES_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Dialect/Plan/Transforms/Tiers.h"

#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass::plan {

struct NamedStrategy {
  /// The name that `--strategy` takes: small letters, digits and hyphens.
  llvm::StringRef name;
  /// A description of the strategy, as the end of a sentence that begins with its name.
  llvm::StringRef summary;
  /// The copies of weights that are sharded among the ranks that work on parts of the data.
  ShardedCopies shardedCopies;
  /// The function that splits operators among its ranks; null for a strategy whose ranks work on parts of the data.
  ModelSplitter splitModel = nullptr;
  /// Whether the search reports its cost, and may choose it as the plan.
  bool isCompared = true;
  /// The position, from 1 on, among the strategies that are tried where no searched plan fits; 0: the strategy is not
  /// tried.
  int lastResort = 0;
  /// The strategies, as `--strategy` takes them, whose commands `windlass profile` measures for this one.
  std::vector<llvm::StringRef> measuredAs = {};
  /// The function that says, as the end of a sentence that begins with the strategy, why a model does not suit it on a
  /// mesh; null for a strategy that suits all models.
  llvm::Error (*checkModel)(mlir::ModuleOp module, MeshAttr mesh) = nullptr;
  /// What the strategy keeps on the host; none for a strategy with which `--offload` says that.
  std::optional<TierRule> tiers = std::nullopt;

  /// Returns the name with what has to stand behind it: NAME or NAME=F.
  std::string getSpelling() const;
  bool isForModel() const { return splitModel != nullptr; }
  /// Whether `checkModel` has nothing to say.
  bool suits(mlir::ModuleOp module, MeshAttr mesh) const;
};

/// Returns all named strategies in the order in which texts list them: first the ones for the data.
llvm::ArrayRef<NamedStrategy> getNamedStrategies();

/// Returns the strategies that are tried where no searched plan fits, in the order of `lastResort`.
std::vector<const NamedStrategy *> getLastResorts();

/// Returns a description of the texts that `--strategy` takes: "ddp, zero1, .., or one for the data times one for the
/// model, as in ..".
std::string describeNamedStrategies();

/// One strategy for the data, one for the model, or both; null where there is none.
struct StrategyTerms {
  const NamedStrategy *data = nullptr, *model = nullptr;
  /// The number of ranks of each; 1 where the term is absent.
  int64_t dataRanks = 1, modelRanks = 1;
  /// The share of the optimizer's state that stays on the device, or the number of subgroups of which the device updates
  /// one, where the data's term takes such a number.
  double share = 0;
  int64_t stride = 0;

  /// Returns the text that `--strategy` takes.
  std::string getText() const;
};

/// Reads NAME[=K][*NAME[=K]] for `ranks` ranks. One of two terms may leave K out and gets the remaining ranks; a term
/// that takes another number always does. The error says what is wrong and which texts would be accepted.
llvm::Expected<StrategyTerms> parseStrategy(llvm::StringRef text, int64_t ranks);

/// Returns the rule by which the strategy that `text` names uses the host's memory; null where it has none.
const TierRule *findTierRule(llvm::StringRef text);

} // namespace windlass::plan

#endif
