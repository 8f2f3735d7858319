#include "windlass/Experts/Loads.h"

#include "windlass/Support/Random.h"

#include <cmath>
#include <numeric>
#include <utility>

using namespace windlass;
using namespace windlass::experts;

const std::vector<std::string> &windlass::experts::getLoadKinds() {
  static const std::vector<std::string> names = {"uniform", "log-normal", "zipf", "hot"};
  return names;
}

/// Returns a sample of N(0, 1), by the transform of Box and Muller (1958).
static double drawNormal(Random &random) {
  double radius = std::sqrt(-2 * std::log(random.uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * random.uniform());
}

/// Returns the loads before any step, of any scale.
static std::vector<double> drawLoads(const LoadSettings &settings, Random &random) {
  std::vector<double> loads(settings.experts);
  switch (settings.kind) {
  case LoadKind::uniform:
    for (double &load : loads)
      load = random.uniform();
    break;
  case LoadKind::logNormal:
    for (double &load : loads)
      load = std::exp(settings.spread * drawNormal(random));
    break;
  case LoadKind::zipf:
    for (int32_t rank = 0; rank < settings.experts; ++rank)
      loads[rank] = std::pow(rank + 1, -settings.spread);
    for (int32_t last = settings.experts - 1; last > 0; --last)
      std::swap(loads[last], loads[random.below(last + 1)]);
    break;
  case LoadKind::hot: {
    for (double &load : loads)
      load = 0.9 + 0.2 * random.uniform();
    double &hot = loads[random.below(settings.experts)];
    hot = settings.spread * (std::accumulate(loads.begin(), loads.end(), 0.0) - hot);
    break;
  }
  }
  return loads;
}

std::vector<std::vector<double>> windlass::experts::makeLoads(const LoadSettings &settings) {
  constexpr double kTokens = 10'000;
  std::vector<std::vector<double>> layers;
  for (int32_t layer = 0; layer < settings.layers; ++layer) {
    // Layers have sequences of their own, so that each is the same whatever their number.
    Random random(settings.seed + (static_cast<uint64_t>(layer) << 32));
    std::vector<double> loads = drawLoads(settings, random);
    double scale = kTokens * settings.experts / std::accumulate(loads.begin(), loads.end(), 0.0);
    for (int32_t step = 0; step < settings.step; ++step)
      for (double &load : loads)
        load *= std::exp(settings.drift * drawNormal(random));
    for (double &load : loads)
      load = std::round(load * scale);
    layers.push_back(std::move(loads));
  }
  return layers;
}
