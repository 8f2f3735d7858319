//===- ExportedModel.cpp - the module that was exported, and the file -----===//

#include "ExportedModel.h"

#include "TracedArguments.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace windlass;

namespace {

/// The nodes that stand for one traced call or, in a file without calls, for one module.
struct NodeGroup {
  llvm::SmallVector<onnx::NodeOp> nodes;
  /// The targets that the call reads, in their order.
  llvm::SmallSetVector<llvm::StringRef, 4> targets;
  /// The initializers that may stand for these targets, in their order.
  llvm::SmallSetVector<Operation *, 4> initializers;
};

class Comparison {
public:
  Comparison(onnx::GraphOp graph, ArrayAttr signature) : graph(graph), signature(signature) {}

  ExportedModel run();

private:
  void readSignature();
  void readNodes();
  void pairGroup(NodeGroup &group);
  void pair(llvm::StringRef target, onnx::InitializerOp initializer, NodeGroup &group);
  bool isAlias(llvm::StringRef target);
  bool mayBeFolded() const { return !hasConstants && (hasUnmarked || hasDangling); }

  onnx::GraphOp graph;
  ArrayAttr signature;
  ExportedModel model;

  struct Tensor {
    llvm::StringRef kind;
    size_t index;
  };
  llvm::StringMap<Tensor> tensors;
  llvm::StringMap<llvm::StringRef> targetOf;
  llvm::StringMap<Operation *> initializers;
  llvm::MapVector<Attribute, NodeGroup> calls, modules;
  llvm::StringSet<> altered;
  /// Whether the file has nodes that compute nothing: no constant was folded into an initializer.
  bool hasConstants = false;
  bool hasUnmarked = false;
  /// Whether a call reads the result of a call that no node stands for.
  bool hasDangling = false;
};

} // namespace

/// Returns the path of the module that owns a tensor; empty at the root.
static llvm::StringRef getModulePath(llvm::StringRef target) {
  return target.contains('.') ? target.rsplit('.').first : llvm::StringRef();
}

/// Whether the initializer can stand for a parameter or buffer: single numbers without a mark are constants.
static bool isTensor(onnx::InitializerOp op) {
  return isa<FloatType>(getElementTypeOrSelf(op.getType())) && (op.getKind() || op.getSource());
}

void Comparison::readSignature() {
  for (auto [index, spec] : llvm::enumerate(signature.getAsRange<onnx::SpecAttr>())) {
    if (spec.getTarget().empty())
      continue;
    tensors[spec.getTarget()] = {spec.getKind(), index};
    targetOf[spec.getPlaceholder()] = spec.getTarget();
    model.parameters += spec.getKind() == "PARAMETER";
  }
}

void Comparison::readNodes() {
  // The names that calls may read: results of calls, and inputs of the module.
  llvm::StringSet<> known, mentioned;
  for (auto spec : signature.getAsRange<onnx::SpecAttr>())
    known.insert(spec.getPlaceholder());
  for (Operation &op : graph.getBody().front()) {
    if (auto initializer = dyn_cast<onnx::InitializerOp>(op)) {
      initializers[initializer.getInitializerName()] = initializer;
      hasUnmarked |= !initializer.getKind() && !tensors.contains(initializer.getInitializerName());
      continue;
    }
    auto node = dyn_cast<onnx::NodeOp>(op);
    if (!node)
      continue;
    hasConstants |= node.getOpType() == "Constant";
    auto add = [&](NodeGroup &group) {
      group.nodes.push_back(node);
      for (Value input : node.getInputs())
        if (auto initializer = input.getDefiningOp<onnx::InitializerOp>(); initializer && isTensor(initializer))
          group.initializers.insert(initializer);
    };
    if (node.getScopeAttr())
      add(modules[node.getScopeAttr()]);
    onnx::CallAttr call = node.getCallAttr();
    if (!call)
      continue;
    known.insert(call.getResult());
    NodeGroup &group = calls[call];
    if (group.nodes.empty())
      for (llvm::StringRef name : findMentions(call.getArguments())) {
        // One of several results bears a name of its own.
        if (!name.starts_with("getitem"))
          mentioned.insert(name);
        if (auto found = targetOf.find(name); found != targetOf.end())
          group.targets.insert(found->second);
      }
    add(group);
  }
  hasDangling = llvm::any_of(mentioned, [&](const auto &name) { return !known.contains(name.first()); });
}

