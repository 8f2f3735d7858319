// The registry of named strategies, and how a text such as "zero1*megatron=2" names them. Whoever lists, compares,
// measures or explains strategies reads the registry: a row is all that a strategy needs besides what its row refers
// to.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_NAMEDSTRATEGIES_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_NAMEDSTRATEGIES_H

#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"

#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace windlass::plan {

struct NamedStrategy {
  /// As `--strategy` takes it: small letters and digits.
  llvm::StringRef name;
  /// What it does, as the end of a sentence that begins with its name.
  llvm::StringRef summary;
  /// Which copies of weights the ranks that work on parts of the data share out among themselves.
  SharedCopies sharedCopies;
  /// How its ranks split operators; null where they work on parts of the data.
  ModelSplitter splitModel = nullptr;
  /// Whether the search names its cost, and may take it as the plan.
  bool isCompared = true;
  /// Place among those that are tried where nothing that is searched fits, from 1 on; 0: it is not.
  int lastResort = 0;
  /// The strategies, as `--strategy` takes them, whose commands `windlass profile` measures for it.
  std::vector<llvm::StringRef> measuredAs = {};

  bool isForModel() const { return splitModel != nullptr; }
};

/// All of them, in the order in which texts list them; those for the data first.
llvm::ArrayRef<NamedStrategy> getNamedStrategies();

/// Those that are tried where nothing that is searched fits, in this order.
std::vector<const NamedStrategy *> getLastResorts();

/// "ddp, zero1, .., or one for the data times one for the model, as in ..": what `--strategy` takes.
std::string describeNamedStrategies();

/// One strategy for the data, one for the model, or both; null where there is none.
struct StrategyTerms {
  const NamedStrategy *data = nullptr, *model = nullptr;
  /// Ranks of each; 1 where there is none.
  int64_t dataRanks = 1, modelRanks = 1;

  /// As `--strategy` takes it.
  std::string getText() const;
};

/// Reads NAME[=K][*NAME[=K]] for `ranks` ranks. One of two terms may leave K out and gets the rest of the ranks. Fails
/// with what is wrong and what would do.
llvm::Expected<StrategyTerms> parseStrategy(llvm::StringRef text, int64_t ranks);

} // namespace windlass::plan

#endif
