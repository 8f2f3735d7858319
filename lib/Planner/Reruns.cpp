#include "Reruns.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// Calls `visit` with the group of each operator that is run again.
template <typename Visit> static void visitGroups(const Groups &groups, const plan::Rerun &rerun, Visit visit) {
  for (const plan::Rerun::Segment &segment : rerun.getSegments())
    for (Operation *op : segment.ops)
      if (std::optional<unsigned> group = groups.getGroup(op))
        visit(*group);
}

RerunCounts planner::countChosenReruns(const Groups &groups) {
  plan::Rerun rerun(groups.getFunction());
  rerun.addChosen();
  RerunCounts counts(groups.getOperators().size(), 0);
  visitGroups(groups, rerun, [&](unsigned group) { ++counts[group]; });
  return counts;
}

Reruns::Reruns(const Groups &groups) : groupCount(groups.getOperators().size()) {
  // Blocks of which each operator stands for the same group, and in the same part.
  std::map<std::vector<std::vector<std::optional<unsigned>>>, unsigned> known;
  func::FuncOp function = groups.getFunction();
  for (plan::SegmentBlock &block : plan::getSegmentBlocks(function->getParentOfType<ModuleOp>())) {
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
  plan::Rerun rerun(function);
  for (RerunClass &its : classes)
    for (auto [label, name] : llvm::enumerate(its.labels)) {
      rerun.clear();
      for (const plan::SegmentBlock &block : llvm::reverse(its.blocks)) {
        std::vector<SmallVector<Operation *>> segments = block.getSegments(name);
        for (const SmallVector<Operation *> &segment : llvm::reverse(segments))
          rerun.add(segment);
      }
      visitGroups(groups, rerun, [&, label = label](unsigned group) {
        std::vector<int64_t> &counts = its.counts[group];
        counts.resize(its.labels.size());
        ++counts[label];
      });
    }
}

std::optional<unsigned> Reruns::getClass(plan::SegmentAttr segment) const {
  auto found = segment ? classOf.find(segment.getBlock()) : classOf.end();
  return found == classOf.end() ? std::nullopt : std::optional<unsigned>(found->second);
}

std::optional<unsigned> Reruns::getClass(const OperatorGroup &group) const {
  auto classOfOp = [&](Operation *op) { return getClass(op->getAttrOfType<plan::SegmentAttr>(plan::kSegmentAttr)); };
  std::optional<unsigned> first = classOfOp(group.front());
  return llvm::all_of(group.ops, [&](Operation *op) { return classOfOp(op) == first; }) ? first : std::nullopt;
}

RerunCounts Reruns::count(int rerunParts) const {
  RerunCounts counts(groupCount, 0);
  for (const RerunClass &its : classes)
    for (auto &[group, byLabel] : its.counts)
      counts[group] += byLabel.back() * rerunParts / kRerunParts;
  return counts;
}
