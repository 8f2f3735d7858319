// The report of `windlass explain` on the operators and parameters of a plan.
#ifndef WINDLASS_EXPLAIN_EXPLAINOPERATOR_H
#define WINDLASS_EXPLAIN_EXPLAINOPERATOR_H

#include "windlass/Explain/SegmentFacts.h"

#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/rt/status.h"

#include "llvm/Support/raw_ostream.h"

namespace windlass {

/// Writes to `out`, as text or one JSON object, the facts of the operators and parameters of `module`, at L3b of
/// `plan`, that `pattern`, an id or name or a glob over both, matches. `segments` are those that the module had at L3.
/// Fails where nothing matches.
rt::status explainPlacement(mlir::ModuleOp module, const llvm::StringMap<SegmentFacts> &segments,
                            const plan::PlanFile &plan, llvm::StringRef pattern, bool asJson, llvm::raw_ostream &out);

/// Writes the facts that the plan's file alone holds about them.
rt::status explainRows(const plan::PlanFile &plan, llvm::StringRef pattern, bool asJson, llvm::raw_ostream &out);

} // namespace windlass

#endif
