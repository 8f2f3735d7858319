// Piper's problem: the stages of a pipeline whose slowest stage takes the least time.
#include "Peers.h"
#include "PiperGraph.h"
#include "PiperStages.h"

#include "llvm/ADT/STLExtras.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

using namespace windlass;
using namespace windlass::peers;

/// The share of the time below which differences do not matter.
static constexpr double kPrecision = 1e-10;
/// The factor from one time that is tried to the next, as long as there is no solution.
static constexpr double kGrowth = 1.1;

namespace {

/// Stages from the end of the model to a prefix: how many devices they take, and the sum of their replicas, which is
/// the number of micro-batches in flight there. Of two with the same prefix, one with less of both is as good.
struct Suffix {
  int64_t devices, replicas;
  /// The first of the stages, and which suffix of its end it stands before.
  StageShape first;
  size_t rest;
};

struct Stage {
  StageShape shape;
  int64_t inFlight;
};

class PiperSearch {
public:
  PiperSearch(const PiperGraph &graph, const PiperQuestion &question)
      : graph(graph), question(question), stages(graph, question) {
    for (int64_t replicas = 1; replicas <= question.microBatches; ++replicas)
      if (question.microBatches % replicas == 0)
        divisors.push_back(replicas);
    for (uint32_t end = 0; end < graph.prefixes.size(); ++end) {
      starts.emplace_back();
      for (uint32_t begin = 0; begin < end; ++begin)
        if (graph.prefixes[begin].count() < graph.prefixes[end].count() &&
            !graph.prefixes[begin].test(graph.prefixes[end]))
          starts.back().push_back(begin);
    }
  }

  /// Returns the best stages, in order; none where no stages fit into the memory.
  std::vector<Stage> run();
  llvm::json::Value print(llvm::ArrayRef<Stage> best) const;

private:
  /// Returns stages of which none takes longer than `limit` seconds; none where there are none.
  std::vector<Stage> findWithin(double limit);
  /// Puts a stage before each suffix that begins at the prefix `end`.
  void extend(uint32_t begin, uint32_t end, double limit);
  void extend(const StageShape &shape, size_t rest, double limit);
  double getSlowest(llvm::ArrayRef<Stage> its);
  int64_t getInFlight(const StageShape &shape, int64_t replicasBehind) const {
    return llvm::divideCeil(replicasBehind + shape.replicas, shape.replicas);
  }

  const PiperGraph &graph;
  PiperQuestion question;
  PiperStages stages;
  std::vector<int64_t> divisors;
  /// For each prefix, those that it contains.
  std::vector<std::vector<uint32_t>> starts;
  /// By prefix: the suffixes behind it of which none is as good as another one, by ascending devices.
  std::vector<std::vector<Suffix>> suffixes;
};

} // namespace

void PiperSearch::extend(const StageShape &shape, size_t rest, double limit) {
  const Suffix &behind = suffixes[shape.end][rest];
  Suffix whole = {behind.devices + shape.degree * shape.replicas, behind.replicas + shape.replicas, shape, rest};
  if (whole.replicas > question.microBatches)
    return;
  // The last suffix with no more devices has the fewest replicas of those.
  std::vector<Suffix> &its = suffixes[shape.begin];
  auto next = llvm::partition_point(its, [&](const Suffix &other) { return other.devices <= whole.devices; });
  if ((next != its.begin() && std::prev(next)->replicas <= whole.replicas) ||
      stages.getSeconds(shape, getInFlight(shape, behind.replicas)) > limit)
    return;
  auto first = next != its.begin() && std::prev(next)->devices == whole.devices ? std::prev(next) : next;
  auto last = std::find_if(next, its.end(), [&](const Suffix &other) { return other.replicas < whole.replicas; });
  its.insert(its.erase(first, last), whole);
}

void PiperSearch::extend(uint32_t begin, uint32_t end, double limit) {
  // What is left has to be done within the limit too.
  double leastDevices = std::ceil(stages.getLeastWork(begin) / limit * (1 - kPrecision));
  int64_t most = question.devices - static_cast<int64_t>(std::min(leastDevices, 1e9));
  for (int64_t degree : graph.degrees)
    for (int64_t replicas : divisors) {
      StageShape shape = {begin, end, degree, replicas};
      int64_t devices = degree * replicas;
      if (devices > most)
        break;
      if (stages.getLeastSeconds(shape) > limit)
        continue;
      for (size_t rest = 0; rest < suffixes[end].size() && suffixes[end][rest].devices + devices <= most; ++rest)
        extend(shape, rest, limit);
    }
}

