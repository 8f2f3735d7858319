// The work of a step of the model, which no plan changes, and how often its ranks repeat it.
#ifndef WINDLASS_EXPLAIN_STEPWORK_H
#define WINDLASS_EXPLAIN_STEPWORK_H

#include "windlass/Cluster/Cluster.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace windlass {

struct StepWork {
  /// The FLOPs of the model's products and attentions, forward and backward, over all micro-batches. Recompute does not
  /// count.
  double flops = 0;
  /// The mean number of devices that compute each of them: 1 where no two do the same work.
  double repeats = 1;
  /// The tokens of all micro-batches, counted as programs count them; 0 where no input holds tokens.
  double tokens = 0;
};

/// Counts the work of a planned module at L3, before recomputed segments are copied.
StepWork measureStep(mlir::ModuleOp planned);

/// Returns the sum of the peak FLOPs per second of a cluster's devices by their data sheets, for products in
/// `precision`; nothing where the cluster does not state them for one of its devices.
std::optional<double> getPeakFlops(const Cluster &cluster, const std::string &precision);

} // namespace windlass

#endif
