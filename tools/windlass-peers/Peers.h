// Searches of other planners' problems under their own rules: what benchmarks/peers compares.
#ifndef WINDLASS_TOOLS_WINDLASS_PEERS_PEERS_H
#define WINDLASS_TOOLS_WINDLASS_PEERS_PEERS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace windlass::peers {

/// The question that one row of Piper's results answers.
struct PiperQuestion {
  int64_t devices;
  /// The bytes of a device.
  int64_t memoryBytes;
  /// The number of micro-batches of a batch.
  int64_t microBatches;
  /// In bytes a second, between any two devices.
  double bandwidth;
};

/// Splits a graph of Piper's form into stages so that the slowest takes the least time.
llvm::Expected<llvm::json::Value> solvePiper(const llvm::json::Value &graph, const PiperQuestion &question);

/// Plans a case of Aceso's tables, a folder with case.json, ops.csv, collectives.csv and p2p.csv: the micro-batch, the
/// stages, how each operator runs and what is recomputed, so that an iteration takes the least time. Fails where a file
/// is missing or malformed, or no plan fits.
llvm::Expected<llvm::json::Value> solveAceso(llvm::StringRef folder);

} // namespace windlass::peers

#endif
