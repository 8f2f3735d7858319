// What `windlass explain` says of the operators and parameters of a plan.
#ifndef WINDLASS_LIB_PIPELINE_EXPLAINOPERATOR_H
#define WINDLASS_LIB_PIPELINE_EXPLAINOPERATOR_H

#include "SegmentFacts.h"

#include "windlass/Dialect/Plan/PlanFile.h"

namespace windlass {

/// Of what `pattern`, an id or name or a glob over both, matches in a module at L3b of that plan. An exit code.
/// `segments` are those that the module had at L3.
int explainPlacement(mlir::ModuleOp module, const llvm::StringMap<SegmentFacts> &segments, const plan::PlanFile &plan,
                     llvm::StringRef pattern, bool asJson);

/// The same from the plan alone: no more than its file says.
int explainRows(const plan::PlanFile &plan, llvm::StringRef pattern, bool asJson);

} // namespace windlass

#endif
