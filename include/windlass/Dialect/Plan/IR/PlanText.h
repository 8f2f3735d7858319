// Layouts and strategies in the words of plan.json.
#ifndef WINDLASS_DIALECT_PLAN_IR_PLANTEXT_H
#define WINDLASS_DIALECT_PLAN_IR_PLANTEXT_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Train/IR/Factors.h"

#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace windlass::plan {

/// Returns a layout as text, such as "[8:batch, 3*64] sum(data)" or "[257] flat(data)", or reads it back for a value of
/// type `type` on `mesh`.
std::string toText(LayoutAttr layout);
llvm::Expected<LayoutAttr> parseLayout(llvm::StringRef text, mlir::RankedTensorType type, MeshAttr mesh);

/// The axes by factor, outermost first; "3*" before them says that each of 3 equal blocks is split.
using SplitWords = std::map<std::string, std::vector<std::string>>;

SplitWords toWords(StrategyAttr strategy);

/// Returns the splits of an operator with these factors, in the order of the factors. Fails with the rule that is
/// broken, as the end of a sentence that begins with the operator: "has no factor 'n7'; the nearest is 'n0'".
llvm::Expected<llvm::SmallVector<FactorAxesAttr>> readSplits(const SplitWords &words, const train::OpFactors &factors,
                                                             MeshAttr mesh);

/// Returns the id of an operator; one in a repeated block has a star in the place of the block's number.
std::string collapseId(llvm::StringRef id, RepeatAttr repeat);

} // namespace windlass::plan

#endif