std::vector<Stage> PiperSearch::findWithin(double limit) {
  size_t count = graph.prefixes.size();
  suffixes.assign(count, {});
  suffixes.back().push_back({0, 0, {}, 0});
  for (size_t end = count; end-- > 0;)
    if (!suffixes[end].empty())
      for (uint32_t begin : starts[end])
        extend(begin, static_cast<uint32_t>(end), limit);
  std::vector<Stage> found;
  if (suffixes.front().empty())
    return found;
  const Suffix *at = &suffixes.front().front();
  while (at->devices > 0) {
    const Suffix *behind = &suffixes[at->first.end][at->rest];
    found.push_back({at->first, getInFlight(at->first, behind->replicas)});
    at = behind;
  }
  return found;
}

double PiperSearch::getSlowest(llvm::ArrayRef<Stage> its) {
  double slowest = 0;
  for (const Stage &stage : its)
    slowest = std::max(slowest, stages.getSeconds(stage.shape, stage.inFlight));
  return slowest;
}

std::vector<Stage> PiperSearch::run() {
  // No stage takes longer than all layers one after another on one device with all messages.
  double most = stages.getLeastWork(static_cast<uint32_t>(graph.prefixes.size() - 1)), bytes = 0;
  double low = most / static_cast<double>(question.devices);
  for (const Layer &layer : graph.layers)
    for (const auto &[degree, variants] : layer.variants)
      for (const Variant &variant : variants) {
        most += variant.seconds;
        bytes += 4 * variant.parameterBytes;
        for (const std::map<int64_t, double> &further : {variant.bytesIn, variant.bytesOut})
          for (const auto &[id, each] : further)
            bytes += 2 * each;
      }
  for (const Link &link : graph.links)
    bytes += 4 * link.bytes;
  most += bytes / question.bandwidth;
  // Times below `low` are impossible. First, a time that is possible.
  std::vector<Stage> best;
  for (double limit = std::max(low, most * kPrecision) * kGrowth; best.empty(); limit *= kGrowth) {
    best = findWithin(std::min(limit, most));
    if (!best.empty())
      break;
    if (limit >= most)
      return {};
    low = limit;
  }
  double high = getSlowest(best);
  while (high - low > kPrecision * high) {
    double middle = low + (high - low) / 2;
    std::vector<Stage> better = findWithin(middle);
    if (better.empty()) {
      low = middle;
      continue;
    }
    best = std::move(better);
    high = getSlowest(best);
  }
  return best;
}

llvm::json::Value PiperSearch::print(llvm::ArrayRef<Stage> best) const {
  llvm::json::Array list;
  for (const Stage &stage : best) {
    std::vector<const Variant *> variants = stages.getVariants(stage.shape, stage.inFlight);
    llvm::json::Array nodes, recompute;
    llvm::BitVector layers = graph.prefixes[stage.shape.end];
    layers.reset(graph.prefixes[stage.shape.begin]);
    for (auto [layer, variant] : llvm::zip_equal(layers.set_bits(), variants)) {
      nodes.push_back(graph.layers[layer].id);
      if (variant->recomputes)
        recompute.push_back(graph.layers[layer].id);
    }
    list.push_back(llvm::json::Object{{"nodes", std::move(nodes)},
                                      {"data_parallel", stage.shape.replicas},
                                      {"tensor_parallel", stage.shape.degree},
                                      {"recompute", std::move(recompute)}});
  }
  return list;
}

llvm::Expected<llvm::json::Value> peers::solvePiper(const llvm::json::Value &graph, const PiperQuestion &question) {
  llvm::Expected<PiperGraph> read = readPiperGraph(graph);
  if (!read)
    return read.takeError();
  auto begin = std::chrono::steady_clock::now();
  PiperSearch search(*read, question);
  std::vector<Stage> best = search.run();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return llvm::json::Object{{"feasible", !best.empty()}, {"stages", search.print(best)}, {"seconds", seconds}};
}
