#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"

#include "ExpertParallel.h"
#include "ModelParallel.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

using namespace windlass;
using namespace windlass::plan;

static constexpr ShardedCopies kZero2 = {/*compute=*/false, /*gradient=*/true, /*master=*/true};
static constexpr ShardedCopies kZero3 = {/*compute=*/true, /*gradient=*/true, /*master=*/true};

llvm::ArrayRef<NamedStrategy> plan::getNamedStrategies() {
  static const std::vector<NamedStrategy> strategies = {
      {"ddp", "splits the data: all ranks hold all of each weight, and sum their gradients once a step",
       /*shardedCopies=*/{}, /*splitModel=*/nullptr, /*isCompared=*/true, /*lastResort=*/0, /*measuredAs=*/{"ddp"}},
      {"zero1", "is `ddp` with the masters of weights and the optimizer's state sharded over the ranks",
       /*shardedCopies=*/{/*compute=*/false, /*gradient=*/false, /*master=*/true}, /*splitModel=*/nullptr,
       /*isCompared=*/true, /*lastResort=*/0, /*measuredAs=*/{"zero1"}},
      {"zero2", "is `zero1` with the accumulated gradients sharded too", kZero2, /*splitModel=*/nullptr,
       /*isCompared=*/true, /*lastResort=*/0, /*measuredAs=*/{"zero2"}},
      {"zero3", "is `zero2` with the weights sharded too; each is gathered where operators read it", kZero3,
       /*splitModel=*/nullptr, /*isCompared=*/true, /*lastResort=*/1, /*measuredAs=*/{"zero3"}},
      {"megatron",
       "splits the matmuls: columns of those whose results stay split until other matmuls sum over them (the heads of "
       "attention, the hidden layer of an MLP and of experts), rows of those others, and the vocabulary of the table "
       "of tokens and of the output layer; weights are split as their operators are",
       /*shardedCopies=*/{}, findModelParallel, /*isCompared=*/true, /*lastResort=*/2,
       /*measuredAs=*/{"zero1*megatron=2", "megatron"}},
      {"ep",
       "is expert parallelism: each rank has some of the experts of each layer, all of the other weights, and a part "
       "of "
       "each micro-batch; before a layer of experts an all-gather brings all tokens to each rank, after it a "
       "reduce-scatter returns the sums, so that no token is dropped, whatever the load",
       /*shardedCopies=*/{}, findExpertParallel, /*isCompared=*/true, /*lastResort=*/0, /*measuredAs=*/{"ep"},
       checkExpertParallel},
      {"zero-offload",
       "is ZeRO-Offload: `zero2` whose gradients, masters and optimizer's state are in the host's memory, where all "
       "updates run",
       kZero2, /*splitModel=*/nullptr, /*isCompared=*/false, /*lastResort=*/0, /*measuredAs=*/{"zero2"},
       /*checkModel=*/nullptr, TierRule{Offload::gradients}},
      {"zero-infinity", "is ZeRO-Infinity without a disk: `zero3` with the weights, too, in the host's memory", kZero3,
       /*splitModel=*/nullptr, /*isCompared=*/false, /*lastResort=*/0, /*measuredAs=*/{"zero3"},
       /*checkModel=*/nullptr, TierRule{Offload::weights}},
      {"zero-infinity-disk", "is ZeRO-Infinity with the optimizer's state and the masters on the host's disk", kZero3,
       /*splitModel=*/nullptr, /*isCompared=*/false, /*lastResort=*/0, /*measuredAs=*/{"zero3"},
       /*checkModel=*/nullptr, TierRule{Offload::disk}},
      {"gemini",
       "is Gemini of Colossal-AI: `zero3` with all blocks recomputed; in the order of their first use, first weights "
       "and then gradients with the optimizer's state stay on the device while they fit, and the rest is on the host",
       kZero3, /*splitModel=*/nullptr, /*isCompared=*/false, /*lastResort=*/0, /*measuredAs=*/{"zero3"},
       /*checkModel=*/nullptr, TierRule{Offload::weights, keepWhatFits, TierMeasure::free}},
      {"twinflow",
       "is Twin-Flow of ZeRO-Offload++: `zero-offload` that keeps the share F of the optimizer's state, from 0 to 1, "
       "on "
       "the device, where it is updated too",
       kZero2, /*splitModel=*/nullptr, /*isCompared=*/false, /*lastResort=*/0, /*measuredAs=*/{"zero2"},
       /*checkModel=*/nullptr, TierRule{Offload::gradients, keepShare, TierMeasure::nothing, TierNumber::share}},
      {"dos",
       "is Deep Optimizer States: `zero3` whose gradients, masters and optimizer's state are in the host's memory, in "
       "subgroups of 100 million elements for each rank in call order; the host updates them, except every Kth "
       "subgroup, whose state comes to the device, is updated there and goes back",
       kZero3, /*splitModel=*/nullptr, /*isCompared=*/false, /*lastResort=*/0, /*measuredAs=*/{"zero3"},
       /*checkModel=*/nullptr,
       TierRule{Offload::gradients, updateEveryKthOnDevice, TierMeasure::nothing, TierNumber::stride}},
      {"elixir",
       "is Elixir: `zero3` with all blocks recomputed; its published rules search the size of chunks of weights and "
       "share the device out between gathered chunks and the optimizer's state of chunks, the rest of which is on the "
       "host",
       kZero3, /*splitModel=*/nullptr, /*isCompared=*/false, /*lastResort=*/0, /*measuredAs=*/{"zero3"},
       /*checkModel=*/nullptr,
       TierRule{Offload::weights, placeChunks, TierMeasure::activations, TierNumber::none,
                /*needsOwnMemory=*/true, /*choosesUnits=*/true}},
  };
  return strategies;
}

