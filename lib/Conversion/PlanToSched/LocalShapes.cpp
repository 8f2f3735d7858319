#include "Lowering.h"
#include "windlass/Dialect/Train/IR/FitAttributes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

FailureOr<Operation *> sched::cloneLocal(OpBuilder &builder, Operation &op, IRMapping &mapping, plan::MeshAttr mesh) {
  Operation *local = builder.clone(op, mapping);
  for (auto [whole, part] : llvm::zip_equal(op.getResults(), local->getResults())) {
    plan::LayoutAttr layout = plan::getLayout(whole);
    if (!layout)
      return op.emitOpError("has a result without a layout");
    part.setType(layout.getLocalType(llvm::cast<RankedTensorType>(whole.getType()), mesh));
  }
  for (StringRef name : {plan::kStrategyAttr, plan::kSplitOfAttr})
    local->removeAttr(name);
  if (std::string wrong = train::fitAttributes(op, local); !wrong.empty())
    return op.emitOpError(wrong);
  return local;
}
