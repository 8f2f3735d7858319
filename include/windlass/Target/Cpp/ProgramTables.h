// The constant tables by which an emitted program describes itself to the runtime (windlass/rt/program.h).
#ifndef WINDLASS_TARGET_CPP_PROGRAMTABLES_H
#define WINDLASS_TARGET_CPP_PROGRAMTABLES_H

#include "windlass/Profile/Profile.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace windlass::cpp {

/// A C++ string literal of any bytes.
std::string quoted(llvm::StringRef text);

/// The text of `tables.cpp` for a module of level L5. `planHash` identifies the plan in checkpoints; `scratchBytes` is
/// the planned scratch of the compute stream per thread; `products`, which may be null, how products are computed
/// fastest. Fails with a diagnostic where the module lacks a part.
llvm::FailureOr<std::string> writeProgramTables(mlir::ModuleOp module, llvm::StringRef planHash, int64_t scratchBytes,
                                                const ProductChoices *products);

} // namespace windlass::cpp

#endif
