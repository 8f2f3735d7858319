#include "windlass/Explain/PlanTable.h"

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/Printable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <map>
#include <tuple>

using namespace mlir;
using namespace windlass;

namespace {

std::string getSplitText(const plan::SplitWords &split) {
  std::string text;
  for (const auto &[factor, axes] : split) {
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
  if (weight->hasAttr(plan::kUpdatesOnDeviceAttr))
    text += ", updated on the device";
  return text;
}

bool isShown(Operation *op) {
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  return compute && !op->hasAttr(train::kForwardAttr) && op->hasAttr(train::kIdAttr) &&
         (compute.getPrecisionClass() == train::PrecisionClass::Contraction ||
          llvm::isa<train::EmbeddingOp, train::SoftmaxCrossEntropyOp>(op));
}

} // namespace

std::vector<PlanRow> windlass::listPlanRows(ModuleOp planned) {
  auto mesh = planned->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  if (mesh.getRanks() == 1)
    return {};
  SymbolTable symbols(planned);
  std::vector<PlanRow> rows;
  std::map<std::tuple<std::string, plan::SplitWords, std::string>, size_t> numbers;
  for (Operation &op : train::getMicrobatchFunction(planned).front()) {
    if (!isShown(&op))
      continue;
    PlanRow row = {plan::collapseId(op.getAttrOfType<StringAttr>(train::kIdAttr).getValue(),
                                    op.getAttrOfType<plan::RepeatAttr>(plan::kRepeatAttr)),
                   plan::toWords(op.getAttrOfType<plan::StrategyAttr>(plan::kStrategyAttr)),
                   getWeightText(getWeight(&op, symbols))};
    auto [found, isNew] = numbers.try_emplace({row.operators, row.split, row.weight}, rows.size());
    if (isNew)
      rows.push_back(std::move(row));
    ++rows[found->second].count;
  }
  return rows;
}

std::string windlass::makePlanTable(ArrayRef<PlanRow> rows, size_t mostRows) {
  ArrayRef<PlanRow> shown = rows.take_front(mostRows);
  size_t nameWidth = 0, splitWidth = 0;
  for (const PlanRow &row : shown) {
    nameWidth = std::max(nameWidth, printable(row.operators).size());
    splitWidth = std::max(splitWidth, getSplitText(row.split).size());
  }
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const PlanRow &row : shown)
    out << "  " << llvm::left_justify(printable(row.operators), nameWidth)
        << llvm::format(" %4lld x  ", static_cast<long long>(row.count))
        << llvm::left_justify(getSplitText(row.split), splitWidth) << "  " << row.weight << "\n";
  if (shown.size() < rows.size())
    out << "  and " << rows.size() - shown.size() << " more\n";
  return text;
}
