#include "NamedStrategy.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSwitch.h"

#include <limits>

using namespace windlass;
using namespace windlass::plan;

/// Numbers of ranks near `ranks` that a strategy fits whose parts take `model` and `data` of them, 0 being as many as
/// there are.
static llvm::SmallVector<int64_t> listRanks(int64_t ranks, int64_t model, int64_t data) {
  if (model > 0 && data > 0)
    return {model > std::numeric_limits<int64_t>::max() / data ? model : model * data};
  int64_t part = std::max(model, data), below = ranks - ranks % part;
  if (below == 0)
    return {part};
  return {below, below + part};
}

llvm::Expected<NamedStrategy> plan::parseStrategy(llvm::StringRef text, int64_t ranks) {
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError("strategy " + printable(text) + " " + what);
  };
  llvm::SmallVector<llvm::StringRef> terms;
  text.split(terms, '*');
  NamedStrategy strategy;
  int64_t dataRanks = 0, modelRanks = 0;
  bool hasData = false, hasModel = false;
  for (llvm::StringRef term : terms) {
    auto [name, count] = term.split('=');
    bool isModel = name == "megatron";
    int level =
        llvm::StringSwitch<int>(name).Case("ddp", 0).Case("zero1", 1).Case("zero2", 2).Case("zero3", 3).Default(-1);
    if (!isModel && level < 0)
      return fail("has a part " + printable(name) +
                  ", which is not known: use ddp, zero1, zero2, zero3, megatron, or "
                  "one of the first four times megatron, as in zero1*megatron=2");
    if (isModel ? hasModel : hasData)
      return fail("splits the " + llvm::Twine(isModel ? "model" : "data") + " twice: leave one of its parts out");
    int64_t size = 0;
    if (term.contains('=') && (count.getAsInteger(10, size) || size < 1))
      return fail("gives " + printable(name) + " " + printable(count) + " ranks: use a number from 1 on");
    (isModel ? hasModel : hasData) = true;
    (isModel ? modelRanks : dataRanks) = size;
    if (!isModel)
      strategy.zeroLevel = level;
  }
  const int64_t askedModel = hasModel ? modelRanks : 1, askedData = hasData ? dataRanks : 1;
  if (!hasModel)
    modelRanks = 1;
  if (!hasData)
    dataRanks = 1;
  if (modelRanks == 0 && dataRanks == 0)
    return fail("says of neither part how many ranks it gets: write megatron=K");
  if (modelRanks == 0)
    modelRanks = ranks % dataRanks == 0 ? ranks / dataRanks : 0;
  if (dataRanks == 0)
    dataRanks = ranks % modelRanks == 0 ? ranks / modelRanks : 0;
  // Neither product can overflow: both factors are below the ranks, or one of them is refused.
  if (modelRanks < 1 || dataRanks < 1 || modelRanks > ranks || dataRanks > ranks || modelRanks * dataRanks != ranks)
    return fail("does not fit " + countOf(ranks, "rank") + ": use " + listOf(listRanks(ranks, askedModel, askedData)) +
                " ranks, or other numbers in it");
  strategy.dataRanks = dataRanks;
  strategy.modelRanks = modelRanks;
  return strategy;
}
