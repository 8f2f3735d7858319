#include "windlass/Dialect/Sched/Analysis/Scratch.h"

#include "windlass/Dialect/Sched/IR/Strides.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

/// Returns the runtime's view of a buffer, without data; it distinguishes only the element types that matter to
/// attention.
static rt::view toView(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  rt::view view;
  view.type = type.getElementType().isBF16()  ? rt::element_type::bf16
              : type.getElementType().isF16() ? rt::element_type::f16
              : type.getElementType().isF32() ? rt::element_type::f32
                                              : rt::element_type::f64;
  auto strides = getStrides(type);
  if (!type.hasStaticShape() || !strides || type.getRank() > rt::max_rank)
    return view;
  view.rank = static_cast<std::int32_t>(type.getRank());
  for (auto [i, size, stride] : llvm::enumerate(type.getShape(), *strides)) {
    view.sizes[i] = size;
    view.strides[i] = stride;
  }
  return view;
}

int64_t windlass::sched::getScratchBytes(LaunchOp launch, int64_t threads) {
  auto in = [&](unsigned index) { return toView(launch.getIns()[index]); };
  auto ofQuery = [&](int64_t (*bytes)(const rt::view &, const rt::view &, int32_t)) {
    rt::view query = in(launch.getRow().flops.query), key = in(launch.getRow().flops.query + 1);
    return query.rank == 4 && key.rank == 4 ? bytes(query, key, threads) : 0;
  };
  switch (launch.getRow().scratch) {
  case ScratchRule::none:
    return 0;
  case ScratchRule::product:
    return threads * rt::matmul_scratch_bytes(toView(launch.getOuts()[0]), in(0), in(1),
                                              launch.getIntegerSetting("batch_rank"),
                                              launch.getIntegerSetting("contract_rank"));
  case ScratchRule::convolution: {
    auto of = [&](BufferNumber buffer) {
      return toView((buffer.isResult ? launch.getOuts() : launch.getIns())[buffer.number]);
    };
    const KernelFlops &flops = launch.getRow().flops;
    return rt::convolution_scratch_bytes(of(flops.convolved), of(flops.weight), threads);
  }
  case ScratchRule::norm_grad:
    return rt::norm_grad_scratch_bytes(in(1), threads);
  case ScratchRule::experts:
  case ScratchRule::experts_grad: {
    unsigned input = launch.getRow().flops.query;
    auto bytes =
        launch.getRow().scratch == ScratchRule::experts ? rt::experts_scratch_bytes : rt::experts_grad_scratch_bytes;
    std::optional<unsigned> gate = getExpertGate(launch);
    return bytes(in(input), in(input + 1), in(input + 3), in(input + 4), gate ? in(*gate) : rt::view(),
                 getExpertLayer(launch), threads);
  }
  case ScratchRule::attention:
    return ofQuery(rt::attention_scratch_bytes);
  case ScratchRule::attention_grad:
    return ofQuery(rt::attention_grad_scratch_bytes);
  }
  llvm_unreachable("unknown rule of scratch");
}

rt::expert_layer windlass::sched::getExpertLayer(LaunchOp launch) {
  auto activation = launch.getSettings().getAs<train::ExpertActivationAttr>("activation");
  return {activation ? static_cast<rt::expert_activation>(activation.getValue()) : rt::expert_activation::relu,
          launch.getSettings().contains("gated"), launch.getSettings().contains("inputs_first"),
          launch.getIntegerSetting("all_rows")};
}

std::optional<unsigned> windlass::sched::getExpertGate(LaunchOp launch) {
  unsigned last = launch.getRow().flops.query + 4;
  size_t others = launch.getSettings().contains("all_rows") ? 1 : 0;
  return launch.getIns().size() > last + 1 + others ? std::optional(last + 1) : std::nullopt;
}

std::optional<rt::attention_shape> windlass::sched::getAttentionShape(LaunchOp launch) {
  rt::attention_views views;
  auto in = [&](unsigned index) { return toView(launch.getIns()[index]); };
  auto out = [&](unsigned index) { return toView(launch.getOuts()[index]); };
  // What has one operand more has a mask, and is none that libraries take.
  if (launch.getKernel() == KernelKind::attention && launch.getIns().size() == 3)
    views = {in(0), in(1), in(2), {}, out(0), out(1), {}, {}, {}, {}};
  else if (launch.getKernel() == KernelKind::attention_grad && launch.getIns().size() == 6)
    views = {in(1), in(2), in(3), {}, in(4), in(5), in(0), out(0), out(1), out(2)};
  else
    return std::nullopt;
  auto scale = launch.getSettings().getAs<FloatAttr>("scale");
  rt::attention_shape shape;
  if (!scale ||
      !rt::describe_attention(views, scale.getValueAsDouble(), launch.getSettings().contains("causal"), shape))
    return std::nullopt;
  return shape;
}

int64_t windlass::sched::getScratchBytesPerThread(ProgramOp program) {
  int64_t most = 0;
  program.walk([&](LaunchOp launch) { most = std::max(most, getScratchBytes(launch, 1)); });
  return llvm::alignTo(most, 64);
}
