//===- Contradictions.cpp - nodes against the calls they were made for ----===//

#include "ExportedModel.h"

#include "TracedArguments.h"

#include "windlass/Support/Printable.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

namespace {

using Nodes = llvm::SmallVector<onnx::NodeOp>;

/// A fact of a call that its nodes lack, and how to export the model without it. Empty where they lack none.
struct Fact {
  std::string lacks, advice;
};

} // namespace

static onnx::NodeOp findNode(const Nodes &nodes, llvm::StringRef type) {
  for (onnx::NodeOp node : nodes)
    if (node.getOpType() == type)
      return node;
  return {};
}

static std::string numberText(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// Whether the value is a constant that is true.
static bool isTrue(Value value) {
  DenseElementsAttr elements;
  if (auto initializer = value.getDefiningOp<onnx::InitializerOp>())
    elements = dyn_cast_or_null<DenseElementsAttr>(initializer.getValueAttr());
  else if (auto node = value.getDefiningOp<onnx::NodeOp>(); node && node.getOpType() == "Constant")
    if (DictionaryAttr attributes = node.getNodeAttributesAttr())
      elements = dyn_cast_or_null<DenseElementsAttr>(attributes.get("value"));
  return elements && elements.getElementType().isInteger(1) && elements.getNumElements() == 1 &&
         *elements.value_begin<bool>();
}

/// Whether a Dropout among the nodes drops anything.
static bool dropsOut(const Nodes &nodes) {
  for (onnx::NodeOp node : nodes)
    if (node.getOpType() == "Dropout" && node.getInputs().size() > 2 && isTrue(node.getInputs()[2]))
      return true;
  return false;
}

static int64_t getInteger(onnx::NodeOp node, llvm::StringRef name, int64_t fallback) {
  DictionaryAttr attributes = node.getNodeAttributesAttr();
  auto value = attributes ? dyn_cast_or_null<IntegerAttr>(attributes.get(name)) : IntegerAttr();
  return value ? value.getInt() : fallback;
}

/// Checks cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing).
static Fact checkCrossEntropy(const TracedArguments &arguments, const Nodes &nodes) {
  onnx::NodeOp node = findNode(nodes, "SoftmaxCrossEntropyLoss");
  // Other forms may spell out facts that this operator cannot express.
  if (!node || findNode(nodes, "LogSoftmax"))
    return {};
  if (double smoothing = arguments.getNumber(5, "label_smoothing", 0))
    return {"label smoothing " + numberText(smoothing), "write the smoothed loss out in the module"};
  if (arguments.get(2, "weight").starts_with("%") && node.getInputs().size() < 3)
    return {"class weights", "write the weighted loss out in the module"};
  double ignored = arguments.getNumber(4, "ignore_index", -100);
  if (static_cast<double>(getInteger(node, "ignore_index", -100)) != ignored)
    return {"ignore_index " + numberText(ignored), "export it with another version of the exporter"};
  return {};
}

/// Checks dropout(input, p, train).
static Fact checkDropout(const TracedArguments &arguments, const Nodes &nodes) {
  double ratio = arguments.getNumber(1, "p", 0.5);
  if (!arguments.isTrue(2, "train") || ratio == 0 || dropsOut(nodes))
    return {};
  return {"dropout " + numberText(ratio), "export it with optimize=False, or with a dropout of 0"};
}

/// Checks scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, ...).
static Fact checkAttention(const TracedArguments &arguments, const Nodes &nodes) {
  double ratio = arguments.getNumber(4, "dropout_p", 0);
  if (ratio == 0 || dropsOut(nodes))
    return {};
  return {"attention dropout " + numberText(ratio),
          "set the attention's dropout to 0, or use an attention that calls torch.nn.functional.dropout "
          "(attn_implementation='eager' in transformers)"};
}

/// Checks batch_norm(input, weight, bias, running_mean, running_var, training, ...).
static Fact checkBatchNorm(const TracedArguments &arguments, const Nodes &nodes) {
  if (!arguments.isTrue(5, "training"))
    return {};
  const char *advice = "export it with optimize=False and give its BatchNormalization nodes training_mode=1";
  onnx::NodeOp norm = findNode(nodes, "BatchNormalization");
  if (norm)
    return getInteger(norm, "training_mode", 0) == 1 ? Fact() : Fact{"training statistics of a batch norm", advice};
  // A batch norm that is spelt out computes its own statistics.
  if (findNode(nodes, "ReduceMean") || findNode(nodes, "ReduceSum"))
    return {};
  return {"a batch norm, which was folded into its weights", advice};
}

static Fact check(llvm::StringRef target, const TracedArguments &arguments, const Nodes &nodes) {
  // The name of the operator without its overload.
  llvm::StringRef name = target;
  name.consume_front("aten.");
  name = name.split('.').first;
  if (name == "cross_entropy_loss")
    return checkCrossEntropy(arguments, nodes);
  if (name == "native_dropout" || name == "dropout" || name == "dropout_")
    return checkDropout(arguments, nodes);
  if (name == "scaled_dot_product_attention")
    return checkAttention(arguments, nodes);
  if (name == "batch_norm" || name == "native_batch_norm" || name == "_native_batch_norm_legit" ||
      name == "_native_batch_norm_legit_functional")
    return checkBatchNorm(arguments, nodes);
  return {};
}

std::vector<std::string> windlass::findPaddingRows(onnx::GraphOp graph) {
  std::vector<std::string> lines;
  for (auto node : graph.getBody().front().getOps<onnx::NodeOp>()) {
    onnx::CallAttr call = node.getCallAttr();
    if (!call || node.getOpType() != "Gather" || !call.getTarget().getValue().starts_with("aten.embedding."))
      continue;
    // The call is embedding(weight, indices, padding_idx, ...); a negative index stands for none.
    double row = TracedArguments(call.getArguments()).getNumber(2, "padding_idx", -1);
    auto table = node.getInputs()[0].getDefiningOp<onnx::InitializerOp>();
    if (row >= 0 && table)
      lines.push_back("row " + numberText(row) + " of " + printable(table.getInitializerName()) +
                      " is padding_idx in the module, where it does not train; here it does, if data hold that id");
  }
  return lines;
}

std::vector<std::string> windlass::findContradictions(onnx::GraphOp graph) {
  llvm::MapVector<Attribute, Nodes> calls;
  for (auto node : graph.getBody().front().getOps<onnx::NodeOp>())
    if (onnx::CallAttr call = node.getCallAttr())
      calls[call].push_back(node);
  std::vector<std::string> lines;
  for (auto &[key, nodes] : calls) {
    auto call = cast<onnx::CallAttr>(key);
    Fact fact = check(call.getTarget(), TracedArguments(call.getArguments()), nodes);
    if (fact.lacks.empty())
      continue;
    onnx::NodeOp last = nodes.back();
    auto location = dyn_cast<NameLoc>(last->getLoc());
    lines.push_back("node " + printable(location ? location.getName().getValue() : last.getOpType()) + " (" +
                    printable(call.getTarget(), 60) + " in the module) lacks " + fact.lacks + ": " + fact.advice);
  }
  return lines;
}
