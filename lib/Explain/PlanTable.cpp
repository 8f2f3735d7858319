#include "windlass/Explain/PlanTable.h"

#include "windlass/Dialect/Plan/IR/PlanText.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/Printable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

namespace {

struct Row {
  std::string operators, split, weight;
  bool operator<(const Row &other) const {
    return std::tie(operators, split, weight) < std::tie(other.operators, other.split, other.weight);
  }
};

std::string getSplit(Operation *op) {
  auto strategy = op->getAttrOfType<plan::StrategyAttr>(plan::kStrategyAttr);
  std::string text;
  for (const auto &[factor, axes] : plan::toWords(strategy)) {
    bool hasBlocks = StringRef(axes.front()).ends_with("*");
    text += (text.empty() ? "" : ",") + factor + ":" + (hasBlocks ? axes.front() : "") +
            llvm::join(llvm::drop_begin(axes, hasBlocks), "+");
  }
  return text.empty() ? "whole" : text;
}

/// Returns the weight that an operand comes from through reshapes and transposes alone; null where there is none.
train::ParameterOp getWeight(Operation *op, const SymbolTable &symbols) {
  for (Value value : op->getOperands())
    while (Operation *producer = value.getDefiningOp()) {
      if (auto read = llvm::dyn_cast<train::ReadOp>(producer))
        return symbols.lookup<train::ParameterOp>(read.getParameter());
      if (!llvm::isa<train::ReshapeOp, train::TransposeOp>(producer))
        break;
      value = producer->getOperand(0);
    }
  return nullptr;
}

std::string getWeightText(train::ParameterOp weight) {
  if (!weight)
    return "";
  plan::LayoutAttr compute = plan::getCopyLayout(weight, plan::kLayoutAttr),
                   master = plan::getCopyLayout(weight, plan::kMasterLayoutAttr),
                   gradient = plan::getCopyLayout(weight, plan::kGradientLayoutAttr);
  std::string text = "weight " + plan::toText(compute);
  if (gradient && gradient != compute)
    text += ", gradient " + plan::toText(gradient);
  if (master != compute)
    text += ", state " + plan::toText(master);
  return text;
}

bool isShown(Operation *op) {
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  return compute && !op->hasAttr(train::kForwardAttr) && op->hasAttr(train::kIdAttr) &&
         (compute.getPrecisionClass() == train::PrecisionClass::Contraction ||
          llvm::isa<train::EmbeddingOp, train::SoftmaxCrossEntropyOp>(op));
}

} // namespace

std::string windlass::makePlanTable(ModuleOp planned, size_t mostRows) {
  auto mesh = planned->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  if (mesh.getRanks() == 1)
    return "";
  SymbolTable symbols(planned);
  // The number of operators that each row stands for, in program order of their first ones.
  llvm::MapVector<Row, int64_t, std::map<Row, unsigned>> rows;
  for (Operation &op : train::getMicrobatchFunction(planned).front())
    if (isShown(&op))
      ++rows[{plan::collapseId(op.getAttrOfType<StringAttr>(train::kIdAttr).getValue(),
                               op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr)),
              getSplit(&op), getWeightText(getWeight(&op, symbols))}];
  size_t nameWidth = 0, splitWidth = 0, shown = std::min(rows.size(), mostRows);
  for (const auto &[row, count] : llvm::make_range(rows.begin(), rows.begin() + shown)) {
    nameWidth = std::max(nameWidth, printable(row.operators).size());
    splitWidth = std::max(splitWidth, row.split.size());
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const auto &[row, count] : llvm::make_range(rows.begin(), rows.begin() + shown))
    out << "  " << llvm::left_justify(printable(row.operators), nameWidth)
        << llvm::format(" %4lld x  ", (long long)count) << llvm::left_justify(row.split, splitWidth) << "  "
        << row.weight << "\n";
  if (shown < rows.size())
    out << "  and " << rows.size() - shown << " more\n";
  return text;
}
