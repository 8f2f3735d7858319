#include "windlass/Dialect/Plan/Transforms/Tiers.h"

#include "windlass/Dialect/Plan/Transforms/Elixir.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Plan/Transforms/StrategyChoice.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/TensorBytes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

/// A weight that the optimizer updates.
struct Weight {
  train::ParameterOp parameter;
  /// The forward operators that use it, in program order.
  llvm::SetVector<Operation *> users;

  StringAttr getSymbol() const { return train::ParameterOp(parameter).getSymNameAttr(); }
  int64_t getElements() const { return train::ParameterOp(parameter).getTensorType().getNumElements(); }
};

} // namespace

/// Returns the weights that the optimizer updates in the order in which the forward pass first uses them.
static std::vector<Weight> listWeights(ModuleOp module) {
  SymbolTable symbols(module);
  llvm::MapVector<StringAttr, Weight> found;
  for (Operation &op : train::getMicrobatchFunction(module).getOps()) {
    if (isa<train::StashOp>(op))
      break;
    for (Value operand : op.getOperands())
      if (auto read = operand.getDefiningOp<train::ReadOp>())
        if (auto parameter = symbols.lookup<train::ParameterOp>(read.getParameter()); parameter.isOptimized()) {
          Weight &weight = found[parameter.getSymNameAttr()];
          weight.parameter = parameter;
          weight.users.insert(&op);
        }
  }
  std::vector<Weight> weights;
  for (auto &[symbol, weight] : found)
    weights.push_back(std::move(weight));
  return weights;
}

/// Returns the number of states that the optimizer keeps of each element of a weight, by symbol.
static llvm::DenseMap<StringAttr, int64_t> countStates(ModuleOp module) {
  llvm::DenseMap<StringAttr, int64_t> counts;
  SymbolTable symbols(module);
  for (auto state : module.getOps<train::ParameterOp>())
    if (state.getOf())
      if (auto weight = symbols.lookup<train::ParameterOp>(*state.getOf());
          weight && weight.getTensorType() == state.getTensorType())
        ++counts[weight.getSymNameAttr()];
  return counts;
}

/// Whether operators find another copy of the weight than the one that is updated, because they compute in fewer bits.
static bool hasOwnMaster(train::ParameterOp parameter) {
  return parameter.getComputeTensorType() != parameter.getTensorType();
}

void plan::labelTiers(ModuleOp module, const TierRule &rule, const TierChoice &chosen) {
  applyOffload(module, rule.offload);
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    StringAttr symbol = parameter.getSymNameAttr();
    if (chosen.states.contains(symbol))
      for (StringRef copy : {kStateMemoryAttr, kGradientMemoryAttr})
        parameter->removeAttr(copy);
    if (chosen.updatedOnDevice.contains(symbol)) {
      parameter->removeAttr(kGradientMemoryAttr);
      parameter->setAttr(kUpdatesOnDeviceAttr, UnitAttr::get(module.getContext()));
    }
    if (chosen.weights.contains(symbol) || chosen.whole.contains(symbol))
      parameter->removeAttr(kComputeMemoryAttr);
  }
}

void plan::applyTiers(ModuleOp module, const TierRule &rule, const TierChoice &chosen) {
  Builder builder(module.getContext());
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  for (auto parameter : module.getOps<train::ParameterOp>())
    if (chosen.whole.contains(parameter.getSymNameAttr()))
      parameter->setAttr(kLayoutAttr, gatherShards(parameter->getAttrOfType<LayoutAttr>(kLayoutAttr), mesh));
  for (auto [name, bytes] : {std::pair(kUnitBytesAttr, chosen.unitBytes), {kPrefetchBytesAttr, chosen.prefetchBytes}})
    if (bytes > 0 && module->hasAttr(name))
      module->setAttr(name, builder.getI64IntegerAttr(bytes));
  if (chosen.keepsGathers)
    module->setAttr(kKeepsGathersAttr, builder.getUnitAttr());
  if (rule.recomputesBlocks())
    recomputeAllBlocks(module);
}

void plan::recomputeAllBlocks(ModuleOp module) {
  for (const SegmentBlock &block : getSegmentBlocks(module))
    block.setLabel(kBlockLabel);
}

llvm::Expected<TierChoice> plan::keepShare(ModuleOp module, const TierFacts &facts) {
  std::vector<Weight> weights = listWeights(module);
  double total = 0, kept = 0;
  for (const Weight &weight : weights)
    total += static_cast<double>(weight.getElements());
  TierChoice chosen;
  for (const Weight &weight : weights) {
    kept += static_cast<double>(weight.getElements());
    if (kept > facts.share * total)
      break;
    chosen.states.insert(weight.getSymbol());
  }
  return chosen;
}

llvm::Expected<TierChoice> plan::updateEveryKthOnDevice(ModuleOp module, const TierFacts &facts) {
  constexpr int64_t kSubgroupElements = 100'000'000;
  TierChoice chosen;
  int64_t before = 0;
  for (const Weight &weight : listWeights(module)) {
    int64_t subgroup = (before + weight.getElements() / 2) / (kSubgroupElements * facts.ranks);
    if ((subgroup + 1) % facts.stride == 0)
      chosen.updatedOnDevice.insert(weight.getSymbol());
    before += weight.getElements();
  }
  return chosen;
}

