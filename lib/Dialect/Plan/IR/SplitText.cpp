// The splits of an operator as words.
#include "windlass/Dialect/Plan/IR/PlanText.h"
#include "windlass/Support/Flags.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

SplitWords plan::toWords(StrategyAttr strategy) {
  SplitWords words;
  for (FactorAxesAttr split : strategy.getSplits()) {
    std::vector<std::string> &texts = words[split.getFactor().getValue().str()];
    if (split.getBlocks() > 1)
      texts.push_back(std::to_string(split.getBlocks()) + "*");
    for (StringAttr axis : split.getAxes())
      texts.push_back(axis.getValue().str());
  }
  return words;
}

llvm::Expected<SmallVector<FactorAxesAttr>> plan::readSplits(const SplitWords &words, const train::OpFactors &factors,
                                                             MeshAttr mesh) {
  MLIRContext *context = mesh.getContext();
  SmallVector<FactorAxesAttr> splits;
  std::set<std::string> used;
  std::vector<std::string> names;
  for (const train::Factor &factor : factors.factors) {
    names.push_back(factor.name);
    auto split = words.find(factor.name);
    if (split == words.end() || split->second.empty())
      continue;
    if (factor.kind == train::FactorKind::Replicated)
      return makeError("cannot be split along " + printable(factor.name));
    SmallVector<StringAttr> axes;
    int64_t rest = factor.size, blocks = 1;
    llvm::ArrayRef<std::string> texts = split->second;
    bool isFlat = factor.kind == train::FactorKind::Flat; // filled up where axes do not divide it
    if (StringRef first = texts.front(); first.consume_back("*") && !first.getAsInteger(10, blocks)) {
      texts = texts.drop_front();
      if (blocks < 2 || factor.size % blocks != 0 || texts.empty() || isFlat)
        return makeError("has " + Twine(factor.size) + " along " + printable(factor.name) +
                         ", which cannot be split in " + Twine(blocks) + " blocks; leave the blocks out");
      rest /= blocks;
    }
    for (const std::string &axis : texts) {
      if (mesh.indexOf(axis) < 0) {
        std::vector<std::string> axisNames;
        for (AxisAttr known : mesh.getAxes())
          axisNames.push_back(known.getName().str());
        std::string nearest = nearestOf(axis, axisNames);
        return makeError("is split over axis " + printable(axis) + ", which the mesh does not have" +
                         (nearest.empty() ? "" : "; the nearest is " + printable(nearest)));
      }
      if (!used.insert(axis).second)
        return makeError("is split over axis " + printable(axis) + " twice");
      if (!isFlat && rest % mesh.sizeOf(axis) != 0)
        return makeError("has " + Twine(factor.size) + " along " + printable(factor.name) + ", which axis " +
                         printable(axis) + " of " + Twine(mesh.sizeOf(axis)) + " does not divide evenly");
      rest /= mesh.sizeOf(axis);
      axes.push_back(StringAttr::get(context, axis));
    }
    splits.push_back(FactorAxesAttr::get(context, StringAttr::get(context, factor.name), axes, blocks));
  }
  for (const auto &[factor, axes] : words)
    if (!llvm::is_contained(names, factor)) {
      std::string nearest = nearestOf(factor, names);
      return makeError("has no factor " + printable(factor) +
                       (nearest.empty() ? "" : "; the nearest is " + printable(nearest)));
    }
  return splits;
}
