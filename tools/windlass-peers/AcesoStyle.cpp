#include "AcesoStyle.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace windlass;
using namespace windlass::peers;

static constexpr double kNever = std::numeric_limits<double>::infinity();
/// Runs of more operators are not looked for: their peak takes more memory than they save.
static constexpr size_t kLongestRun = 24;
static constexpr size_t kPrices = 12, kClasses = 4;
/// A price in microseconds per MB at which everything is saved that can be.
static constexpr double kAnyPrice = 1e15;
/// A stage of n operators goes through at most kEntryOps / n entries of a list and kPeakOps / n limits of the peak, but
/// at least kLeastEntries and kLeastPeaks; those that promise least are left out. Long stages need fewer, because they
/// can save memory in more ways.
static constexpr size_t kEntryOps = 6'000, kLeastEntries = 16, kPeakOps = 1'500, kLeastPeaks = 8;
/// The part of a stage's time that its recomputation may take more than the least.
static constexpr double kTolerance = 1e-4;

void StageSums::prepend(const Style &style, size_t first, size_t end) {
  const StyledOp &op = style.ops[first];
  time += op.time;
  weights += op.weights;
  kept += op.kept;
  input = op.input;
  if (first + 1 == end)
    return;
  // The last operator of a stage counts for nothing that is reserved.
  mostForward = std::max(mostForward, op.forwardReserved);
  mostBackward = std::max(mostBackward, op.backwardReserved);
  time += style.ops[first + 1].reshard;
}

double StageSums::getUnavoidable(const AcesoCase &problem) const {
  return problem.copies * weights + std::max(mostForward + mostBackward, weights);
}

double StageSums::getExcess(const AcesoCase &problem, int64_t stagesAfter) const {
  return getUnavoidable(problem) + (input + kept) * static_cast<double>(stagesAfter + 1) - problem.limit;
}

/// Calls a function with the end, forward time, saving and peak of each run that begins at `first`, and with the
/// operator where the next run may begin. Runs that are followed by another layer come twice: where that layer begins
/// with a run too, the peak is larger.
template <typename Function>
static void forEachRun(const Style &style, size_t first, size_t end, double mostPeak, Function &&function) {
  double time = style.ops[first].forward, saved = 0;
  for (size_t last = first + 1; last < std::min(end, first + kLongestRun) && !style.ops[last].beginsLayer; ++last) {
    time += style.ops[last].forward;
    saved += style.ops[last - 1].kept;
    if (saved > mostPeak)
      return;
    if (last + 1 < end && style.ops[last + 1].beginsLayer && saved + style.ops[last].kept <= mostPeak)
      function(last + 1, time, saved, saved + style.ops[last].kept, last + 1);
    function(last + 1, time, saved, saved, std::min(last + 2, end));
  }
}

/// Returns the peaks that runs of [begin, end) can have, ascending.
static std::vector<double> listPeaks(const Style &style, size_t begin, size_t end, double most) {
  std::vector<double> peaks;
  for (size_t first = begin; first < end; ++first)
    forEachRun(style, first, end, most, [&](size_t, double, double, double peak, size_t) { peaks.push_back(peak); });
  llvm::sort(peaks);
  peaks.erase(std::unique(peaks.begin(), peaks.end()), peaks.end());
  return peaks;
}

/// Returns prices of a MB between those that make the cheapest and the most expensive recomputation pay.
static std::vector<double> listPrices(const Style &style, size_t begin, size_t end) {
  double least = kNever, most = 0;
  for (size_t last = begin + 1; last < end; ++last) {
    double kept = style.ops[last - 1].kept;
    if (kept <= 0 || style.ops[last].beginsLayer)
      continue;
    least = std::min(least, style.ops[last].forward / kept);
    most = std::max(most, (style.ops[last - 1].forward + style.ops[last].forward) / kept);
  }
  if (!(least < kNever))
    return {0};
  least = std::max(least, most * 1e-6);
  std::vector<double> prices;
  for (size_t i = 0; i < kPrices && most > 0; ++i)
    prices.push_back(least * std::pow(1.01 * most / least, static_cast<double>(i) / (kPrices - 1)));
  return prices;
}

namespace {

/// Finds the cheapest recomputation of one stage.
class Recomputer {
public:
  Recomputer(const Style &style, size_t begin, size_t end, double excess, int64_t stagesAfter)
      : style(style), begin(begin), end(end), excess(excess), inFlight(static_cast<double>(stagesAfter + 1)) {
    for (size_t i = begin; i < end; ++i)
      tolerance += kTolerance * style.ops[i].time;
  }

  Recomputation find();

private:
  /// The best choice at one price: its cost less the price of what it saves, and both alone.
  struct Choice {
    double value, cost, saved;
    size_t runEnd, next; // runEnd is 0 where no run begins here
  };
  /// A choice for the operators from one on; `from` is an entry of the list at `next`.
  struct Entry {
    double cost, saved;
    uint32_t runEnd, next, from;
  };
  struct Candidate {
    double bound, peak, price;
  };

