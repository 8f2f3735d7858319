#include "windlass/Profile/Kernels/ChooseAttentions.h"

#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Profile/Kernels/CommandKeys.h"

using namespace mlir;
using namespace windlass;

std::vector<rt::attention_choice> windlass::chooseAttentions(sched::ProgramOp program, const AttentionChoices &measured,
                                                             int64_t mostWorkspaceBytes) {
  std::vector<rt::attention_choice> choices;
  CommandKeys keys(program);
  program.walk([&](sched::LaunchOp launch) {
    std::optional<rt::attention_shape> shape = sched::getAttentionShape(launch);
    if (!shape || llvm::any_of(choices, [&](const rt::attention_choice &each) { return each.shape == *shape; }))
      return;
    auto found = measured.choices.find(keys.get(launch, /*isLater=*/false).text);
    if (found != measured.choices.end() && found->second.seconds < found->second.ownSeconds &&
        found->second.workspaceBytes <= mostWorkspaceBytes)
      choices.push_back({*shape, found->second.workspaceBytes});
  });
  return choices;
}
