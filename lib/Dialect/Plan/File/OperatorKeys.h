// How plan.json names the operators of a function.
#ifndef WINDLASS_LIB_DIALECT_PLAN_FILE_OPERATORKEYS_H
#define WINDLASS_LIB_DIALECT_PLAN_FILE_OPERATORKEYS_H

#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "llvm/ADT/StringMap.h"

#include <string>

namespace windlass::plan {

/// Gives every op of a function, asked in program order, its key: its id, or kind and ordinal where it has none.
class OperatorKeys {
public:
  std::string get(mlir::Operation &op) {
    if (auto id = op.getAttrOfType<mlir::StringAttr>(train::kIdAttr))
      return id.getValue().str();
    llvm::StringRef kind = op.getName().getStringRef();
    return (kind + "#" + llvm::Twine(ordinals[kind]++)).str();
  }

private:
  llvm::StringMap<unsigned> ordinals;
};

} // namespace windlass::plan

#endif
