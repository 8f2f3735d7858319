#include "windlass/Dialect/Train/IR/Factors.h"

namespace windlass::train {

unsigned OpFactors::add(std::string name, int64_t size, FactorKind kind) {
  Factor factor;
  factor.name = std::move(name);
  factor.size = size;
  factor.kind = kind;
  if (kind == FactorKind::Reduction)
    factor.padding = 0.0;
  factors.push_back(std::move(factor));
  return factors.size() - 1;
}

} // namespace windlass::train