/// Records that `initializer` stands where the module read `target`.
void Comparison::pair(llvm::StringRef target, onnx::InitializerOp initializer, NodeGroup &group) {
  using Fate = Alteration::Fate;
  llvm::StringRef name = initializer.getInitializerName();
  const Tensor &tensor = tensors[target];
  if (tensor.kind != "PARAMETER") {
    if (!initializer.getKind())
      model.bufferCopies[name] = target.str();
    return;
  }
  auto alter = [&](Fate fate, llvm::StringRef with) {
    if (altered.insert(target).second)
      model.alterations.push_back({target.str(), fate, with.str()});
  };
  bool isMissing = !initializers.contains(target);
  if (initializer.getKind()) {
    if (isMissing)
      alter(Fate::merged, name);
    return;
  }
  auto [copy, isNew] = model.parameterCopies.try_emplace(name, target.str());
  if (!isNew && copy->second != target)
    return alter(Fate::merged, copy->second);
  onnx::CallAttr call = group.nodes.front().getCallAttr();
  bool isTransposed = call && call.getTarget().getValue().starts_with("aten.linear.") &&
                      cast<RankedTensorType>(initializer.getType()).getRank() == 2;
  alter(!isMissing ? Fate::copied : isTransposed ? Fate::transposed : Fate::renamed, name);
}

/// Finds the initializers that stand for the targets of the group's call: first those of the same name, then the others
/// in their order, where there are equally many.
void Comparison::pairGroup(NodeGroup &group) {
  llvm::SmallVector<llvm::StringRef> targets;
  llvm::SmallVector<onnx::InitializerOp> others;
  for (llvm::StringRef target : group.targets) {
    auto found = initializers.find(target);
    if (found == initializers.end() || !group.initializers.contains(found->second))
      targets.push_back(target);
  }
  for (Operation *op : group.initializers)
    if (auto initializer = cast<onnx::InitializerOp>(op); !group.targets.contains(initializer.getInitializerName()))
      others.push_back(initializer);
  onnx::CallAttr call = group.nodes.front().getCallAttr();
  // A norm that became part of a product leaves the product's weights in its place.
  bool isFolded = call && call.getTarget().getValue().contains("batch_norm");
  if (targets.size() == others.size() && !isFolded) {
    for (auto [target, initializer] : llvm::zip_equal(targets, others))
      pair(target, initializer, group);
    return;
  }
  for (llvm::StringRef target : targets)
    if (tensors[target].kind == "PARAMETER" && !initializers.contains(target) && altered.insert(target).second)
      model.alterations.push_back({target.str(), Alteration::Fate::folded, ""});
}

/// Whether the missing target is another name of a parameter that the file holds. The exporter names tied parameters by
/// the last of their names, and the nodes of the target's own module read it; merged parameters keep the first name.
bool Comparison::isAlias(llvm::StringRef target) {
  auto module = modules.find(StringAttr::get(graph.getContext(), getModulePath(target)));
  if (module == modules.end())
    return false;
  return llvm::any_of(module->second.initializers, [&](Operation *op) {
    auto found = tensors.find(cast<onnx::InitializerOp>(op).getInitializerName());
    return found != tensors.end() && found->second.kind == "PARAMETER" && found->second.index > tensors[target].index &&
           found->first() != target && getModulePath(found->first()) != getModulePath(target) &&
           found->first().rsplit('.').second == target.rsplit('.').second;
  });
}

ExportedModel Comparison::run() {
  model.hasSignature = true;
  readSignature();
  readNodes();
  for (auto &[call, group] : calls)
    pairGroup(group);
  if (!mayBeFolded())
    return std::move(model);
  if (calls.empty()) {
    // The nodes of a module read its own tensors.
    llvm::DenseMap<llvm::StringRef, llvm::SmallVector<llvm::StringRef>> missing;
    for (auto spec : signature.getAsRange<onnx::SpecAttr>())
      if (llvm::StringRef target = spec.getTarget();
          !target.empty() && !initializers.contains(target) && !isAlias(target))
        missing[getModulePath(target)].push_back(target);
    for (auto &[scope, group] : modules) {
      for (llvm::StringRef target : missing.lookup(cast<StringAttr>(scope).getValue()))
        group.targets.insert(target);
      pairGroup(group);
    }
  }
  for (auto spec : signature.getAsRange<onnx::SpecAttr>())
    if (llvm::StringRef target = spec.getTarget(); spec.getKind() == "PARAMETER" && !initializers.contains(target) &&
                                                   !altered.contains(target) && !isAlias(target))
      model.vanished.push_back(target.str());
  return std::move(model);
}

ExportedModel windlass::readExportedModel(onnx::GraphOp graph) {
  if (std::optional<ArrayAttr> signature = graph.getSignature())
    return Comparison(graph, *signature).run();
  return {};
}
