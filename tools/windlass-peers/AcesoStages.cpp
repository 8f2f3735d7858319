#include "AcesoStages.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace windlass;
using namespace windlass::peers;

static constexpr double kNever = std::numeric_limits<double>::infinity();

/// What mixed ways are looked for with: as much as recomputation costs, and down to the weights' part in a pipeline of
/// many stages, where activations are kept many times.
static constexpr double kPrices[] = {1, 3, 10}, kWeightShares[] = {1, 1.0 / 2, 1.0 / 4, 1.0 / 8};

/// Chooses among ways for each operator, so that the time of the model and the price of its memory are least: `price`
/// is in microseconds per MB that is kept, and each MB that the weights take counts as part of one, `weightShare`.
/// Returns nothing where some operator was measured in none of the ways.
static std::optional<Style> chooseWays(const AcesoCase &problem, int64_t microBatch, llvm::ArrayRef<AcesoWay> ways,
                                       double price = 0, double weightShare = 0) {
  size_t count = problem.order.size();
  std::vector<std::vector<double>> least(count, std::vector<double>(ways.size(), kNever));
  std::vector<std::vector<size_t>> from(count, std::vector<size_t>(ways.size()));
  for (size_t i = 0; i < count; ++i) {
    for (size_t to = 0; to < ways.size(); ++to) {
      const AcesoRow *row = problem.find(problem.order[i], microBatch, ways[to]);
      if (!row)
        continue;
      for (size_t way = 0; i > 0 && way < ways.size(); ++way) {
        double time = least[i - 1][way] +
                      problem.getReshard(problem.order[i - 1], ways[way], problem.order[i], ways[to], row->input);
        if (time < least[i][to]) {
          least[i][to] = time;
          from[i][to] = way;
        }
      }
      double memory =
          row->activations * problem.getKeptShare(problem.order[i]) + weightShare * problem.copies * row->weights;
      least[i][to] = (i > 0 ? least[i][to] : 0) + row->forward + row->backward + price * memory;
    }
  }
  size_t way = llvm::min_element(least.back()) - least.back().begin();
  if (!(least.back()[way] < kNever))
    return std::nullopt;
  Style style = {ways.front().tensor * ways.front().data, std::vector<StyledOp>(count)};
  for (size_t i = count; i-- > 0;) {
    size_t name = problem.order[i], before = from[i][way];
    const AcesoRow &row = *problem.find(name, microBatch, ways[way]);
    double reshard = i > 0 ? problem.getReshard(problem.order[i - 1], ways[before], name, ways[way], row.input) : 0;
    style.ops[i] = {ways[way],
                    row.forward + row.backward,
                    row.forward,
                    reshard,
                    row.input,
                    row.weights,
                    row.activations * problem.getKeptShare(name),
                    row.forwardReserved,
                    row.backwardReserved,
                    {problem.getTransfer(row.input, false), problem.getTransfer(row.input, true)},
                    {problem.getTransfer(row.output, false), problem.getTransfer(row.output, true)},
                    problem.beginsLayer(name)};
    way = before;
  }
  return style;
}

static bool isSame(const StyledOp &a, const StyledOp &b) { return a.way == b.way && a.reshard == b.reshard; }

/// Returns whether a stage in one style never takes more time or memory than in the other.
static bool isAsGood(const Style &style, const Style &other) {
  return std::equal(style.ops.begin(), style.ops.end(), other.ops.begin(), [](const StyledOp &a, const StyledOp &b) {
    return a.time <= b.time && a.forward <= b.forward && a.reshard <= b.reshard && a.input <= b.input &&
           a.weights <= b.weights && a.kept <= b.kept && a.forwardReserved <= b.forwardReserved &&
           a.backwardReserved <= b.backwardReserved && a.enter <= b.enter && a.leave <= b.leave;
  });
}

std::vector<Style> peers::listStyles(const AcesoCase &problem, int64_t microBatch, int64_t gpus) {
  std::vector<Style> styles;
  auto add = [&](llvm::ArrayRef<AcesoWay> ways, double price = 0, double weightShare = 0) {
    std::optional<Style> style = chooseWays(problem, microBatch, ways, price, weightShare);
    if (!style || llvm::any_of(styles, [&](const Style &other) { return isAsGood(other, *style); }))
      return;
    llvm::erase_if(styles, [&](const Style &other) { return isAsGood(*style, other); });
    styles.push_back(std::move(*style));
  };
  std::vector<AcesoWay> all;
  for (int64_t tensor = 1; tensor <= std::min(gpus, problem.mostTensor); tensor *= 2) {
    std::vector<AcesoWay> ways;
    for (int64_t algorithm = 0; algorithm < problem.algorithms; ++algorithm) {
      ways.push_back({tensor, gpus / tensor, algorithm});
      add(ways.back());
    }
    add(ways);
    all.insert(all.end(), ways.begin(), ways.end());
  }
  add(all);
  // Mixed ways pay where memory is short, and changes of layout cost little.
  for (double price : kPrices)
    for (double weightShare : kWeightShares)
      add(all, price, weightShare);
  return styles;
}

StageTable::StageTable(const AcesoCase &problem, const std::vector<Style> &styles, const std::vector<double> &work,
                       double mostTime)
    : problem(problem), styles(styles), work(work), mostTime(mostTime), count(problem.order.size()),
      mostAfter(problem.gpus - styles.front().gpus + 1), gpus(styles.front().gpus) {
  classifyOps();
  nodeAt.assign((count + 1) * (count + 1), -1);
  lastEnds.assign(count, 0);
  for (const Style &style : styles) {
    bounds.emplace_back(style, problem.limit);
    sums.emplace_back(count + 1);
  }
  std::vector<size_t> ends;
  for (size_t end = 1; end <= count; ++end)
    ends.push_back(end);
  grow(1, ends);
  bounds.clear();
  sums.clear();
}

