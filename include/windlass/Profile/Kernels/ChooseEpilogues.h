// Which products of a program the device's library computes together with what follows them.
#ifndef WINDLASS_PROFILE_KERNELS_CHOOSEEPILOGUES_H
#define WINDLASS_PROFILE_KERNELS_CHOOSEEPILOGUES_H

#include "windlass/Profile/Profile.h"

#include "mlir/IR/BuiltinOps.h"

namespace windlass {

/// Fuses those commands of a module at L5 that the library was measured to compute faster together than two kernels, in
/// the first micro-batch of a step and in later ones.
void chooseEpilogues(mlir::ModuleOp module, const ProductChoices &measured);

} // namespace windlass

#endif
