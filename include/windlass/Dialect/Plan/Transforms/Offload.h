// What the host's memory holds from step to step.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_OFFLOAD_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_OFFLOAD_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace windlass::plan {

/// What the host's memory holds from step to step: nothing; what the search chooses for each group of parameters; the
/// master copies with the optimizer's state, which the host updates; these and the accumulated gradients; all that and
/// the weights that operators read, frozen ones too; or gradients and weights, with the rest on its disk.
enum class Offload { none, some, optimizer, gradients, weights, disk };

constexpr Offload kOffloads[] = {Offload::none,      Offload::some,    Offload::optimizer,
                                 Offload::gradients, Offload::weights, Offload::disk};

/// Returns the names of all, as a message lists them.
std::string listOffloads();

/// Returns what a user calls by that name; nothing for other words.
std::optional<Offload> parseOffload(llvm::StringRef name);

/// Returns the name by which users call it.
llvm::StringRef stringifyOffload(Offload offload);

/// Labels the parameters with what the host and its disk hold, in place of the labels that they have, whatever strategy
/// the module is planned with; with `some`, marks those of which the search decides. Gradients that ranks sum up after
/// the backward pass stay on the device, as do weights of which a rank keeps more than it updates.
void applyOffload(mlir::ModuleOp module, Offload offload);

} // namespace windlass::plan

#endif
