#include "Lifetimes.h"

#include "ChunkLabels.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"

#include <cmath>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

static plan::SegmentAttr getSegment(Operation *op) { return op->getAttrOfType<plan::SegmentAttr>(plan::kSegmentAttr); }

Lifetimes::Lifetimes(const Groups &groups, const RecomputeClasses &recompute, int recomputeParts, double inFlight)
    : groups(groups), recompute(recompute), recomputeParts(recomputeParts), inFlight(inFlight) {
  findRows();
}

Lifetimes Lifetimes::ofStash(const Groups &groups, const RecomputeClasses &recompute, const ChunkLabels *labels,
                             int64_t inFlight) {
  Lifetimes lifetimes(groups, recompute, /*recomputeParts=*/0, /*inFlight=*/1);
  lifetimes.hasStashOnly = true;
  lifetimes.chunkLabels = labels;
  lifetimes.firstInFlight = inFlight;
  return lifetimes;
}

bool Lifetimes::isOutside(Operation *op) const {
  return llvm::isa<train::TrainOpInterface>(op) && !groups.getRange().contains(op);
}

void Lifetimes::findRows() {
  struct Ends {
    int64_t first = INT64_MAX, last = INT64_MIN;
  };
  llvm::DenseMap<StringAttr, Ends> classes;
  llvm::DenseMap<Attribute, plan::SegmentAttr> segmentOf;
  func::FuncOp function = groups.getFunction();
  for (Operation &op : function.front()) {
    int64_t position = positions[&op] = static_cast<int64_t>(positions.size());
    if (isOutside(&op))
      continue;
    if (auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr)) {
      Ends &ends = classes[repeat.getClassName()];
      ends.first = std::min(ends.first, repeat.getIndex());
      ends.last = std::max(ends.last, repeat.getIndex());
    }
    if (plan::SegmentAttr segment = getSegment(&op))
      segmentOf[op.getAttr(train::kIdAttr)] = segment;
    Attribute forward = op.getAttr(train::kForwardAttr);
    if (!forward)
      continue;
    if (llvm::isa<train::TrainOpInterface>(op))
      turn = std::min(turn, position);
    if (auto found = segmentOf.find(forward); found != segmentOf.end()) {
      const void *block = found->second.getBlock().getAsOpaquePointer();
      backwardBegin.try_emplace({block, nullptr}, position);
      backwardBegin.try_emplace({block, found->second.getPart().getAsOpaquePointer()}, position);
    }
  }
  for (Operation &op : function.front()) {
    rowAt.push_back(rows);
    auto repeat = op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr);
    bool isInner = repeat && repeat.getIndex() != classes[repeat.getClassName()].first &&
                   repeat.getIndex() != classes[repeat.getClassName()].last;
    rows += groups.getRange().contains(&op) && !isInner;
  }
  rowAt.push_back(rows);
}

void Lifetimes::addReads(Value value, bool isStashed, Reads &reads) const {
  for (Operation *user : value.getUsers()) {
    // A returned value is the loss, or a gradient, which is added where it is made to the parameter's accumulated one.
    if (llvm::isa<func::ReturnOp>(user) || isOutside(user))
      continue;
    if (auto stash = llvm::dyn_cast<train::StashOp>(user)) {
      addReads(stash.getResult(), /*isStashed=*/true, reads);
      continue;
    }
    int64_t position = positions.lookup(user);
    int64_t &last = isStashed ? reads.lastBackward : reads.lastForward;
    reads.first = std::min(reads.first, position);
    last = std::max(last, position);
    if (plan::Recomputation::isView(user))
      addReads(user->getResult(0), isStashed, reads);
    else if (plan::SegmentAttr segment = getSegment(user); segment && !isStashed)
      reads.readers.push_back(segment);
  }
}

Lifetimes::Counts Lifetimes::countInRows(const Intervals &intervals) const {
  Counts counts(rows + 1, 0);
  int64_t stash = 0;
  for (Interval interval : intervals) {
    stash += interval.begin < turn && interval.end >= turn;
    if (int32_t begin = rowAt[interval.begin], end = rowAt[interval.end + 1]; begin < end) {
      ++counts[begin];
      --counts[end];
    }
  }
  for (int32_t row = 0; row < rows; ++row)
    counts[row + 1] += counts[row];
  counts.back() = stash;
  return counts;
}