  double getNeed(double peak) const { return (excess + peak) / inFlight; }
  void choose(double price, double peak);
  Candidate bound(double peak);
  void keepChoice(double need);
  void findBetter(const Candidate &candidate);
  std::vector<double> priceFront(double price, double peak) const;
  void keepBest(std::vector<Entry> &list, double price) const;

  const Style &style;
  size_t begin, end;
  double excess, inFlight, tolerance = 0;
  std::vector<double> prices;
  std::vector<Choice> choices;
  Recomputation best = {kNever, {}};
};

} // namespace

/// Fills `choices` from the end of the stage.
void Recomputer::choose(double price, double peak) {
  choices.assign(end - begin + 1, Choice{0, 0, 0, 0, end});
  for (size_t first = end; first-- > begin;) {
    Choice &choice = choices[first - begin];
    choice = choices[first + 1 - begin];
    choice.runEnd = 0;
    choice.next = first + 1;
    forEachRun(style, first, end, peak, [&](size_t runEnd, double time, double saved, double, size_t next) {
      const Choice &rest = choices[next - begin];
      if (double value = time - price * saved + rest.value; value < choice.value)
        choice = {value, time + rest.cost, saved + rest.saved, runEnd, next};
    });
  }
}

/// Returns a bound on what is recomputed with runs of at most that peak, and keeps what fits and costs less than the
/// best so far.
Recomputer::Candidate Recomputer::bound(double peak) {
  double need = getNeed(peak);
  Candidate result = {0, peak, prices.front()};
  // The bound rises with the price up to where more is saved than needed.
  for (size_t low = 0, high = prices.size(); low < high;) {
    size_t middle = (low + high) / 2;
    choose(prices[middle], peak);
    const Choice &all = choices.front();
    if (double value = all.value + prices[middle] * need; value > result.bound)
      result = {value, peak, prices[middle]};
    if (all.saved >= need)
      high = middle;
    else
      low = middle + 1;
    keepChoice(need);
  }
  // Even the highest price may save too little, where an operator costs much.
  choose(kAnyPrice, peak);
  keepChoice(need);
  if (choices.front().saved < need)
    result.bound = kNever;
  return result;
}

void Recomputer::keepChoice(double need) {
  const Choice &all = choices.front();
  if (all.saved < need || all.cost >= best.cost)
    return;
  best = {all.cost, {}};
  for (size_t at = begin; at < end; at = choices[at - begin].next)
    if (choices[at - begin].runEnd)
      best.runs.push_back({at, choices[at - begin].runEnd});
}

/// Returns, for each operator, the least cost less the price of what is saved by the operators before it.
std::vector<double> Recomputer::priceFront(double price, double peak) const {
  std::vector<double> front(end - begin + 1, kNever);
  front[0] = 0;
  for (size_t first = begin; first < end; ++first) {
    double value = front[first - begin];
    front[first + 1 - begin] = std::min(front[first + 1 - begin], value);
    forEachRun(style, first, end, peak, [&](size_t, double time, double saved, double, size_t next) {
      front[next - begin] = std::min(front[next - begin], value + time - price * saved);
    });
  }
  return front;
}

/// Keeps the entries of a list that no other one beats in both cost and saving, ascending.
void Recomputer::keepBest(std::vector<Entry> &list, double price) const {
  llvm::sort(list,
             [](const Entry &a, const Entry &b) { return a.cost != b.cost ? a.cost < b.cost : a.saved > b.saved; });
  size_t count = 0;
  for (const Entry &entry : list)
    if (count == 0 || entry.saved > list[count - 1].saved)
      list[count++] = entry;
  list.resize(count);
  size_t most = std::max(kLeastEntries, kEntryOps / (end - begin));
  if (count <= most)
    return;
  std::nth_element(list.begin(), list.begin() + most, list.end(),
                   [&](const Entry &a, const Entry &b) { return a.cost - price * a.saved < b.cost - price * b.saved; });
  list.resize(most);
}

