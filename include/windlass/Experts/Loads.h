// Loads of experts for tests and benchmarks.
#ifndef WINDLASS_EXPERTS_LOADS_H
#define WINDLASS_EXPERTS_LOADS_H

#include <cstdint>
#include <string>
#include <vector>

namespace windlass::experts {

enum class LoadKind {
  uniform,   ///< between none and twice the mean
  logNormal, ///< the logarithm has the deviation `spread`
  zipf,      ///< the expert of rank k has a share proportional to k^-spread; which expert has which rank is random
  hot        ///< one expert has `spread` times the load of all others together, which are nearly equal
};

/// Returns the name of each kind, as flags spell it, in the order of the enumeration.
const std::vector<std::string> &getLoadKinds();

struct LoadSettings {
  LoadKind kind = LoadKind::logNormal;
  int32_t layers = 1, experts = 256;
  uint64_t seed = 1;
  double spread = 1;
  /// The step: in each, the logarithm of every load changes by a normal number of the deviation `drift`. What a step
  /// gives does not depend on the steps that are asked for.
  int32_t step = 0;
  double drift = 0.05;
};

/// Returns the load of each layer's experts: whole tokens, about 10,000 an expert. The same settings give the same
/// loads.
std::vector<std::vector<double>> makeLoads(const LoadSettings &settings);

} // namespace windlass::experts

#endif
