#include "windlass/Conversion/PlanToOnnx/OnnxShardings.h"

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/Glob.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace windlass;

/// Returns the ONNX node that an operator comes from: the innermost name of its location. An operator that stands for a
/// chain of nodes has the name of the last node, whose value it computes.
static StringRef getNodeName(Location location) {
  if (auto named = dyn_cast<NameLoc>(location)) {
    StringRef inner = getNodeName(named.getChildLoc());
    return inner.empty() ? named.getName().getValue() : inner;
  }
  if (auto fused = dyn_cast<FusedLoc>(location); fused && !fused.getLocations().empty())
    return getNodeName(fused.getLocations().front());
  return {};
}

namespace {

/// The operator whose first result is a tensor of the graph, by the tensor's name.
using Producers = std::map<std::string, Operation *>;

Producers findProducers(ModuleOp module, const GraphOutline &outline) {
  auto function = train::getMicrobatchFunction(module);
  // The operators of each node that no other operator of the node reads.
  std::map<std::string, SmallVector<Operation *, 1>> sinks;
  for (Operation &op : function.front()) {
    if (op.hasAttr(train::kForwardAttr) || !op.hasAttr(train::kIdAttr) || !llvm::isa<train::TrainOpInterface>(op))
      continue;
    StringRef node = getNodeName(op.getLoc());
    bool isRead = llvm::any_of(op.getUsers(), [&](Operation *user) {
      return !user->hasAttr(train::kForwardAttr) && llvm::isa<train::TrainOpInterface>(user) &&
             getNodeName(user->getLoc()) == node;
    });
    if (!node.empty() && !isRead)
      sinks[node.str()].push_back(&op);
  }
  std::map<std::string, int> count;
  for (const GraphOutline::Node &node : outline.nodes)
    ++count[node.name];
  Producers producers;
  for (const GraphOutline::Node &node : outline.nodes) {
    auto found = sinks.find(node.name);
    if (count[node.name] != 1 || found == sinks.end() || found->second.size() != 1 || node.outputs.empty())
      continue;
    Operation *op = found->second.front();
    auto shape = outline.shapes.find(node.outputs.front());
    ArrayRef<int64_t> own = llvm::cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    if (shape != outline.shapes.end() && own == ArrayRef<int64_t>(shape->second))
      producers[node.outputs.front()] = op;
  }
  return producers;
}

/// Returns the devices that hold each shard of a value, in row-major order of the split factors.
std::vector<std::vector<int64_t>> getHolders(plan::LayoutAttr layout, plan::MeshAttr mesh,
                                             ArrayRef<int64_t> deviceOrder) {
  SmallVector<int64_t> axes;
  int64_t shards = 1;
  for (plan::DimLayoutAttr dim : layout.getDims())
    for (plan::FactorLayoutAttr factor : dim.getFactors())
      for (StringAttr axis : factor.getAxes()) {
        axes.push_back(mesh.indexOf(axis.getValue()));
        shards *= mesh.sizeOf(axis.getValue());
      }
  std::vector<std::vector<int64_t>> holders(shards);
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    SmallVector<int64_t> coordinates = mesh.coordinatesOf(rank);
    int64_t shard = 0;
    for (int64_t axis : axes)
      shard = shard * mesh.getAxes()[axis].getSize() + coordinates[axis];
    holders[shard].push_back(deviceOrder[rank]);
  }
  for (std::vector<int64_t> &devices : holders)
    llvm::sort(devices);
  return holders;
}

TensorSharding describe(std::string tensor, plan::LayoutAttr layout, plan::MeshAttr mesh,
                        ArrayRef<int64_t> deviceOrder) {
  TensorSharding sharding;
  sharding.tensor = std::move(tensor);
  for (auto [d, dim] : llvm::enumerate(layout.getDims())) {
    if (llvm::all_of(dim.getFactors(), [](plan::FactorLayoutAttr factor) { return factor.getAxes().empty(); }))
      continue;
    std::vector<ShardedFactor> &factors = sharding.dims[static_cast<int64_t>(d)];
    for (plan::FactorLayoutAttr factor : dim.getFactors()) {
      ShardedFactor &made = factors.emplace_back(ShardedFactor{factor.getSize(), 1});
      for (StringAttr axis : factor.getAxes())
        made.shards *= mesh.sizeOf(axis.getValue());
    }
  }
  sharding.devices = getHolders(layout, mesh, deviceOrder);
  return sharding;
}

