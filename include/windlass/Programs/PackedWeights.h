// `params.safetensors`: the values that the model file itself holds.
#ifndef WINDLASS_PROGRAMS_PACKEDWEIGHTS_H
#define WINDLASS_PROGRAMS_PACKEDWEIGHTS_H

#include "windlass/Frontend/Onnx/WeightStore.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace windlass {

/// Returns the hash of the values, for the key of a built program; without those that are trained unless `withTrained`.
/// Writes a one-line error to `error`, and returns an empty text then.
std::string hashPackedWeights(mlir::ModuleOp module, const WeightStore &weights, bool withTrained, std::string &error);

/// Writes every parameter of `module` with a packed source into `path` as safetensors (format of Hugging Face: 8 bytes
/// of header length, JSON header, values), under its logical name; without those that are trained, where another source
/// gives them values. Returns a one-line error or nothing.
std::string writePackedWeights(mlir::ModuleOp module, const WeightStore &weights, bool withTrained,
                               const std::string &path);

} // namespace windlass

#endif
