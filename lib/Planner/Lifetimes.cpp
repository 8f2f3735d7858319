#include "Lifetimes.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

static plan::SegmentAttr getSegment(Operation *op) { return op->getAttrOfType<plan::SegmentAttr>(plan::kSegmentAttr); }

Lifetimes::Lifetimes(const Groups &groups, int rerunParts) : groups(groups), rerunParts(rerunParts) { findRows(); }

void Lifetimes::findRows() {
  struct Ends {
    int64_t first = INT64_MAX, last = INT64_MIN;
  };
  llvm::DenseMap<StringAttr, Ends> classes;
  llvm::DenseMap<Attribute, plan::SegmentAttr> segmentOf;
  func::FuncOp function = groups.getFunction();
  for (Operation &op : function.front()) {
    positions[&op] = static_cast<int64_t>(positions.size());
    if (auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr)) {
      Ends &ends = classes[repeat.getClassName()];
      ends.first = std::min(ends.first, repeat.getIndex());
      ends.last = std::max(ends.last, repeat.getIndex());
    }
    if (plan::SegmentAttr segment = getSegment(&op))
      segmentOf[op.getAttr(train::kIdAttr)] = segment;
    if (Attribute forward = op.getAttr(train::kForwardAttr))
      if (auto found = segmentOf.find(forward); found != segmentOf.end()) {
        const void *block = found->second.getBlock().getAsOpaquePointer();
        backwardBegin.try_emplace({block, nullptr}, positions[&op]);
        backwardBegin.try_emplace({block, found->second.getPart().getAsOpaquePointer()}, positions[&op]);
      }
  }
  for (Operation &op : function.front()) {
    rowAt.push_back(rows);
    auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr);
    bool isInner = repeat && repeat.getIndex() != classes[repeat.getClassName()].first &&
                   repeat.getIndex() != classes[repeat.getClassName()].last;
    rows += llvm::isa<train::TrainOpInterface>(op) && !isInner;
  }
  rowAt.push_back(rows);
}

/// Where a value or a view of it is read last, and what of the blocks of the forward pass reads it.
void Lifetimes::addUses(Value value, int64_t &lastForward, int64_t &lastBackward,
                        SmallVectorImpl<plan::SegmentAttr> &readers) const {
  for (Operation *user : value.getUsers()) {
    // What is returned is a gradient, added where it is made to the parameter's accumulated one, or the loss.
    if (llvm::isa<func::ReturnOp>(user))
      continue;
    if (auto stash = llvm::dyn_cast<train::StashOp>(user)) {
      SmallVector<plan::SegmentAttr> none;
      addUses(stash.getResult(), lastBackward, lastBackward, none);
      continue;
    }
    lastForward = std::max(lastForward, positions.lookup(user));
    if (plan::Rerun::isView(user))
      addUses(user->getResult(0), lastForward, lastBackward, readers);
    else if (plan::SegmentAttr segment = getSegment(user))
      readers.push_back(segment);
  }
}

std::vector<int64_t> Lifetimes::countInRows(const Intervals &intervals) const {
  std::vector<int64_t> counts(rows + 1, 0);
  for (Interval interval : intervals)
    if (int32_t begin = rowAt[interval.begin], end = rowAt[interval.end + 1]; begin < end) {
      ++counts[begin];
      --counts[end];
    }
  for (int32_t row = 0; row < rows; ++row)
    counts[row + 1] += counts[row];
  counts.pop_back();
  return counts;
}

std::vector<LiveRun> Lifetimes::toRuns(const std::vector<int64_t> &partsInRows) {
  std::vector<LiveRun> runs;
  auto rows = static_cast<int32_t>(partsInRows.size());
  for (int32_t begin = 0, end = 0; begin < rows; begin = end) {
    while (end < rows && partsInRows[end] == partsInRows[begin])
      ++end;
    if (partsInRows[begin] > 0)
      runs.push_back({begin, end, partsInRows[begin]});
  }
  return runs;
}