/// Looks for a cheaper recomputation than the best so far among those with runs of at most a peak.
void Recomputer::findBetter(const Candidate &candidate) {
  double need = getNeed(candidate.peak), price = candidate.price;
  std::vector<double> front = priceFront(price, candidate.peak);
  std::vector<std::vector<Entry>> lists(end - begin + 1);
  lists.back().push_back({0, 0, 0, 0, 0});
  for (size_t first = end; first-- > begin;) {
    std::vector<Entry> &list = lists[first - begin];
    double most = best.cost - tolerance - front[first - begin] - price * need;
    auto extend = [&](size_t runEnd, double time, double saved, size_t next) {
      for (auto [index, entry] : llvm::enumerate(lists[next - begin])) {
        double allSaved = std::min(entry.saved + saved, need);
        if (double cost = entry.cost + time; cost - price * allSaved < most)
          list.push_back({cost, allSaved, static_cast<uint32_t>(runEnd), static_cast<uint32_t>(next),
                          static_cast<uint32_t>(index)});
      }
    };
    extend(0, 0, 0, first + 1);
    forEachRun(style, first, end, candidate.peak, [&](size_t runEnd, double time, double saved, double, size_t next) {
      extend(runEnd, time, saved, next);
    });
    keepBest(list, price);
  }
  const Entry *found = nullptr;
  for (const Entry &entry : lists.front())
    if (entry.saved >= need && entry.cost < best.cost && (!found || entry.cost < found->cost))
      found = &entry;
  if (!found)
    return;
  best = {found->cost, {}};
  for (size_t at = begin; at < end;) {
    if (found->runEnd)
      best.runs.push_back({at, found->runEnd});
    at = found->next;
    found = &lists[at - begin][found->from];
  }
}

Recomputation Recomputer::find() {
  prices = listPrices(style, begin, end);
  std::vector<Candidate> candidates;
  for (double peak : listPeaks(style, begin, end, kNever))
    candidates.push_back(bound(peak));
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) { return a.bound < b.bound; });
  if (size_t most = std::max(kLeastPeaks, kPeakOps / (end - begin)); candidates.size() > most)
    candidates.resize(most);
  for (const Candidate &candidate : candidates)
    if (candidate.bound < best.cost - tolerance)
      findBetter(candidate);
  return best;
}

Recomputation peers::findRecomputation(const Style &style, size_t begin, size_t end, double excess,
                                       int64_t stagesAfter) {
  if (excess <= 0)
    return {0, {}};
  return Recomputer(style, begin, end, excess, stagesAfter).find();
}

double peers::getRelief(const Style &style, size_t begin, llvm::ArrayRef<Run> runs, int64_t stagesAfter) {
  double saved = 0, peak = 0;
  for (auto [index, run] : llvm::enumerate(runs)) {
    double own = 0;
    for (size_t i = run.begin; i + 1 < run.end; ++i)
      own += style.ops[begin + i].kept;
    saved += own;
    bool isFollowed = index + 1 < runs.size() && runs[index + 1].begin == run.end;
    peak = std::max(peak, own + (isFollowed ? style.ops[begin + run.end - 1].kept : 0));
  }
  return saved * static_cast<double>(stagesAfter + 1) - peak;
}

RecomputationBounds::RecomputationBounds(const Style &style, double limit)
    : style(style), prices(listPrices(style, 0, style.ops.size())) {
  std::vector<double> peaks = listPeaks(style, 0, style.ops.size(), limit);
  for (size_t i = 0; i < kClasses && !peaks.empty(); ++i) {
    // Classes have about as many peaks each; the last one has no limit.
    size_t from = i * peaks.size() / kClasses, to = (i + 1) * peaks.size() / kClasses;
    if (from == to)
      continue;
    leastPeak.push_back(peaks[from]);
    mostPeak.push_back(peaks[to - 1]);
  }
  width = mostPeak.size() * (prices.size() + 1);
  rows.resize((style.ops.size() + 1) * width);
}

void RecomputationBounds::prepend(size_t first, size_t newEnd) {
  end = newEnd;
  double *row = getRow(first);
  std::copy_n(getRow(first + 1), width, row);
  if (mostPeak.empty())
    return;
  size_t stride = prices.size() + 1;
  forEachRun(style, first, end, mostPeak.back(), [&](size_t, double time, double saved, double peak, size_t next) {
    const double *rest = getRow(next);
    for (size_t c = llvm::lower_bound(mostPeak, peak) - mostPeak.begin(); c < mostPeak.size(); ++c) {
      double *to = row + c * stride;
      const double *from = rest + c * stride;
      for (size_t p = 0; p < prices.size(); ++p)
        to[p] = std::min(to[p], time - prices[p] * saved + from[p]);
      to[prices.size()] = std::min(to[prices.size()], from[prices.size()] - saved);
    }
  });
}

double RecomputationBounds::getBound(size_t first, double excess, int64_t stagesAfter) const {
  if (excess <= 0)
    return 0;
  double best = kNever;
  const double *row = getRow(first);
  for (size_t c = 0; c < mostPeak.size(); ++c, row += prices.size() + 1) {
    double need = (excess + leastPeak[c]) / static_cast<double>(stagesAfter + 1), bound = 0;
    if (-row[prices.size()] < need * (1 - 1e-12))
      continue;
    for (size_t p = 0; p < prices.size(); ++p)
      bound = std::max(bound, row[p] + prices[p] * need);
    best = std::min(best, bound);
  }
  return best;
}
