// Scratch that the kernels of a program need, by the runtime's own functions.
#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/rt/kernels.h"

using namespace mlir;
using namespace windlass;

/// Sizes and strides of a buffer; the runtime's size functions read nothing else.
static rt::view viewOf(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  rt::view view;
  view.rank = static_cast<std::int32_t>(type.getRank());
  auto [strides, offset] = type.getStridesAndOffset();
  for (int i = 0; i < view.rank; ++i) {
    view.sizes[i] = type.getDimSize(i);
    view.strides[i] = strides[i];
  }
  return view;
}

static int64_t scratchOf(sched::LaunchOp launch) {
  llvm::StringRef kernel = launch.getKernel();
  ValueRange ins = launch.getIns(), outs = launch.getOuts();
  auto integer = [&](llvm::StringRef name) {
    auto attribute = launch.getSettings().getAs<IntegerAttr>(name);
    return attribute ? static_cast<std::int32_t>(attribute.getInt()) : 0;
  };
  if (kernel == "matmul")
    return rt::matmul_scratch_bytes(viewOf(outs[0]), viewOf(ins[0]), viewOf(ins[1]), integer("batch_rank"),
                                    integer("contract_rank"));
  if (kernel == "layer_norm_grad")
    return rt::layer_norm_grad_scratch_bytes(viewOf(ins[1]), 1);
  if (kernel == "attention")
    return rt::attention_scratch_bytes(viewOf(ins[0]), viewOf(ins[1]), 1);
  if (kernel == "attention_grad")
    return rt::attention_grad_scratch_bytes(viewOf(ins[1]), viewOf(ins[2]), 1);
  return 0;
}

int64_t windlass::scratchBytesPerThread(ModuleOp module) {
  int64_t bytes = 0;
  module.walk([&](sched::LaunchOp launch) { bytes = std::max(bytes, scratchOf(launch)); });
  // Threads get whole cache lines.
  return (bytes + 63) / 64 * 64;
}
