// The computation of a pipeline as JSON. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_ORDERSJSON_H
#define WINDLASS_SCHEDULE_ORDERSJSON_H

#include "windlass/Schedule/Pipeline.h"

#include "llvm/Support/JSON.h"

namespace windlass::schedule {

/// Writes the forwards and backwards of each position as a list of `[operation, chunk, micro-batch]`, where the
/// operation is `F`, a forward, `BW`, a whole backward, `B`, an input gradient, or `W`, a weight gradient.
llvm::json::Array writeOrders(const Pipeline &pipeline);

/// Reads an object with `orders`, as `writeOrders` writes them, and `chains`, as `Placement` has them, which may be
/// left out where there is one chain. A chunk is on the position that runs it. Other entries are ignored. Adds sends
/// and receives, reductions and updates. Fails with the position and the action, counted from 0, where an entry is no
/// action, runs twice, on two positions or before what it needs, or where positions wait for each other in a circle;
/// fails with what is missing.
llvm::Expected<Pipeline> readOrders(const llvm::json::Value &document);

} // namespace windlass::schedule

#endif
