//===- SinceVersions.h - which version of an operator an opset selects ----===//

#ifndef WINDLASS_LIB_FRONTEND_ONNX_SINCEVERSIONS_H
#define WINDLASS_LIB_FRONTEND_ONNX_SINCEVERSIONS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>

namespace windlass {

/// The opsets of ONNX's own domain that are accepted.
constexpr int64_t kOldestOpset = 17;
constexpr int64_t kNewestOpset = 27;

/// Returns the newest version of `opType` that is not newer than `opset`, or 0 when ONNX's own domain has none that is
/// known.
int64_t getSinceVersion(llvm::StringRef opType, int64_t opset);

} // namespace windlass

#endif // WINDLASS_LIB_FRONTEND_ONNX_SINCEVERSIONS_H
