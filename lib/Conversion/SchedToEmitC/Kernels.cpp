#include "Kernels.h"

#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Dialect/Sched/IR/Programs.h"

using namespace mlir;
using namespace windlass;
using cpp::RuntimeCalls;
using cpp::View;

namespace {

int64_t integerOf(const KernelCall &call, llvm::StringRef name) { return call.op.getIntegerSetting(name); }

double realOf(const KernelCall &call, llvm::StringRef name) {
  auto attribute = call.op.getSettings().getAs<FloatAttr>(name);
  return attribute ? attribute.getValueAsDouble() : 0;
}

bool isSet(const KernelCall &call, llvm::StringRef name) { return call.op.getSettings().contains(name); }

rt::reduction reductionOf(const KernelCall &call) {
  auto kind = call.op.getSettings().getAs<train::ReductionKindAttr>("kind");
  if (!kind || kind.getValue() == train::ReductionKind::sum)
    return rt::reduction::sum;
  return kind.getValue() == train::ReductionKind::max ? rt::reduction::max : rt::reduction::min;
}

/// Returns the numbers of a setting; none where the launch does not have it.
llvm::ArrayRef<int64_t> numbersOf(sched::LaunchOp op, llvm::StringRef name) {
  auto list = op.getSettings().getAs<DenseI64ArrayAttr>(name);
  return list ? list.asArrayRef() : llvm::ArrayRef<int64_t>();
}

/// Returns the mesh axes whose coordinates number the block that `own_part` takes.
llvm::ArrayRef<int64_t> axesOf(sched::LaunchOp op) { return numbersOf(op, "axes"); }

/// Returns the windows of a pooling, or of a convolution by kernels of the sizes `weight`, [outs, ins, window..].
cpp::Windows windowsOf(const KernelCall &call, llvm::ArrayRef<int64_t> weight = {}) {
  llvm::ArrayRef<int64_t> sizes = weight.empty() ? numbersOf(call.op, "window") : weight.drop_front(2);
  return RuntimeCalls::windows(sizes, numbersOf(call.op, "strides"), numbersOf(call.op, "dilations"),
                               numbersOf(call.op, "pads").take_front(sizes.size()));
}

llvm::ArrayRef<int64_t> shapeOf(Value buffer) { return cast<MemRefType>(buffer.getType()).getShape(); }

/// Returns what a layer of experts, or its gradient, takes from its input on, with absent views where it takes no gate
/// or has all experts.
llvm::SmallVector<View> expertOperands(RuntimeCalls &runtime, const KernelCall &call) {
  llvm::SmallVector<View> operands(llvm::ArrayRef(call.ins).drop_front(call.op.getRow().flops.query));
  if (!sched::getExpertGate(call.op))
    operands.insert(operands.begin() + 5, runtime.absentView());
  operands.resize(7, runtime.absentView());
  return operands;
}

/// Emits the call of a kernel's entry in the runtime for a launch that its verifier accepted.
using Emitter = void (*)(RuntimeCalls &, const KernelCall &);

/// Returns the emitter of a kernel; null where the kernel has no call yet, which its row in the table tells.
Emitter getEmitter(sched::KernelKind kind) {
  switch (kind) {
  case sched::KernelKind::copy:
    return [](RuntimeCalls &r, const KernelCall &c) { r.copy(c.stream, c.outs[0], c.ins[0]); };
  case sched::KernelKind::own_part:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.copy(c.stream, c.outs[0], r.ownBlock(c.context, c.ins[0], axesOf(c.op)));
    };
  case sched::KernelKind::fill:
    return [](RuntimeCalls &r, const KernelCall &c) { r.fill(c.stream, c.outs[0], realOf(c, "value")); };
  case sched::KernelKind::constant:
    return [](RuntimeCalls &r, const KernelCall &c) { r.constant(c.stream, c.outs[0], c.table); };
  case sched::KernelKind::iota:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.iota(c.stream, c.outs[0], integerOf(c, "dim"), realOf(c, "start"), realOf(c, "step"));
    };
  case sched::KernelKind::matmul:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.matmul(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "batch_rank"), integerOf(c, "contract_rank"),
               c.accumulate);
    };
  case sched::KernelKind::matmul_bias:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.matmulBias(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins[2], c.ins.size() > 3 ? c.ins[3] : r.absentView(),
                   integerOf(c, "contract_rank"));
    };
  case sched::KernelKind::matmul_bias_gelu:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.matmulBiasGelu(c.stream, c.outs[0], c.outs.size() > 1 ? c.outs[1] : r.absentView(), c.ins[0], c.ins[1],
                       c.ins[2], integerOf(c, "contract_rank"));
    };
  case sched::KernelKind::matmul_gelu_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.matmulGeluGrad(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins[2], integerOf(c, "contract_rank"));
    };
  case sched::KernelKind::matmul_bias_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.matmulBiasGrad(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[1], integerOf(c, "contract_rank"),
                       isSet(c, "sums_b"), c.accumulate);
    };
  case sched::KernelKind::convolution:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.convolution(c.stream, c.outs[0], c.ins[0], c.ins[1], windowsOf(c, shapeOf(c.op.getIns()[1])), c.accumulate);
    };
  case sched::KernelKind::convolution_data_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.convolutionDataGrad(c.stream, c.outs[0], c.ins[0], c.ins[1], windowsOf(c, shapeOf(c.op.getIns()[1])),
                            c.accumulate);
    };
  case sched::KernelKind::convolution_weight_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.convolutionWeightGrad(c.stream, c.outs[0], c.ins[0], c.ins[1], windowsOf(c, shapeOf(c.op.getOuts()[0])),
                              c.accumulate);
    };
  case sched::KernelKind::max_pool:
    return [](RuntimeCalls &r, const KernelCall &c) { r.maxPool(c.stream, c.outs[0], c.ins[0], windowsOf(c)); };
  case sched::KernelKind::max_pool_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.maxPoolGrad(c.stream, c.outs[0], c.ins[0], c.ins[1], windowsOf(c), c.accumulate);
    };
  case sched::KernelKind::average_pool:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.averagePool(c.stream, c.outs[0], c.ins[0], windowsOf(c), isSet(c, "counts_pads"));
    };
  case sched::KernelKind::average_pool_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.averagePoolGrad(c.stream, c.outs[0], c.ins[0], windowsOf(c), isSet(c, "counts_pads"), c.accumulate);
    };
  case sched::KernelKind::reduce:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.reduce(c.stream, c.outs[0], c.ins[0], integerOf(c, "reduced_rank"), reductionOf(c), c.accumulate);
    };
  case sched::KernelKind::softmax:
    return [](RuntimeCalls &r, const KernelCall &c) { r.softmax(c.stream, c.outs[0], c.ins[0]); };
  case sched::KernelKind::softmax_grad:
    return [](RuntimeCalls &r, const KernelCall &c) { r.softmaxGrad(c.stream, c.outs[0], c.ins[0], c.ins[1]); };
  case sched::KernelKind::layer_norm:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.layerNorm(c.stream, c.outs[0], c.outs[1], c.outs[2], c.ins[0], c.ins[1],
                  c.ins.size() > 2 ? c.ins[2] : r.absentView(), realOf(c, "epsilon"));
    };
  case sched::KernelKind::layer_norm_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.layerNormGrad(c.stream, c.outs[0], c.outs[1], c.outs[2], c.ins[0], c.ins[1], c.ins[2], c.ins[3], c.ins[4],
                      c.ins.size() > 5 ? c.ins[5] : r.absentView(), c.accumulate);
    };
  case sched::KernelKind::rms_norm:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.rmsNorm(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[1], realOf(c, "epsilon"));
    };
  case sched::KernelKind::rms_norm_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.rmsNormGrad(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[1], c.ins[2], c.ins[3],
                    c.ins.size() > 4 ? c.ins[4] : r.absentView(), c.accumulate);
    };
  case sched::KernelKind::add_layer_norm:
    return [](RuntimeCalls &r, const KernelCall &c) {
      size_t terms = c.op.getArity().terms;
      r.addLayerNorm(c.stream, c.outs, c.ins[0], c.ins[1], terms > 2 ? c.ins[2] : r.absentView(), c.ins[terms],
                     c.ins.size() > terms + 1 ? c.ins[terms + 1] : r.absentView(), realOf(c, "epsilon"));
    };
  case sched::KernelKind::add_rms_norm:
    return [](RuntimeCalls &r, const KernelCall &c) {
      size_t terms = c.op.getArity().terms;
      r.addRmsNorm(c.stream, c.outs, c.ins[0], c.ins[1], terms > 2 ? c.ins[2] : r.absentView(), c.ins[terms],
                   realOf(c, "epsilon"));
    };
  case sched::KernelKind::rotary:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.rotary(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins[2], isSet(c, "transposed"));
    };
  case sched::KernelKind::dropout:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.dropout(c.stream, c.outs[0], c.ins[0], c.ins[1], realOf(c, "ratio"));
    };
  case sched::KernelKind::attention:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.attention(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[1], c.ins[2],
                  c.ins.size() > 3 ? c.ins[3] : r.absentView(), realOf(c, "scale"), isSet(c, "causal"));
    };
  case sched::KernelKind::attention_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      // Operand order of train.attention_grad: gradient, query, key, value, mask where there is one, output,
      // log_sum.
      bool masked = c.ins.size() == 7;
      r.attentionGrad(c.stream, c.outs[0], c.outs[1], c.outs[2], c.ins[0], c.ins[1], c.ins[2], c.ins[3],
                      masked ? c.ins[4] : r.absentView(), c.ins[4 + masked], c.ins[5 + masked], realOf(c, "scale"),
                      isSet(c, "causal"));
    };
  case sched::KernelKind::softmax_cross_entropy:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.softmaxCrossEntropy(c.stream, c.outs[0], c.outs[1], c.outs[2], c.ins[0], c.ins[1],
                            integerOf(c, "ignore_index"));
    };
  case sched::KernelKind::softmax_cross_entropy_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.softmaxCrossEntropyGrad(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins[2], c.ins[3],
                                integerOf(c, "ignore_index"));
    };
  case sched::KernelKind::softmax_cross_entropy_with_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.softmaxCrossEntropyWithGrad(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[2], integerOf(c, "ignore_index"));
    };
  case sched::KernelKind::count_labels:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.countLabels(c.stream, c.outs[0], c.ins[0], integerOf(c, "ignore_index"));
    };
  case sched::KernelKind::embedding:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.embedding(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins.size() > 2 ? c.ins[2] : r.absentView(),
                  integerOf(c, "all_rows"));
    };
  case sched::KernelKind::embedding_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.embeddingGrad(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins.size() > 2 ? c.ins[2] : r.absentView(),
                      integerOf(c, "all_rows"), c.accumulate);
    };
  case sched::KernelKind::experts:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.experts(c.stream, c.outs[0], expertOperands(r, c), RuntimeCalls::expertLayer(sched::getExpertLayer(c.op)));
    };
  case sched::KernelKind::experts_grad:
    return [](RuntimeCalls &r, const KernelCall &c) {
      llvm::SmallVector<View> outs(c.outs);
      outs.resize(5, r.absentView());
      r.expertsGrad(c.stream, outs, c.ins[0], expertOperands(r, c),
                    RuntimeCalls::expertLayer(sched::getExpertLayer(c.op)), c.accumulate);
    };
  case sched::KernelKind::gather:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.gather(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "axis"));
    };
  case sched::KernelKind::scatter_add:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.scatterAdd(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "axis"), c.accumulate);
    };
  case sched::KernelKind::gather_elements:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.gatherElements(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "axis"));
    };
  case sched::KernelKind::scatter_elements_add:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.scatterElementsAdd(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "axis"), c.accumulate);
    };
  case sched::KernelKind::square_sum:
    return [](RuntimeCalls &r, const KernelCall &c) { r.squareSum(c.stream, c.outs[0], c.ins[0], c.accumulate); };
  case sched::KernelKind::adamw:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.adamw(c.stream, c.ins, c.outs.size() > 3 ? c.outs[3] : r.absentView(), getDecayMode(c.op));
    };
  case sched::KernelKind::descend:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.descend(c.stream, c.ins, c.outs.size() > 1 ? c.outs[1] : r.absentView());
    };
  case sched::KernelKind::ema:
    return [](RuntimeCalls &r, const KernelCall &c) { r.ema(c.stream, c.ins); };
  case sched::KernelKind::lamb:
    return [](RuntimeCalls &r, const KernelCall &c) { r.lamb(c.stream, c.outs[0], c.ins, isSet(c, "decays")); };
  case sched::KernelKind::lion:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.lion(c.stream, c.ins, c.outs.size() > 2 ? c.outs[2] : r.absentView(), isSet(c, "decays"));
    };
  case sched::KernelKind::momentum:
    return [](RuntimeCalls &r, const KernelCall &c) { r.momentum(c.stream, c.outs[1], c.ins); };
  case sched::KernelKind::sgd:
    return [](RuntimeCalls &r, const KernelCall &c) {
      r.sgd(c.stream, c.ins, c.outs.size() > 2 ? c.outs[2] : r.absentView(), isSet(c, "decays"));
    };
  }
  return nullptr;
}