void Lifetimes::addIntervals(Operation *op, unsigned result, const FindSegment &find, Intervals &intervals) const {
  int64_t made = positions.lookup(op), lastForward = made, lastBackward = -1;
  SmallVector<plan::SegmentAttr> readers;
  addUses(op->getResult(result), lastForward, lastBackward, readers);
  auto getBegin = [&](const Segment &segment) {
    auto found = backwardBegin.find({segment.first.getAsOpaquePointer(), segment.second.getAsOpaquePointer()});
    return found == backwardBegin.end() ? int64_t(-1) : found->second;
  };
  Segment own = find(getSegment(op));
  int64_t again = own.first ? getBegin(own) : -1, kept = lastForward;
  // What is run again elsewhere reads it once more.
  for (plan::SegmentAttr reader : readers)
    if (Segment its = find(reader); its.first && its != own)
      kept = std::max(kept, getBegin(its));
  if (again >= 0 && lastBackward >= again && kept < again) {
    intervals.push_back({made, kept});
    intervals.push_back({again, lastBackward});
  } else {
    intervals.push_back({made, std::max(kept, lastBackward)});
  }
}

std::vector<int64_t> Lifetimes::count(unsigned group, unsigned result, const FindSegment &find) const {
  Intervals intervals;
  for (Operation *op : groups.getOperators()[group].ops)
    addIntervals(op, result, find, intervals);
  return countInRows(intervals);
}

/// Views are counted where what they are of is; what is made again for nothing is not.
static bool takesMemory(const OperatorGroup &group) {
  return llvm::none_of(group.ops, [](Operation *op) { return plan::Rerun::isView(op) || plan::Rerun::isFree(op); });
}

std::vector<LiveRun> Lifetimes::getRuns(unsigned group, unsigned result) const {
  if (!takesMemory(groups.getOperators()[group]))
    return {};
  std::vector<int64_t> parts = count(group, result, [](plan::SegmentAttr) { return Segment(); });
  std::vector<int64_t> withAll = parts;
  if (rerunParts > 0)
    withAll = count(group, result, [](plan::SegmentAttr segment) {
      return Segment(segment ? segment.getBlock() : StringAttr(), nullptr);
    });
  for (auto [row, count] : llvm::enumerate(parts))
    count = count * (kRerunParts - rerunParts) + std::min(count, withAll[row]) * rerunParts;
  return toRuns(parts);
}

std::vector<std::vector<LiveRun>> Lifetimes::getRunsByLabel(unsigned group, unsigned result,
                                                            const Reruns &reruns) const {
  const OperatorGroup &its = groups.getOperators()[group];
  if (!takesMemory(its))
    return {{}};
  std::optional<unsigned> own = reruns.getClass(its);
  std::vector<std::string> labels = {plan::kKeptLabel, plan::kBlockLabel};
  if (own)
    labels = reruns.getClasses()[*own].labels;
  std::vector<std::vector<int64_t>> counts;
  for (StringRef label : labels)
    counts.push_back(count(group, result, [&](plan::SegmentAttr segment) -> Segment {
      if (!segment || label == plan::kKeptLabel || (own && reruns.getClass(segment) != own))
        return {};
      if (label == plan::kBlockLabel)
        return {segment.getBlock(), nullptr};
      if (label == plan::kHalvesLabel || label == segment.getPart().getValue())
        return {segment.getBlock(), segment.getPart()};
      return {};
    }));
  int64_t others = own ? static_cast<int64_t>(reruns.getClasses()[*own].blocks.size()) - 1 : 0;
  for (int32_t row = 0; row < rows; ++row) {
    int64_t least = INT64_MAX;
    for (const std::vector<int64_t> &inRows : counts)
      least = std::min(least, inRows[row]);
    for (std::vector<int64_t> &inRows : counts)
      if (others > 0)
        inRows[row] = inRows[row] - least >= others ? least + others : least;
      else if (!own)
        inRows[row] = least;
  }
  if (!own)
    counts.resize(1);
  std::vector<std::vector<LiveRun>> runs;
  for (std::vector<int64_t> &inRows : counts) {
    for (int64_t &count : inRows)
      count *= kRerunParts;
    runs.push_back(toRuns(inRows));
  }
  return runs;
}

std::vector<LiveRun> Lifetimes::getReadRuns(unsigned group) const {
  Intervals intervals;
  for (train::ReadOp read : groups.getParameters()[group].reads) {
    int64_t first = INT64_MAX, last = -1;
    for (Operation *user : read->getUsers()) {
      first = std::min(first, positions.lookup(user));
      last = std::max(last, positions.lookup(user));
    }
    if (last >= 0)
      intervals.push_back({first, last});
  }
  std::vector<int64_t> parts = countInRows(intervals);
  for (int64_t &count : parts)
    count *= kRerunParts;
  return toRuns(parts);
}
