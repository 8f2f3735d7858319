#include "PiperStages.h"

#include "Knapsack.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace windlass;
using namespace windlass::peers;

static constexpr double kNever = std::numeric_limits<double>::infinity();

/// A layer of a stage: its variants that may be best, the faster one first, with their seconds and bytes.
struct PiperStages::Choice {
  const Variant *fast, *small = nullptr;
  double fastSeconds, fastBytes, smallSeconds = 0, smallBytes = 0;
};

PiperStages::PiperStages(const PiperGraph &graph, const PiperQuestion &question) : graph(graph), question(question) {
  size_t count = graph.layers.size();
  std::vector<double> work(count, kNever);
  for (int64_t degree : graph.degrees) {
    std::vector<double> least(count, kNever);
    for (auto [layer, own, its] : llvm::zip_equal(graph.layers, least, work)) {
      auto found = layer.variants.find(degree);
      if (found == layer.variants.end())
        continue;
      for (const Variant &variant : found->second)
        own = std::min(own, variant.seconds);
      its = std::min(its, own * static_cast<double>(degree));
    }
    std::vector<double> &sums = leastSeconds[degree];
    for (const llvm::BitVector &prefix : graph.prefixes) {
      sums.push_back(0);
      for (unsigned layer : prefix.set_bits())
        sums.back() += least[layer];
    }
  }
  for (const llvm::BitVector &prefix : graph.prefixes) {
    leastWork.push_back(0);
    for (unsigned layer : prefix.set_bits())
      leastWork.back() += work[layer];
  }
}

double PiperStages::getLeastSeconds(const StageShape &shape) const {
  const std::vector<double> &sums = leastSeconds.at(shape.degree);
  double end = sums[shape.end];
  if (end < kNever)
    return (end - sums[shape.begin]) / static_cast<double>(shape.replicas);
  // Some layer cannot have the degree, but perhaps none of the stage.
  llvm::BitVector layers = graph.prefixes[shape.end];
  layers.reset(graph.prefixes[shape.begin]);
  bool allCan = llvm::all_of(layers.set_bits(),
                             [&](unsigned layer) { return graph.layers[layer].variants.count(shape.degree) > 0; });
  return allCan ? 0 : kNever;
}

std::vector<PiperStages::Choice> PiperStages::getChoices(const StageShape &shape, int64_t inFlight) const {
  llvm::BitVector layers = graph.prefixes[shape.end];
  layers.reset(graph.prefixes[shape.begin]);
  auto replicas = static_cast<double>(shape.replicas);
  // Each cut edge is paid for by both of its stages, forward and backward.
  std::map<size_t, std::vector<std::pair<const Link *, bool>>> cuts;
  for (const Link &link : graph.links)
    if (layers.test(link.from) != layers.test(link.to)) {
      bool comesIn = layers.test(link.to);
      cuts[comesIn ? link.to : link.from].push_back({&link, comesIn});
    }
  auto getSeconds = [&](size_t layer, const Variant &variant) {
    double bytes = 4 * (replicas - 1) / replicas * variant.parameterBytes / static_cast<double>(question.microBatches);
    if (auto found = cuts.find(layer); found != cuts.end())
      for (auto [link, comesIn] : found->second) {
        const std::map<int64_t, double> &further = comesIn ? variant.bytesIn : variant.bytesOut;
        auto own = further.find(graph.layers[comesIn ? link->from : link->to].id);
        bytes += 2 * (link->bytes + (own == further.end() ? 0 : own->second)) / replicas;
      }
    return variant.seconds / replicas + bytes / question.bandwidth;
  };
  auto getBytes = [&](const Variant &variant) {
    return variant.bytesInFlight * static_cast<double>(inFlight) + variant.fixedBytes;
  };
  std::vector<Choice> choices;
  for (unsigned layer : layers.set_bits()) {
    const std::vector<Variant> &variants = graph.layers[layer].variants.at(shape.degree);
    Choice choice = {&variants.front(), nullptr, getSeconds(layer, variants.front()), getBytes(variants.front())};
    for (const Variant &other : llvm::drop_begin(variants)) {
      choice.small = &other;
      choice.smallSeconds = getSeconds(layer, other);
      choice.smallBytes = getBytes(other);
      if (choice.smallSeconds < choice.fastSeconds ||
          (choice.smallSeconds == choice.fastSeconds && choice.smallBytes < choice.fastBytes)) {
        std::swap(choice.fast, choice.small);
        std::swap(choice.fastSeconds, choice.smallSeconds);
        std::swap(choice.fastBytes, choice.smallBytes);
      }
      if (choice.smallBytes >= choice.fastBytes)
        choice.small = nullptr;
    }
    choices.push_back(choice);
  }
  return choices;
}

std::optional<std::vector<bool>> PiperStages::chooseSmaller(llvm::ArrayRef<Choice> choices) const {
  double missing = -static_cast<double>(question.memoryBytes);
  std::vector<KnapsackItem> items;
  std::vector<size_t> places;
  for (auto [place, choice] : llvm::enumerate(choices)) {
    missing += choice.fastBytes;
    if (!choice.small)
      continue;
    items.push_back({choice.smallSeconds - choice.fastSeconds, choice.fastBytes - choice.smallBytes});
    places.push_back(place);
  }
  std::vector<bool> taken = chooseItems(items, missing), smaller(choices.size());
  if (taken.empty() && missing > 0)
    return std::nullopt;
  for (auto [place, isTaken] : llvm::zip(places, taken))
    smaller[place] = isTaken;
  return smaller;
}

std::vector<const Variant *> PiperStages::getVariants(const StageShape &shape, int64_t inFlight) const {
  std::vector<Choice> choices = getChoices(shape, inFlight);
  std::optional<std::vector<bool>> smaller = chooseSmaller(choices);
  if (!smaller)
    return {};
  std::vector<const Variant *> variants;
  for (auto [choice, isSmaller] : llvm::zip_equal(choices, *smaller))
    variants.push_back(isSmaller ? choice.small : choice.fast);
  return variants;
}

double PiperStages::getSeconds(const StageShape &shape, int64_t inFlight) {
  std::pair<uint64_t, uint64_t> key = {static_cast<uint64_t>(shape.begin) << 32 | shape.end,
                                       static_cast<uint64_t>(shape.degree) << 48 |
                                           static_cast<uint64_t>(shape.replicas) << 24 |
                                           static_cast<uint64_t>(inFlight)};
  auto [found, isNew] = seconds.try_emplace(key, kNever);
  if (!isNew)
    return found->second;
  std::vector<Choice> choices = getChoices(shape, inFlight);
  std::optional<std::vector<bool>> smaller = chooseSmaller(choices);
  if (!smaller)
    return kNever;
  double sum = 0;
  for (auto [choice, isSmaller] : llvm::zip_equal(choices, *smaller))
    sum += isSmaller ? choice.smallSeconds : choice.fastSeconds;
  return found->second = sum;
}
