// The ids of repeated operators as one.
#include "windlass/Dialect/Plan/IR/PlanText.h"

using namespace mlir;
using namespace windlass;

std::string plan::collapseId(StringRef id, RepeatAttr repeat) {
  if (!repeat)
    return id.str();
  std::string prefix = (repeat.getClassName().getValue() + "." + Twine(repeat.getIndex()) + ".").str();
  return id.starts_with(prefix) ? repeat.getClassName().str() + ".*." + id.substr(prefix.size()).str() : id.str();
}