void StageTable::classifyOps() {
  std::vector<size_t> firsts;
  for (size_t i = 0; i < count; ++i) {
    auto found = llvm::find_if(firsts, [&](size_t first) {
      return problem.order[first] == problem.order[i] &&
             llvm::all_of(styles, [&](const Style &style) { return isSame(style.ops[first], style.ops[i]); });
    });
    classes.push_back(found - firsts.begin());
    if (found == firsts.end())
      firsts.push_back(i);
  }
}

/// Adds all stages of at least `length` operators that end at one of `ends`; these are alike in their last operators,
/// one less than `length`.
void StageTable::grow(size_t length, const std::vector<size_t> &ends) {
  std::map<size_t, std::vector<size_t>> groups;
  for (size_t end : ends)
    if (end >= length)
      groups[classes[end - length]].push_back(end);
  for (const auto &[_, group] : groups) {
    boundedLength = std::min(boundedLength, length - 1);
    if (!isSmall(group.front() - length, group.front()))
      continue;
    if (llvm::any_of(group, [&](size_t end) { return isPlaceable(end - length, end); }))
      addNode(length, group);
    grow(length + 1, group);
  }
}

/// Returns whether a stage takes neither too much time nor too much memory without recomputation in some style; no
/// longer one does where it does not. Sets what the stage has.
bool StageTable::isSmall(size_t begin, size_t end) {
  bool result = false;
  for (size_t s = 0; s < styles.size(); ++s) {
    StageSums &own = sums[s][end - begin];
    own = sums[s][end - begin - 1];
    own.prepend(styles[s], begin, end);
    result |= own.time <= mostTime && own.getUnavoidable(problem) <= problem.limit;
  }
  return result;
}

/// Returns whether the other GPUs can do what is before a stage and what is behind it.
bool StageTable::isPlaceable(size_t begin, size_t end) const {
  double slack = mostTime * (1 + 1e-9);
  return std::ceil(work[begin] / slack) + std::ceil((work.back() - work[end]) / slack) <=
         static_cast<double>(problem.gpus - gpus);
}

/// Adds the stages of a length with each of these ends, which are alike.
void StageTable::addNode(size_t length, const std::vector<size_t> &ends) {
  size_t end = ends.front(), begin = end - length;
  auto node = static_cast<int32_t>(nodes.size());
  nodes.push_back({begin, end});
  for (size_t each : ends) {
    nodeAt[(each - length) * (count + 1) + each] = node;
    lastEnds[each - length] = std::max(lastEnds[each - length], each);
  }
  while (boundedLength < length) {
    ++boundedLength;
    for (RecomputationBounds &each : bounds)
      each.prepend(end - boundedLength, end);
  }
  for (size_t s = 0; s < styles.size(); ++s)
    baseTimes.push_back(sums[s][length].time);
  for (size_t after = 0; after < mostAfter; ++after) {
    for (size_t s = 0; s < styles.size(); ++s) {
      auto stagesAfter = static_cast<int64_t>(after);
      double excess = sums[s][length].getExcess(problem, stagesAfter);
      recomputed.push_back(bounds[s].getBound(begin, excess, stagesAfter));
      isExact.push_back(excess <= 0 || recomputed.back() == kNever);
    }
    for (int sides = 0; sides < kSides; ++sides) {
      times.push_back(0);
      findBest(node, static_cast<int64_t>(after), sides, times.back());
    }
  }
}

size_t StageTable::findBest(int32_t node, int64_t stagesAfter, int sides, double &time) const {
  size_t best = 0;
  time = kNever;
  for (size_t s = 0; s < styles.size(); ++s) {
    double each = recomputed[getEntry(node, stagesAfter) * styles.size() + s];
    if (each == kNever)
      continue;
    const std::vector<StyledOp> &ops = styles[s].ops;
    each += baseTimes[node * styles.size() + s] + ops[nodes[node].begin].enter[sides & 1] +
            ops[nodes[node].end - 1].leave[sides >> 1];
    if (each < time) {
      time = each;
      best = s;
    }
  }
  return best;
}

bool StageTable::makeExact(int32_t node, int64_t stagesAfter, int sides) {
  size_t entry = getEntry(node, stagesAfter);
  double before = times[entry * kSides + sides], time = 0;
  bool wasExact = true;
  for (;;) {
    size_t best = findBest(node, stagesAfter, sides, time), index = entry * styles.size() + best;
    if (time == kNever || isExact[index])
      break;
    wasExact = false;
    const auto &[begin, end] = nodes[node];
    double excess = StageSums(styles[best], begin, end).getExcess(problem, stagesAfter);
    Recomputation found = findRecomputation(styles[best], begin, end, excess, stagesAfter);
    recomputed[index] = found.cost;
    isExact[index] = true;
    for (Run &run : found.runs)
      runs[index].push_back({run.begin - begin, run.end - begin});
  }
  for (int each = 0; each < kSides; ++each)
    findBest(node, stagesAfter, each, times[entry * kSides + each]);
  return wasExact && before == time;
}

std::pair<const Style *, std::vector<Run>> StageTable::getChoice(int32_t node, int64_t stagesAfter, int sides) const {
  double time;
  size_t best = findBest(node, stagesAfter, sides, time);
  auto found = runs.find(getEntry(node, stagesAfter) * styles.size() + best);
  return {&styles[best], found == runs.end() ? std::vector<Run>() : found->second};
}