std::vector<const NamedStrategy *> plan::getLastResorts() {
  std::vector<const NamedStrategy *> found;
  for (const NamedStrategy &strategy : getNamedStrategies())
    if (strategy.lastResort > 0)
      found.push_back(&strategy);
  llvm::sort(found, [](const NamedStrategy *a, const NamedStrategy *b) { return a->lastResort < b->lastResort; });
  return found;
}

bool NamedStrategy::suits(mlir::ModuleOp module, MeshAttr mesh) const {
  return !checkModel || !llvm::errorToBool(checkModel(module, mesh));
}

/// Returns which number the term of `strategy` takes in place of a number of ranks.
static TierNumber getNumber(const NamedStrategy &strategy) {
  return strategy.tiers ? strategy.tiers->takes : TierNumber::none;
}

std::string NamedStrategy::getSpelling() const {
  switch (getNumber(*this)) {
  case TierNumber::none:
    return name.str();
  case TierNumber::share:
    return name.str() + "=F";
  case TierNumber::stride:
    return name.str() + "=K";
  }
  llvm_unreachable("unknown number");
}

std::string plan::describeNamedStrategies() {
  std::string text;
  for (const NamedStrategy &strategy : getNamedStrategies())
    text += strategy.getSpelling() + ", ";
  return text + "or one for the data times one for the model, as in zero1*megatron=2";
}

std::string StrategyTerms::getText() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (data)
    out << data->name;
  if (data && getNumber(*data) == TierNumber::share)
    out << "=" << llvm::format("%g", share);
  if (data && getNumber(*data) == TierNumber::stride)
    out << "=" << stride;
  if (model && data)
    out << "*" << model->name << "=" << modelRanks;
  else if (model)
    out << model->name;
  return text;
}

static const NamedStrategy *findStrategy(llvm::StringRef name) {
  const NamedStrategy *found = llvm::find_if(getNamedStrategies(), [&](auto &its) { return its.name == name; });
  return found == getNamedStrategies().end() ? nullptr : found;
}

const TierRule *plan::findTierRule(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> terms;
  text.split(terms, '*');
  for (llvm::StringRef term : terms)
    if (const NamedStrategy *strategy = findStrategy(term.split('=').first); strategy && strategy->tiers)
      return &*strategy->tiers;
  return nullptr;
}

/// Returns numbers of ranks near `ranks` that fit a strategy whose terms take `model` and `data` ranks; 0 stands for
/// all the remaining ones.
static llvm::SmallVector<int64_t> listRanks(int64_t ranks, int64_t model, int64_t data) {
  if (model > 0 && data > 0)
    return {model > std::numeric_limits<int64_t>::max() / data ? model : model * data};
  int64_t part = std::max(model, data), below = ranks - ranks % part;
  if (below == 0)
    return {part};
  return {below, below + part};
}

llvm::Expected<StrategyTerms> plan::parseStrategy(llvm::StringRef text, int64_t ranks) {
  auto fail = [&](const llvm::Twine &what) {
    return llvm::createStringError("strategy " + printable(text) + " " + what);
  };
  llvm::SmallVector<llvm::StringRef> terms;
  text.split(terms, '*');
  StrategyTerms found;
  int64_t dataRanks = 0, modelRanks = 0;
  for (llvm::StringRef term : terms) {
    auto [name, count] = term.split('=');
    const NamedStrategy *strategy = findStrategy(name);
    if (!strategy)
      return fail("has a part " + printable(name) + ", which is not known: use " + describeNamedStrategies());
    const NamedStrategy *&own = strategy->isForModel() ? found.model : found.data;
    if (own)
      return fail("splits the " + llvm::Twine(strategy->isForModel() ? "model" : "data") +
                  " twice: leave one of its parts out");
    own = strategy;
    int64_t size = 0;
    if (getNumber(*strategy) == TierNumber::share) {
      if (!term.contains('='))
        return fail("says of " + printable(name) + " no share of the optimizer's state: write " + name + "=0.5");
      if (count.getAsDouble(found.share) || !(found.share >= 0 && found.share <= 1))
        return fail("gives " + printable(name) + " the share " + printable(count) + ": use a number from 0 to 1");
    } else if (getNumber(*strategy) == TierNumber::stride) {
      if (!term.contains('='))
        return fail("says of " + printable(name) + " no stride of what the device updates: write " + name + "=2");
      if (count.getAsInteger(10, found.stride) || found.stride < 1)
        return fail("gives " + printable(name) + " the stride " + printable(count) + ": use a whole number from 1 on");
    } else if (term.contains('=') && (count.getAsInteger(10, size) || size < 1))
      return fail("gives " + printable(name) + " " + printable(count) + " ranks: use a number from 1 on");
    (strategy->isForModel() ? modelRanks : dataRanks) = size;
  }
  const int64_t askedModel = found.model ? modelRanks : 1, askedData = found.data ? dataRanks : 1;
  if (!found.model)
    modelRanks = 1;
  if (!found.data)
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
  found.dataRanks = dataRanks;
  found.modelRanks = modelRanks;
  return found;
}
