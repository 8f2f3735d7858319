#include "windlass/Dialect/Train/IR/Factors.h"

namespace windlass::train {

unsigned OpFactors::add(std::string name, int64_t size, FactorKind kind) {
  Factor factor;
  factor.name = std::move(name);
  factor.size = size;
  factor.kind = kind;
  if (kind == FactorKind::Reduction || kind == FactorKind::Flat)
    factor.padding = 0.0;
  factors.push_back(std::move(factor));
  return factors.size() - 1;
}

std::optional<unsigned> OpFactors::findFlat() const {
  for (unsigned i = 0; i < factors.size(); ++i)
    if (factors[i].kind == FactorKind::Flat)
      return i;
  return std::nullopt;
}

} // namespace windlass::train
