#include "windlass/Profile/Kernels/ChooseEpilogues.h"

#include "windlass/Dialect/Sched/Transforms/FuseEpilogues.h"
#include "windlass/Profile/Kernels/CommandKeys.h"

using namespace mlir;
using namespace windlass;

void windlass::chooseEpilogues(sched::ProgramOp program, const ProductChoices *measured) {
  sched::fuseEpilogues(program, [&](sched::LaunchOp fused) {
    if (!measured)
      return true;
    CommandKeys keys(program); // lives no longer than the command, which may be erased
    auto isSlower = [&](bool isLater) {
      auto found = measured->epilogues.find(keys.get(fused, isLater).text);
      return found != measured->epilogues.end() && found->second.seconds >= found->second.apartSeconds;
    };
    return !isSlower(false) && !isSlower(true);
  });
}
