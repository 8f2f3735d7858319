#include "NamePatterns.h"

#include "windlass/Support/Diagnostics.h"
#include "windlass/Support/Printable.h"

#include "llvm/Support/GlobPattern.h"

using namespace mlir;

namespace windlass::train {

LogicalResult applyToMatches(ModuleOp module, ArrayRef<std::string> patterns, StringRef option,
                             function_ref<void(ParameterOp, size_t pattern)> apply) {
  llvm::DenseSet<Operation *> matched;
  for (auto [number, text] : llvm::enumerate(patterns)) {
    llvm::Expected<llvm::GlobPattern> pattern = llvm::GlobPattern::create(text, 1024);
    if (!pattern)
      return emitError(module.getLoc(), Code::pattern)
             << option << " pattern " << printable(text) << " is not a glob: " << llvm::toString(pattern.takeError());
    bool any = false;
    for (ParameterOp parameter : module.getOps<ParameterOp>()) {
      if (parameter.getRole() == Role::state || !pattern->match(parameter.getLogicalName()))
        continue;
      any = true;
      if (matched.insert(parameter).second)
        apply(parameter, number);
    }
    if (!any)
      return emitError(module.getLoc(), Code::pattern)
             << option << " pattern " << printable(text)
             << " matches no parameter; 'windlass check -v' lists their names";
  }
  return success();
}

} // namespace windlass::train
