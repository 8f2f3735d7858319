#include "RecomputeClasses.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

RecomputeCounts planner::countChosenRecompute(const Groups &groups, const Counterparts &planned) {
  llvm::DenseMap<Operation *, unsigned> groupOf;
  for (auto [group, its] : llvm::enumerate(groups.getOperators()))
    for (Operation *op : its.ops)
      groupOf[planned.find(op)] = group;
  plan::Recomputation recompute(llvm::cast<func::FuncOp>(planned.find(groups.getFunction())));
  recompute.addChosen();
  RecomputeCounts counts(groups.getOperators().size(), 0);
  for (const plan::Recomputation::Segment &segment : recompute.getSegments())
    for (Operation *op : segment.ops)
      if (auto found = groupOf.find(op); found != groupOf.end())
        ++counts[found->second];
  return counts;
}

RecomputeClasses::RecomputeClasses(const Groups &groups) : groupCount(groups.getOperators().size()) {
  // Blocks are in one class where each operator stands for the same group and is in the same part.
  std::map<std::vector<std::vector<std::optional<unsigned>>>, unsigned> known;
  func::FuncOp function = groups.getFunction();
  for (plan::SegmentBlock &block : plan::getSegmentBlocks(function->getParentOfType<ModuleOp>())) {
    auto isOutside = [&](Operation *op) {
      return llvm::isa<train::TrainOpInterface>(op) && !groups.getRange().contains(op);
    };
    if (llvm::any_of(block.ops, [&](const auto &part) { return llvm::any_of(part, isOutside); }))
      continue;
    std::vector<std::vector<std::optional<unsigned>>> key;
    for (const SmallVector<Operation *> &part : block.ops) {
      key.emplace_back();
      for (Operation *op : part)
        key.back().push_back(groups.getGroup(op));
    }
    auto [it, isNew] = known.try_emplace(std::move(key), classes.size());
    if (isNew)
      classes.emplace_back().labels = block.getLabels();
    classOf[StringAttr::get(function.getContext(), block.name)] = it->second;
    classes[it->second].blocks.push_back(std::move(block));
  }
  plan::Recomputation recompute(function);
  for (RecomputeClass &its : classes)
    for (auto [label, name] : llvm::enumerate(its.labels)) {
      recompute.clear();
      for (const plan::SegmentBlock &block : llvm::reverse(its.blocks)) {
        std::vector<SmallVector<Operation *>> segments = block.getSegments(name);
        for (const SmallVector<Operation *> &segment : llvm::reverse(segments))
          recompute.add(segment);
      }
      for (const plan::Recomputation::Segment &segment : recompute.getSegments())
        for (Operation *op : segment.ops)
          if (std::optional<unsigned> group = groups.getGroup(op)) {
            std::vector<int64_t> &counts = its.counts[*group];
            counts.resize(its.labels.size());
            ++counts[label];
          }
    }
}

std::optional<unsigned> RecomputeClasses::getClass(plan::SegmentAttr segment) const {
  auto found = segment ? classOf.find(segment.getBlock()) : classOf.end();
  return found == classOf.end() ? std::nullopt : std::optional<unsigned>(found->second);
}

std::optional<unsigned> RecomputeClasses::getClass(const OperatorGroup &group) const {
  auto classOfOp = [&](Operation *op) { return getClass(op->getAttrOfType<plan::SegmentAttr>(plan::kSegmentAttr)); };
  std::optional<unsigned> first = classOfOp(group.front());
  return llvm::all_of(group.ops, [&](Operation *op) { return classOfOp(op) == first; }) ? first : std::nullopt;
}

RecomputeCounts RecomputeClasses::count(int parts) const {
  RecomputeCounts counts(groupCount, 0);
  for (const RecomputeClass &its : classes)
    for (auto &[group, byLabel] : its.counts)
      counts[group] += byLabel.back() * parts / kRecomputeParts;
  return counts;
}