/// Checks an own_part, which copies one of the blocks of [n, rest...] to [rest...], n being the product of the sizes of
/// its axes.
LogicalResult checkOwnPart(sched::LaunchOp op) {
  plan::MeshAttr mesh = sched::getProgram(op).getMesh();
  int64_t blocks = 1, axes = static_cast<int64_t>(mesh.getAxes().size());
  for (auto [place, axis] : llvm::enumerate(axesOf(op))) {
    if (axis < 0 || axis >= axes || llvm::is_contained(axesOf(op).take_front(place), axis))
      return op.emitOpError("kernel 'own_part' names axis ")
             << axis << ", which the mesh of " << axes << " axes lacks or the setting has already";
    blocks *= mesh.getAxes()[axis].getSize();
  }
  auto in = cast<MemRefType>(op.getIns()[0].getType()), out = cast<MemRefType>(op.getOuts()[0].getType());
  if (in.getRank() == 0 || in.getDimSize(0) != blocks || in.getShape().drop_front() != out.getShape())
    return op.emitOpError("kernel 'own_part' takes one of ")
           << blocks << " blocks, but its operand is " << in << " and its result " << out;
  return success();
}

} // namespace

bool windlass::hasRuntimeCall(sched::KernelKind kind) { return getEmitter(kind) != nullptr; }

rt::decay_mode windlass::getDecayMode(sched::LaunchOp op) {
  if (!op.getSettings().contains("decays"))
    return rt::decay_mode::none;
  return op.getSettings().contains("coupled") ? rt::decay_mode::coupled : rt::decay_mode::decoupled;
}

LogicalResult windlass::emitKernel(RuntimeCalls &calls, const KernelCall &call) {
  Emitter emit = getEmitter(call.op.getKernel());
  if (!emit)
    return call.op.emitOpError("kernel '") << call.op.getRow().name << "' has no call of the runtime";
  if (call.op.getKernel() == sched::KernelKind::own_part && failed(checkOwnPart(call.op)))
    return failure();
  emit(calls, call);
  return success();
}
