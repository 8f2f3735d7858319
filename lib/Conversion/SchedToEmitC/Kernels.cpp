#include "Kernels.h"

#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/IR/Norms.h"
#include "windlass/Dialect/Sched/IR/Updates.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace windlass;
using cpp::RuntimeCalls;
using cpp::View;

namespace {

int64_t integerOf(const KernelCall &call, llvm::StringRef name, int64_t fallback = 0) {
  auto attribute = call.op.getSettings().getAs<IntegerAttr>(name);
  return attribute ? attribute.getInt() : fallback;
}

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

/// The mesh axes whose coordinates number the block that `own_part` takes.
llvm::ArrayRef<int64_t> axesOf(sched::LaunchOp op) {
  auto axes = op.getSettings().getAs<DenseI64ArrayAttr>("axes");
  return axes ? axes.asArrayRef() : llvm::ArrayRef<int64_t>();
}

/// How many operands and results a kernel takes, whether it can add to its result, and its call.
struct Entry {
  unsigned minIns, maxIns, outs;
  bool accumulates;
  void (*emit)(RuntimeCalls &, const KernelCall &);
  unsigned optionalOuts = 0;
};

const llvm::StringMap<Entry> &entries() {
  static const llvm::StringMap<Entry> table = {
      {"copy", {1, 1, 1, false, [](RuntimeCalls &r, const KernelCall &c) { r.copy(c.stream, c.outs[0], c.ins[0]); }}},
      {"own_part",
       {1, 1, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.copy(c.stream, c.outs[0], r.ownBlock(c.context, c.ins[0], axesOf(c.op)));
        }}},
      {"fill",
       {0, 0, 1, false, [](RuntimeCalls &r, const KernelCall &c) { r.fill(c.stream, c.outs[0], realOf(c, "value")); }}},
      {sched::kConstantKernel,
       {0, 0, 1, false, [](RuntimeCalls &r, const KernelCall &c) { r.constant(c.stream, c.outs[0], c.table); }}},
      {"iota",
       {0, 0, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.iota(c.stream, c.outs[0], integerOf(c, "dim"), realOf(c, "start"), realOf(c, "step"));
        }}},
      {"matmul",
       {2, 2, 1, true,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.matmul(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "batch_rank"), integerOf(c, "contract_rank"),
                   c.accumulate);
        }}},
      {"matmul_bias",
       {3, 4, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.matmulBias(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins[2], c.ins.size() > 3 ? c.ins[3] : r.absentView(),
                       integerOf(c, "contract_rank"));
        }}},
      {"matmul_bias_gelu",
       {3, 3, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.matmulBiasGelu(c.stream, c.outs[0], c.outs.size() > 1 ? c.outs[1] : r.absentView(), c.ins[0], c.ins[1],
                           c.ins[2], integerOf(c, "contract_rank"));
        },
        /*optionalOuts=*/1}},
      {"matmul_bias_grad",
       {2, 2, 2, true,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.matmulBiasGrad(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[1], integerOf(c, "contract_rank"),
                           isSet(c, "sums_b"), c.accumulate);
        }}},
      {"reduce",
       {1, 1, 1, true,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.reduce(c.stream, c.outs[0], c.ins[0], integerOf(c, "reduced_rank"), reductionOf(c), c.accumulate);
        }}},
      {"softmax",
       {1, 1, 1, false, [](RuntimeCalls &r, const KernelCall &c) { r.softmax(c.stream, c.outs[0], c.ins[0]); }}},
      {"softmax_grad",
       {2, 2, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) { r.softmaxGrad(c.stream, c.outs[0], c.ins[0], c.ins[1]); }}},
      {"layer_norm",
       {2, 3, 3, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.layerNorm(c.stream, c.outs[0], c.outs[1], c.outs[2], c.ins[0], c.ins[1],
                      c.ins.size() > 2 ? c.ins[2] : r.absentView(), realOf(c, "epsilon"));
        }}},
      {"layer_norm_grad",
       {5, 6, 3, true,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.layerNormGrad(c.stream, c.outs[0], c.outs[1], c.outs[2], c.ins[0], c.ins[1], c.ins[2], c.ins[3], c.ins[4],
                          c.ins.size() > 5 ? c.ins[5] : r.absentView(), c.accumulate);
        }}},
      {"rms_norm",
       {2, 2, 2, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.rmsNorm(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[1], realOf(c, "epsilon"));
        }}},
      {"rms_norm_grad",
       {4, 5, 2, true,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.rmsNormGrad(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[1], c.ins[2], c.ins[3],
                        c.ins.size() > 4 ? c.ins[4] : r.absentView(), c.accumulate);
        }}},
      {"add_layer_norm",
       {3, 5, 4, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          size_t terms = sched::getNormTerms(c.op);
          r.addLayerNorm(c.stream, c.outs, c.ins[0], c.ins[1], terms > 2 ? c.ins[2] : r.absentView(), c.ins[terms],
                         c.ins.size() > terms + 1 ? c.ins[terms + 1] : r.absentView(), realOf(c, "epsilon"));
        }}},
      {"add_rms_norm",
       {3, 4, 3, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          size_t terms = sched::getNormTerms(c.op);
          r.addRmsNorm(c.stream, c.outs, c.ins[0], c.ins[1], terms > 2 ? c.ins[2] : r.absentView(), c.ins[terms],
                       realOf(c, "epsilon"));
        }}},
      {"rotary",
       {3, 3, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.rotary(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins[2], isSet(c, "transposed"));
        }}},
      {"dropout",
       {2, 2, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.dropout(c.stream, c.outs[0], c.ins[0], c.ins[1], realOf(c, "ratio"));
        }}},
      {"attention",
       {3, 4, 2, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.attention(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[1], c.ins[2],
                      c.ins.size() > 3 ? c.ins[3] : r.absentView(), realOf(c, "scale"), isSet(c, "causal"));
        }}},
      {"attention_grad",
       {6, 7, 3, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          // Operand order of train.attention_grad: gradient, query, key, value, mask where there is one, output,
          // log_sum.
          bool masked = c.ins.size() == 7;
          r.attentionGrad(c.stream, c.outs[0], c.outs[1], c.outs[2], c.ins[0], c.ins[1], c.ins[2], c.ins[3],
                          masked ? c.ins[4] : r.absentView(), c.ins[4 + masked], c.ins[5 + masked], realOf(c, "scale"),
                          isSet(c, "causal"));
        }}},
      {"softmax_cross_entropy",
       {2, 2, 3, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.softmaxCrossEntropy(c.stream, c.outs[0], c.outs[1], c.outs[2], c.ins[0], c.ins[1],
                                integerOf(c, "ignore_index"));
        }}},
      {"softmax_cross_entropy_grad",
       {4, 4, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.softmaxCrossEntropyGrad(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins[2], c.ins[3],
                                    integerOf(c, "ignore_index"));
        }}},
      {"softmax_cross_entropy_with_grad",
       {3, 3, 2, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.softmaxCrossEntropyWithGrad(c.stream, c.outs[0], c.outs[1], c.ins[0], c.ins[2],
                                        integerOf(c, "ignore_index"));
        }}},
      {"count_labels",
       {1, 1, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.countLabels(c.stream, c.outs[0], c.ins[0], integerOf(c, "ignore_index"));
        }}},
      {"embedding",
       {2, 3, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.embedding(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins.size() > 2 ? c.ins[2] : r.absentView(),
                      integerOf(c, "all_rows"));
        }}},
      {"embedding_grad",
       {2, 3, 1, true,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.embeddingGrad(c.stream, c.outs[0], c.ins[0], c.ins[1], c.ins.size() > 2 ? c.ins[2] : r.absentView(),
                          integerOf(c, "all_rows"), c.accumulate);
        }}},
      {"gather",
       {2, 2, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.gather(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "axis"));
        }}},
      {"scatter_add",
       {2, 2, 1, true,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.scatterAdd(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "axis"), c.accumulate);
        }}},
      {"gather_elements",
       {2, 2, 1, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.gatherElements(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "axis"));
        }}},
      {"scatter_elements_add",
       {2, 2, 1, true,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.scatterElementsAdd(c.stream, c.outs[0], c.ins[0], c.ins[1], integerOf(c, "axis"), c.accumulate);
        }}},
      {"square_sum",
       {1, 1, 1, true,
        [](RuntimeCalls &r, const KernelCall &c) { r.squareSum(c.stream, c.outs[0], c.ins[0], c.accumulate); }}},
      {"adamw",
       {12, 12, 3, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.adamw(c.stream, c.ins, c.outs.size() > 3 ? c.outs[3] : r.absentView(), isSet(c, "decays"));
        },
        /*optionalOuts=*/1}},
      {"sgd",
       {7, 7, 2, false,
        [](RuntimeCalls &r, const KernelCall &c) {
          r.sgd(c.stream, c.ins, c.outs.size() > 2 ? c.outs[2] : r.absentView(), isSet(c, "decays"));
        },
        /*optionalOuts=*/1}},
  };
  return table;
}