/// Finds the axes that put shards on their devices.
class AxesFinder {
public:
  AxesFinder(const TensorSharding &sharding, RankedTensorType type, plan::MeshAttr mesh, ArrayRef<int64_t> deviceOrder)
      : sharding(sharding), type(type), mesh(mesh), deviceOrder(deviceOrder), context(type.getContext()) {}

  llvm::Expected<plan::LayoutAttr> find() {
    factors.resize(type.getRank());
    for (auto [d, size] : llvm::enumerate(type.getShape()))
      factors[d] = {{size, 1}};
    std::set<int64_t> seen;
    for (const auto &[given, own] : sharding.dims) {
      int64_t axis = given < 0 ? given + type.getRank() : given;
      if (axis < 0 || axis >= type.getRank())
        return makeError("has axis " + Twine(given) + ", but the tensor has rank " + Twine(type.getRank()));
      if (!seen.insert(axis).second)
        return makeError("shards axis " + Twine(axis) + " twice");
      int64_t product = 1;
      factors[axis].assign(own.begin(), own.end());
      for (ShardedFactor &factor : factors[axis]) {
        if (factor.size == 0 && own.size() == 1)
          factor.size = type.getDimSize(axis);
        if (factor.size == 0 || type.getDimSize(axis) % factor.size != 0 || factor.size % factor.shards != 0)
          return makeError("splits a factor of " + Twine(factor.size) + " of axis " + Twine(axis) + ", of " +
                           Twine(type.getDimSize(axis)) + ", into " + Twine(factor.shards) +
                           " shards, which do not divide it evenly");
        product = product <= type.getDimSize(axis) ? product * factor.size : product;
      }
      if (product != type.getDimSize(axis))
        return makeError("has factors of axis " + Twine(axis) + " that do not multiply to its " +
                         Twine(type.getDimSize(axis)));
    }
    for (auto &dim : factors)
      axes.resize(axes.size() + dim.size());
    if (plan::LayoutAttr layout = assign(0, 0, 0))
      return layout;
    return makeError("has its shards on devices as no axes of the mesh have them");
  }

private:
  /// Gives axes to the factor at (dim, index), the `flat`-th of all, and to those behind it.
  plan::LayoutAttr assign(size_t dim, size_t index, size_t flat) {
    if (dim == factors.size())
      return finish();
    if (index == factors[dim].size())
      return assign(dim + 1, 0, flat);
    int64_t made = 1;
    for (StringAttr axis : axes[flat])
      made *= mesh.sizeOf(axis.getValue());
    int64_t wanted = factors[dim][index].shards;
    if (made == wanted)
      return assign(dim, index + 1, flat + 1);
    for (plan::AxisAttr axis : mesh.getAxes()) {
      if (wanted % (made * axis.getSize()) != 0 || !used.insert(axis.getName().str()).second)
        continue;
      axes[flat].push_back(axis.getName());
      if (plan::LayoutAttr layout = assign(dim, index, flat))
        return layout;
      axes[flat].pop_back();
      used.erase(axis.getName().str());
    }
    return nullptr;
  }

  plan::LayoutAttr finish() {
    SmallVector<plan::DimLayoutAttr> dims;
    size_t flat = 0;
    for (const auto &dim : factors) {
      SmallVector<plan::FactorLayoutAttr> own;
      for (const ShardedFactor &factor : dim)
        own.push_back(plan::FactorLayoutAttr::get(context, factor.size, axes[flat++]));
      dims.push_back(plan::DimLayoutAttr::get(context, own));
    }
    auto layout = plan::LayoutAttr::get(context, dims, {}, plan::MemoryKind::device);
    return getHolders(layout, mesh, deviceOrder) == sharding.devices ? layout : plan::LayoutAttr();
  }

  const TensorSharding &sharding;
  RankedTensorType type;
  plan::MeshAttr mesh;
  ArrayRef<int64_t> deviceOrder;
  MLIRContext *context;
  std::vector<std::vector<ShardedFactor>> factors;
  std::vector<SmallVector<StringAttr, 2>> axes;
  std::set<std::string> used;
};

} // namespace