std::vector<LiveRun> Lifetimes::toRuns(Counts counts) const {
  if (hasStashOnly)
    return counts.back() > 0 ? std::vector<LiveRun>{{0, 1, counts.back()}} : std::vector<LiveRun>();
  auto ofOthers = static_cast<int64_t>(std::ceil((inFlight - 1) * static_cast<double>(counts.back())));
  std::vector<LiveRun> runs;
  for (int32_t begin = 0, end = 0; begin < rows; begin = end) {
    while (end < rows && counts[end] == counts[begin])
      ++end;
    if (int64_t parts = counts[begin] + ofOthers; parts > 0)
      runs.push_back({begin, end, parts});
  }
  return runs;
}

void Lifetimes::addIntervals(Value value, int64_t made, const RecomputedPart &own, const FindPart &find,
                             Intervals &intervals) const {
  Reads reads;
  addReads(value, /*isStashed=*/false, reads);
  int64_t begin = made >= 0 ? made : reads.first;
  auto getBegin = [&](const RecomputedPart &segment) {
    auto found = backwardBegin.find({segment.first.getAsOpaquePointer(), segment.second.getAsOpaquePointer()});
    return found == backwardBegin.end() ? int64_t(-1) : found->second;
  };
  int64_t again = own.first ? getBegin(own) : -1, kept = std::max(begin, reads.lastForward);
  // A part that is recomputed elsewhere reads the value once more there.
  for (plan::SegmentAttr reader : reads.readers)
    if (RecomputedPart its = find(reader); its.first && its != own)
      kept = std::max(kept, getBegin(its));
  if (again >= 0 && reads.lastBackward >= again && kept < again) {
    intervals.push_back({begin, kept});
    intervals.push_back({again, reads.lastBackward});
  } else {
    intervals.push_back({begin, std::max(kept, reads.lastBackward)});
  }
}

bool Lifetimes::isOfFirst(Value value) const {
  for (Operation *user : value.getUsers()) {
    if (llvm::isa<train::StashOp>(user) || plan::Recomputation::isView(user)) {
      if (!isOfFirst(user->getResult(0)))
        return false;
    } else if (!llvm::isa<func::ReturnOp>(user) && chunkLabels->find(user) != int64_t(0)) {
      return false;
    }
  }
  return true;
}

Lifetimes::Counts Lifetimes::count(unsigned group, unsigned result, const FindPart &find, bool countsFirst) const {
  Intervals intervals;
  for (Operation *op : groups.getOperators()[group].ops)
    if (!countsFirst || (chunkLabels->find(op) == int64_t(0) && isOfFirst(op->getResult(result))))
      addIntervals(op->getResult(result), positions.lookup(op), find(getSegment(op)), find, intervals);
  return countInRows(intervals);
}

Lifetimes::Counts Lifetimes::countBorder(Value value, const FindPart &find) const {
  Intervals intervals;
  addIntervals(value, /*made=*/-1, RecomputedPart(), find, intervals);
  return countInRows(intervals);
}

/// Whether the group's values take memory of their own. Views are counted with the value that they show; what is free
/// to recompute is not counted.
static bool takesMemory(const OperatorGroup &group) {
  return llvm::none_of(
      group.ops, [](Operation *op) { return plan::Recomputation::isView(op) || plan::Recomputation::isFree(op); });
}

/// The same for a value of the border: a view of a value behind the border arrives as a tensor.
static bool takesMemory(Value border) { return !plan::Recomputation::isFree(border.getDefiningOp()); }

std::vector<LiveRun> Lifetimes::makeRuns(const CountValues &countValues) const {
  Counts parts = countValues([](plan::SegmentAttr) { return RecomputedPart(); }), withAll = parts;
  if (recomputeParts > 0)
    withAll = countValues([&](plan::SegmentAttr segment) {
      return RecomputedPart(recompute.getClass(segment) ? segment.getBlock() : StringAttr(), nullptr);
    });
  for (auto [row, count] : llvm::enumerate(parts))
    count = count * (kRecomputeParts - recomputeParts) + std::min(count, withAll[row]) * recomputeParts;
  return toRuns(std::move(parts));
}

std::vector<LiveRun> Lifetimes::getRuns(unsigned group, unsigned result) const {
  if (!takesMemory(groups.getOperators()[group]))
    return {};
  std::vector<LiveRun> runs = makeRuns([&](const FindPart &find) { return count(group, result, find); });
  if (hasFirst())
    llvm::append_range(runs, getRunsOfFirst(group, result).front());
  return runs;
}

std::vector<LiveRun> Lifetimes::getBorderRuns(Value value) const {
  if (!takesMemory(value))
    return {};
  return makeRuns([&](const FindPart &find) { return countBorder(value, find); });
}