bool isSameBuffer(Value out, Value in) {
  auto a = out.getDefiningOp<sched::BufferOp>(), b = in.getDefiningOp<sched::BufferOp>();
  return a && b && a.getOffset() == b.getOffset() && a.getType() == b.getType();
}

/// What the runtime knows by one view only: adamw and sgd update their first operands, a gradient takes the place of
/// the logits.
LogicalResult checkInPlace(sched::LaunchOp op) {
  for (auto [out, in] : llvm::zip(op.getOuts().take_front(sched::getUpdatedOperands(op.getKernel())), op.getIns()))
    if (!isSameBuffer(out, in))
      return op.emitOpError("kernel '") << op.getKernel()
                                        << "' updates in place: its results must be its first operands";
  if (op.getKernel() == "softmax_cross_entropy_with_grad" && !isSameBuffer(op.getOuts()[1], op.getIns()[1]))
    return op.emitOpError("kernel '") << op.getKernel() << "' writes over its logits: its second result must be those";
  return success();
}

/// own_part copies one of [n, rest...] blocks to [rest...], n being the members of its axes together.
LogicalResult checkOwnPart(sched::LaunchOp op) {
  auto mesh = op->getParentOfType<ModuleOp>()->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  int64_t blocks = 1, axes = mesh ? static_cast<int64_t>(mesh.getAxes().size()) : 0;
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

bool windlass::hasRuntimeEntry(llvm::StringRef kernel) { return entries().contains(kernel); }

LogicalResult windlass::emitKernel(RuntimeCalls &calls, const KernelCall &call) {
  llvm::StringRef kernel = call.op.getKernel();
  auto found = entries().find(kernel);
  if (found == entries().end())
    return call.op.emitOpError("the runtime has no kernel '") << kernel << "'";
  const Entry &entry = found->second;
  if (call.ins.size() < entry.minIns || call.ins.size() > entry.maxIns || call.outs.size() < entry.outs ||
      call.outs.size() > entry.outs + entry.optionalOuts)
    return call.op.emitOpError("kernel '")
           << kernel << "' does not take " << call.ins.size() << " operands and " << call.outs.size() << " results";
  if ((call.op.getAccumulate() || call.op.getAccumulateAfterFirst()) && !entry.accumulates)
    return call.op.emitOpError("kernel '") << kernel << "' cannot add to its result";
  if (size_t terms = sched::getNormTerms(call.op);
      terms > 0 && call.ins.size() != terms + 1 && !(kernel == "add_layer_norm" && call.ins.size() == terms + 2))
    return call.op.emitOpError("kernel '")
           << kernel << "' of " << terms << " terms does not take " << call.ins.size() << " operands";
  if (failed(checkInPlace(call.op)) || (kernel == "own_part" && failed(checkOwnPart(call.op))))
    return failure();
  entry.emit(calls, call);
  return success();
}