llvm::Expected<ModelAnnotations> windlass::describeShardings(ModuleOp module, const plan::PlanFile &plan,
                                                             const GraphOutline &outline) {
  auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  ModelAnnotations annotations;
  annotations.configuration = kOnnxConfiguration;
  annotations.devices = mesh.getRanks();
  std::map<std::string, TensorSharding> shardings;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    auto layout = parameter->getAttrOfType<plan::LayoutAttr>(plan::kLayoutAttr);
    std::string name = parameter.getLogicalName().str();
    if (parameter.getRole() != train::Role::state && outline.initializers.count(name))
      shardings[name] = describe(name, layout, mesh, plan.deviceOrder);
  }
  const plan::PlannedFunction &rows = plan.functions.at(train::kMicrobatchFunction);
  for (const auto &[tensor, op] : findProducers(module, outline)) {
    auto type = llvm::cast<RankedTensorType>(op->getResult(0).getType());
    auto row = rows.operators.find(op->getAttrOfType<StringAttr>(train::kIdAttr).str());
    llvm::Expected<plan::LayoutAttr> layout = row == rows.operators.end()
                                                  ? llvm::Expected<plan::LayoutAttr>(plan::LayoutAttr::getWhole(type))
                                                  : plan::parseLayout(row->second.layouts.front(), type, mesh);
    if (!layout)
      return layout.takeError();
    if (layout->getUnreduced().empty())
      shardings[tensor] = describe(tensor, *layout, mesh, plan.deviceOrder);
  }
  for (auto [index, node] : llvm::enumerate(outline.nodes)) {
    std::vector<TensorSharding> own;
    std::set<std::string> seen;
    auto add = [&](const std::string &tensor) {
      auto found = shardings.find(tensor);
      if (found != shardings.end() && seen.insert(tensor).second)
        own.push_back(found->second);
    };
    for (const std::string &input : node.inputs)
      if (outline.initializers.count(input))
        add(input);
    for (const std::string &output : node.outputs)
      add(output);
    if (!own.empty())
      annotations.nodes[static_cast<int64_t>(index)] = std::move(own);
  }
  return annotations;
}

llvm::Expected<std::vector<std::string>> windlass::makePins(ModuleOp module, ArrayRef<int64_t> deviceOrder,
                                                            const GraphOutline &outline,
                                                            const ModelAnnotations &annotations) {
  auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  if (annotations.devices != mesh.getRanks())
    return makeError("configuration " + printable(annotations.configuration) + " is for " + Twine(annotations.devices) +
                     " devices, but the plan is for " + countOf(mesh.getRanks(), "rank"));
  std::map<std::string, train::ParameterOp> parameters;
  for (auto parameter : module.getOps<train::ParameterOp>())
    if (parameter.getRole() != train::Role::state)
      parameters[parameter.getLogicalName().str()] = parameter;
  Producers producers = findProducers(module, outline);
  // Several nodes may annotate a parameter in the same way.
  std::map<std::string, std::string> pins;
  for (const auto &[index, shardings] : annotations.nodes)
    for (const TensorSharding &sharding : shardings) {
      const GraphOutline::Node &node = outline.nodes[index];
      auto parameter = parameters.find(sharding.tensor);
      auto producer = producers.find(sharding.tensor);
      bool isParameter = parameter != parameters.end() && outline.initializers.count(sharding.tensor);
      // The layout in which a node finds a value of another node is left to reshards.
      if (!isParameter && (producer == producers.end() || !llvm::is_contained(node.outputs, sharding.tensor)))
        continue;
      RankedTensorType type = isParameter ? parameter->second.getTensorType()
                                          : llvm::cast<RankedTensorType>(producer->second->getResult(0).getType());
      llvm::Expected<plan::LayoutAttr> layout = AxesFinder(sharding, type, mesh, deviceOrder).find();
      if (!layout)
        return makeError("node " + printable(node.name) + ": the sharding of " + printable(sharding.tensor) + " " +
                         llvm::toString(layout.takeError()));
      std::string pin = isParameter
                            ? escapeGlob(sharding.tensor) + "=compute:" + plan::toText(*layout)
                            : escapeGlob(producer->second->getAttrOfType<StringAttr>(train::kIdAttr).getValue()) + "=" +
                                  plan::toText(*layout);
      auto [known, isNew] = pins.try_emplace(sharding.tensor, pin);
      if (!isNew && known->second != pin)
        return makeError("node " + printable(node.name) + ": the sharding of " + printable(sharding.tensor) +
                         " is another one than at an earlier node");
    }
  std::vector<std::string> texts;
  for (auto &[tensor, pin] : pins)
    texts.push_back(std::move(pin));
  return texts;
}