std::vector<Lifetimes::Counts> Lifetimes::countByLabel(const CountValues &countValues, std::optional<unsigned> own,
                                                       int64_t others) const {
  std::vector<std::string> labels = {plan::kKeptLabel, plan::kBlockLabel};
  if (own)
    labels = recompute.getClasses()[*own].labels;
  std::vector<Counts> counts;
  for (StringRef label : labels)
    counts.push_back(countValues([&](plan::SegmentAttr segment) -> RecomputedPart {
      std::optional<unsigned> its = recompute.getClass(segment);
      if (!its || label == plan::kKeptLabel || (own && its != own))
        return {};
      if (label == plan::kBlockLabel)
        return {segment.getBlock(), nullptr};
      if (label == plan::kHalvesLabel || label == segment.getPart().getValue())
        return {segment.getBlock(), segment.getPart()};
      return {};
    }));
  for (size_t row = 0; row < counts.front().size(); ++row) {
    int64_t least = INT64_MAX;
    for (const Counts &each : counts)
      least = std::min(least, each[row]);
    for (Counts &each : counts)
      if (others > 0)
        each[row] = each[row] - least >= others ? least + others : least;
      else if (!own || others < 0)
        each[row] = least;
  }
  if (!own || others < 0)
    counts.resize(1);
  return counts;
}

std::vector<std::vector<LiveRun>> Lifetimes::makeRunsByLabel(const CountValues &countValues,
                                                             std::optional<unsigned> own) const {
  int64_t others = own ? static_cast<int64_t>(recompute.getClasses()[*own].blocks.size()) - 1 : 0;
  std::vector<std::vector<LiveRun>> runs;
  for (Counts &each : countByLabel(countValues, own, others)) {
    for (int64_t &count : each)
      count *= kRecomputeParts;
    runs.push_back(toRuns(std::move(each)));
  }
  return runs;
}

std::vector<std::vector<LiveRun>> Lifetimes::getRunsByLabel(unsigned group, unsigned result) const {
  const OperatorGroup &its = groups.getOperators()[group];
  if (!takesMemory(its))
    return {{}};
  return makeRunsByLabel([&](const FindPart &find) { return count(group, result, find); }, recompute.getClass(its));
}

int64_t Lifetimes::countOnFirst(unsigned group) const { return chunkLabels->countOperators(group).front(); }

int64_t Lifetimes::countParametersOnFirst(unsigned group) const { return chunkLabels->countParameters(group).front(); }

int64_t Lifetimes::countFirstBlocks(unsigned recomputeClass) const {
  const RecomputeClass &its = recompute.getClasses()[recomputeClass];
  auto blocks = static_cast<int64_t>(its.blocks.size());
  for (auto &[group, counts] : its.counts)
    blocks = std::min(blocks, countOnFirst(group));
  return blocks;
}

std::vector<std::vector<LiveRun>> Lifetimes::getRunsOfFirst(unsigned group, unsigned result) const {
  const OperatorGroup &its = groups.getOperators()[group];
  if (!takesMemory(its))
    return {{}};
  std::optional<unsigned> own = recompute.getClass(its);
  int64_t blocks = own ? countFirstBlocks(*own) : 0;
  std::vector<std::vector<LiveRun>> runs;
  auto countOfFirst = [&](const FindPart &find) { return count(group, result, find, /*countsFirst=*/true); };
  for (const Counts &counts : countByLabel(countOfFirst, own, blocks > 1 ? blocks - 1 : -1)) {
    std::vector<LiveRun> &runsOfLabel = runs.emplace_back();
    if (int64_t parts = counts.back() * firstInFlight * kRecomputeParts; parts > 0)
      runsOfLabel.push_back({1, 2, parts});
  }
  return runs;
}

std::vector<std::vector<LiveRun>> Lifetimes::getBorderRunsByLabel(Value value) const {
  if (!takesMemory(value))
    return {{}};
  return makeRunsByLabel([&](const FindPart &find) { return countBorder(value, find); }, std::nullopt);
}

std::vector<LiveRun> Lifetimes::getReadRuns(unsigned group) const {
  Intervals intervals;
  for (train::ReadOp read : groups.getParameters()[group].reads) {
    int64_t first = INT64_MAX, last = -1;
    for (Operation *user : read->getUsers()) {
      if (isOutside(user))
        continue;
      first = std::min(first, positions.lookup(user));
      last = std::max(last, positions.lookup(user));
    }
    if (last >= 0)
      intervals.push_back({first, last});
  }
  Counts counts = countInRows(intervals);
  for (int64_t &count : counts)
    count *= kRecomputeParts;
  // A gathered copy belongs to no micro-batch.
  counts.back() = 0;
  return toRuns(std::move(counts));
}
