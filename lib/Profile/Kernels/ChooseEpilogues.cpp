#include "windlass/Profile/Kernels/ChooseEpilogues.h"

#include "windlass/Dialect/Sched/Transforms/FuseEpilogues.h"
#include "windlass/Profile/Kernels/CommandKeys.h"

using namespace mlir;
using namespace windlass;

void windlass::chooseEpilogues(ModuleOp module, const ProductChoices &measured) {
  sched::fuseEpilogues(module, [&](sched::LaunchOp fused) {
    CommandKeys keys(module); // not longer than the command, which may go again
    auto isFaster = [&](bool isLater) {
      auto found = measured.epilogues.find(keys.get(fused, isLater).text);
      return found != measured.epilogues.end() && found->second.seconds < found->second.apartSeconds;
    };
    return isFaster(false) && isFaster(true);
  });
}