llvm::Expected<TierChoice> plan::keepWhatFits(ModuleOp planned, const TierFacts &facts) {
  auto mesh = planned->getAttrOfType<MeshAttr>(kMeshAttr);
  llvm::DenseMap<StringAttr, int64_t> states = countStates(planned);
  int64_t room = facts.freeBytes;
  auto take = [&](int64_t bytes) {
    room -= bytes;
    return room >= 0;
  };
  std::vector<Weight> weights = listWeights(planned);
  TierChoice chosen;
  for (const Weight &weight : weights) {
    auto parameter = train::ParameterOp(weight.parameter);
    auto layout = parameter->getAttrOfType<LayoutAttr>(kLayoutAttr);
    if (!take(getTensorBytes(layout.getLocalType(parameter.getComputeTensorType(), mesh))))
      return chosen;
    chosen.weights.insert(weight.getSymbol());
  }
  for (const Weight &weight : weights) {
    auto parameter = train::ParameterOp(weight.parameter);
    auto layout = parameter->getAttrOfType<LayoutAttr>(kMasterLayoutAttr);
    int64_t copies = 1 + states.lookup(weight.getSymbol()) + (hasOwnMaster(parameter) ? 1 : 0);
    if (!take(copies * getTensorBytes(layout.getLocalType(parameter.getTensorType(), mesh))))
      return chosen;
    chosen.states.insert(weight.getSymbol());
  }
  return chosen;
}

/// Returns the most elements of weights that one module of the model has by itself: those whose names differ in the
/// last part only.
static int64_t getLargestModule(ArrayRef<Weight> weights) {
  llvm::StringMap<int64_t> modules;
  int64_t largest = 0;
  for (const Weight &weight : weights) {
    StringRef name = train::ParameterOp(weight.parameter).getLogicalName();
    int64_t &elements = modules[name.rsplit('.').first];
    elements += weight.getElements();
    largest = std::max(largest, elements);
  }
  return largest;
}

/// Returns the most elements of weights that the operators of one block use.
static int64_t getLargestRegion(ModuleOp planned, ArrayRef<Weight> weights) {
  int64_t largest = 0;
  for (const SegmentBlock &block : getSegmentBlocks(planned)) {
    llvm::DenseSet<Operation *> own;
    for (const auto &part : block.ops)
      own.insert(part.begin(), part.end());
    int64_t elements = 0;
    for (const Weight &weight : weights)
      if (llvm::any_of(weight.users, [&](Operation *user) { return own.contains(user); }))
        elements += weight.getElements();
    largest = std::max(largest, elements);
  }
  return largest;
}

/// Returns the problem that Elixir's rules solve; `once` are the weights that are used once, `shared` the others.
static elixir::Problem describeProblem(ModuleOp planned, const TierFacts &facts, ArrayRef<Weight> weights,
                                       std::vector<const Weight *> &once, std::vector<const Weight *> &shared) {
  auto parameter = train::ParameterOp(weights.front().parameter);
  auto getElementBytes = [](RankedTensorType type) { return static_cast<int64_t>(type.getElementTypeBitWidth()) / 8; };
  elixir::Problem problem;
  problem.deviceBytes = facts.deviceBytes;
  problem.bufferBytes = facts.bufferBytes;
  problem.activationBytes = facts.activationBytes;
  problem.ranks = facts.ranks;
  problem.elementBytes = getElementBytes(parameter.getComputeTensorType());
  problem.states = countStates(planned).lookup(parameter.getSymNameAttr());
  // Gradients are accumulated in the type of the master copy, and not in place of the weight.
  int64_t copies = 1 + problem.states + (hasOwnMaster(parameter) ? 1 : 0);
  problem.residentBytes = problem.elementBytes + copies * getElementBytes(parameter.getTensorType());
  for (const Weight &weight : weights) {
    bool isShared = weight.users.size() > 1;
    (isShared ? shared : once).push_back(&weight);
    (isShared ? problem.shared : problem.weights).push_back(weight.getElements());
  }
  problem.largestModule = getLargestModule(weights);
  problem.largestRegion = getLargestRegion(planned, weights);
  return problem;
}

llvm::Expected<TierChoice> plan::placeChunks(ModuleOp planned, const TierFacts &facts) {
  std::vector<Weight> weights = listWeights(planned);
  if (weights.empty())
    return TierChoice();
  std::vector<const Weight *> once, shared;
  elixir::Problem problem = describeProblem(planned, facts, weights, once, shared);
  std::optional<elixir::Placement> placement = elixir::place(problem);
  if (!placement)
    return llvm::createStringError("has no room for chunks of weights beside activations: use a device with more "
                                   "memory, smaller micro-batches or --strategy zero-infinity");
  TierChoice chosen;
  chosen.unitBytes = chosen.prefetchBytes = placement->chunk * problem.elementBytes;
  bool cachesAll = placement->blocks >= placement->countChunks();
  // A single rank gathers nothing that it could keep.
  chosen.keepsGathers = cachesAll && facts.ranks > 1;
  for (auto [weight, chunk] : llvm::zip_equal(once, placement->chunkOf)) {
    if (placement->isOnDevice[chunk]) {
      chosen.weights.insert(weight->getSymbol());
      chosen.states.insert(weight->getSymbol());
    }
    // The chunks that the forward pass uses last are in the cache when the backward pass begins with them.
    if (!chosen.keepsGathers && chunk >= placement->countChunks() - placement->blocks)
      chosen.whole.insert(weight->getSymbol());
  }
  for (auto [weight, isOnDevice] : llvm::zip_equal(shared, placement->isSharedOnDevice)) {
    chosen.whole.insert(weight->getSymbol());
    if (isOnDevice)
      chosen.states.insert(weight->getSymbol());
  }
  return chosen;
}
