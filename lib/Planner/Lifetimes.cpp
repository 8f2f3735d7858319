#include "Lifetimes.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

static StringAttr getBlock(Operation *op) {
  auto segment = op->getAttrOfType<plan::SegmentAttr>(plan::kSegmentAttr);
  return segment ? segment.getBlock() : nullptr;
}

Lifetimes::Lifetimes(const Groups &groups, int rerunParts) : groups(groups), rerunParts(rerunParts) { findRows(); }

void Lifetimes::findRows() {
  struct Ends {
    int64_t first = INT64_MAX, last = INT64_MIN;
  };
  llvm::DenseMap<StringAttr, Ends> classes;
  llvm::DenseMap<Attribute, StringAttr> blockOf;
  func::FuncOp function = groups.getFunction();
  for (Operation &op : function.front()) {
    positions[&op] = static_cast<int64_t>(positions.size());
    if (auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr)) {
      Ends &ends = classes[repeat.getClassName()];
      ends.first = std::min(ends.first, repeat.getIndex());
      ends.last = std::max(ends.last, repeat.getIndex());
    }
    if (StringAttr block = getBlock(&op))
      blockOf[op.getAttr(train::kIdAttr)] = block;
    if (Attribute forward = op.getAttr(train::kForwardAttr))
      if (auto found = blockOf.find(forward); found != blockOf.end())
        backwardBegin.try_emplace(found->second, positions[&op]);
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

/// Where a value or a view of it is read last, and the blocks of the forward pass that read it.
void Lifetimes::addUses(Value value, int64_t &lastForward, int64_t &lastBackward,
                        SmallVectorImpl<StringAttr> &blocks) const {
  for (Operation *user : value.getUsers()) {
    // What is returned is a gradient, added where it is made to the parameter's accumulated one, or the loss.
    if (llvm::isa<func::ReturnOp>(user))
      continue;
    if (auto stash = llvm::dyn_cast<train::StashOp>(user)) {
      SmallVector<StringAttr> none;
      addUses(stash.getResult(), lastBackward, lastBackward, none);
      continue;
    }
    lastForward = std::max(lastForward, positions.lookup(user));
    if (plan::Rerun::isView(user))
      addUses(user->getResult(0), lastForward, lastBackward, blocks);
    else if (StringAttr block = getBlock(user))
      blocks.push_back(block);
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

void Lifetimes::addIntervals(Operation *op, unsigned result, bool rerunsBlocks, Intervals &intervals) const {
  int64_t made = positions.lookup(op), lastForward = made, lastBackward = -1;
  SmallVector<StringAttr> readers;
  addUses(op->getResult(result), lastForward, lastBackward, readers);
  StringAttr own = getBlock(op);
  int64_t last = std::max(lastForward, lastBackward);
  auto begin = own ? backwardBegin.find(own) : backwardBegin.end();
  if (!rerunsBlocks || !own || begin == backwardBegin.end()) {
    if (rerunsBlocks)
      for (StringAttr reader : readers)
        if (auto found = backwardBegin.find(reader); found != backwardBegin.end())
          last = std::max(last, found->second);
    intervals.push_back({made, last});
    return;
  }
  int64_t kept = lastForward;
  for (StringAttr reader : readers)
    if (auto found = backwardBegin.find(reader); reader != own && found != backwardBegin.end())
      kept = std::max(kept, found->second);
  if (lastBackward >= begin->second && kept < begin->second) {
    intervals.push_back({made, kept});
    intervals.push_back({begin->second, lastBackward});
  } else {
    intervals.push_back({made, std::max(kept, lastBackward)});
  }
}

std::vector<LiveRun> Lifetimes::getRuns(unsigned group, unsigned result) const {
  Intervals kept, rerun;
  for (Operation *op : groups.getOperators()[group].ops) {
    if (plan::Rerun::isView(op) || plan::Rerun::isFree(op))
      return {};
    addIntervals(op, result, /*rerunsBlocks=*/false, kept);
    if (rerunParts > 0)
      addIntervals(op, result, /*rerunsBlocks=*/true, rerun);
  }
  std::vector<int64_t> parts = countInRows(kept), withAll = rerunParts > 0 ? countInRows(rerun) : parts;
  for (auto [row, count] : llvm::enumerate(parts))
    count = count * (kRerunParts - rerunParts) + std::min(count, withAll[row]) * rerunParts;
  return toRuns(parts);
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
