// Which runtime call a kernel of `sched.launch` becomes.
#ifndef WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_KERNELS_H
#define WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_KERNELS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Target/Cpp/CppBuilder.h"

#include <string>

namespace windlass {

/// A launch with its operands as C++ expressions.
struct KernelCall {
  mutable sched::LaunchOp op; // a handle; its accessors are not const
  cpp::Context context;
  cpp::Stream stream;
  llvm::ArrayRef<cpp::View> ins;
  llvm::ArrayRef<cpp::View> outs;
  cpp::Expr<bool> accumulate;
  /// The C++ array with the elements of a constant.
  std::string table;
};

/// Returns where the weight decay of an `adamw` acts.
rt::decay_mode getDecayMode(sched::LaunchOp op);

/// Emits the call. Fails, with a diagnostic at the launch, for a kernel or operand count that the runtime lacks.
llvm::LogicalResult emitKernel(cpp::RuntimeCalls &calls, const KernelCall &call);

} // namespace windlass

#endif
