// Fused scalar functions as C++ functors.
#ifndef WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_SCALARFUNCTIONS_H
#define WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_SCALARFUNCTIONS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Target/Cpp/CppBuilder.h"

#include "llvm/ADT/DenseMap.h"

namespace windlass {

/// Appends to `lines`, in module order, a functor per scalar function and returns their names: ordinals, never text of
/// the model.
llvm::FailureOr<llvm::StringMap<std::string>> emitScalarFunctions(sched::ProgramOp program,
                                                                  std::vector<std::string> &lines);

} // namespace windlass

#endif
