#include "windlass/Planner/CutModel.h"

#include "WholeWork.h"

#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/Support/TensorBytes.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

namespace {

/// A forward operator before which a chunk may begin.
struct Place {
  StringAttr id;
  /// The picoseconds of all operators before it, with their adjoints.
  int64_t before = 0;
  /// The picoseconds of the message with all values that cross there, there and back.
  int64_t crossing = 0;
};

class ModelCutter {
public:
  ModelCutter(ModuleOp module, int64_t positionRanks, const CostModel &costs)
      : positionRanks(positionRanks), costs(costs) {
    func::FuncOp microbatch = train::getMicrobatchFunction(module);
    if (func::FuncOp evaluate = train::getEvaluateFunction(module))
      for (Operation &op : evaluate.front())
        evaluated.insert(op.getAttr(train::kIdAttr));
    for (Operation &op : microbatch.front())
      if (llvm::isa<train::TrainOpInterface>(op))
        add(&op);
    addCrossings();
    keepNarrow();
  }

  /// Chooses the places where chunks begin.
  llvm::Expected<SmallVector<StringAttr>> cut(int64_t chunks) const;

private:
  void add(Operation *op);
  void addCrossings();
  void keepNarrow();
  int64_t getTime(const OperatorWork &work) const { return costs.getPicoseconds(work) / positionRanks; }

  int64_t positionRanks;
  const CostModel &costs;
  SmallVector<Operation *> ops;
  /// The number of each forward operator.
  llvm::DenseMap<Operation *, int64_t> numbers;
  llvm::DenseMap<Attribute, int64_t> byId;
  /// The ids of the operators of an evaluation, which is cut at the same places.
  llvm::DenseSet<Attribute> evaluated;
  /// The forward operators that read, directly or not, a weight.
  llvm::DenseSet<Operation *> computed;
  std::vector<int64_t> times;
  std::vector<Place> places;
};

} // namespace

void ModelCutter::add(Operation *op) {
  int64_t time = plan::Recomputation::isFree(op) || plan::Recomputation::isView(op) ? 0 : getTime(getWholeWork(op));
  if (Attribute forward = op->getAttr(train::kForwardAttr)) {
    if (auto found = byId.find(forward); found != byId.end())
      times[found->second] += time;
    return;
  }
  if (llvm::any_of(op->getOperands(), [&](Value operand) {
        Operation *producer = operand.getDefiningOp();
        return llvm::isa_and_nonnull<train::ReadOp>(producer) || computed.contains(producer);
      }))
    computed.insert(op);
  auto number = static_cast<int64_t>(ops.size());
  numbers[op] = number;
  if (Attribute id = op->getAttr(train::kIdAttr))
    byId[id] = number;
  ops.push_back(op);
  times.push_back(time);
}

/// What follows from inputs alone does not cross: each chunk computes it for itself.
void ModelCutter::addCrossings() {
  std::vector<int64_t> change(ops.size() + 1);
  for (auto [number, op] : llvm::enumerate(ops)) {
    if (!computed.contains(op))
      continue;
    for (Value result : op->getResults()) {
      int64_t last = static_cast<int64_t>(number);
      for (Operation *user : result.getUsers())
        if (auto found = numbers.find(user); found != numbers.end())
          last = std::max(last, found->second);
      int64_t bytes = getTensorBytes(llvm::cast<RankedTensorType>(result.getType()));
      change[number + 1] += bytes;
      change[last + 1] -= bytes;
    }
  }
  int64_t bytes = 0, before = 0;
  for (auto [number, op] : llvm::enumerate(ops)) {
    bytes += change[number];
    if (auto id = op->getAttrOfType<StringAttr>(train::kIdAttr);
        number > 0 && id && (evaluated.empty() || evaluated.contains(id)))
      places.push_back(
          {id, before,
           2 * costs.getMessageCost(0, positionRanks, static_cast<double>(bytes) / static_cast<double>(positionRanks))
                   .picoseconds});
    before += times[number];
  }
  places.push_back({StringAttr(), before, 0});
}

/// Keeps places with no cheaper neighbour: the others are inside of what a place next to them cuts off whole.
void ModelCutter::keepNarrow() {
  std::vector<Place> narrow;
  for (size_t i = 0; i < places.size(); ++i)
    if ((i == 0 || places[i].crossing <= places[i - 1].crossing) &&
        (i + 1 >= places.size() || places[i].crossing <= places[i + 1].crossing || !places[i].id))
      narrow.push_back(places[i]);
  if (narrow.empty() || narrow.back().id)
    narrow.push_back(places.back());
  places = std::move(narrow);
}

llvm::Expected<SmallVector<StringAttr>> ModelCutter::cut(int64_t chunks) const {
  auto count = static_cast<int64_t>(places.size());
  if (count < chunks)
    return llvm::createStringError("the model has " + countOf(count - 1, "place") + " where chunks could begin, but " +
                                   llvm::Twine(chunks) + " chunks need " + llvm::Twine(chunks - 1) +
                                   ": use fewer stages or chunks");
  // The least time of the longest of the first chunks, the last of which ends at a place; and the place before.
  std::vector<std::vector<int64_t>> longest(chunks, std::vector<int64_t>(count, INT64_MAX)),
      previous(chunks, std::vector<int64_t>(count, -1));
  for (int64_t end = 0; end < count; ++end)
    longest[0][end] = places[end].before + places[end].crossing;
  for (int64_t chunk = 1; chunk < chunks; ++chunk)
    for (int64_t end = chunk; end < count; ++end)
      for (int64_t begin = chunk - 1; begin < end; ++begin) {
        int64_t own = places[end].before - places[begin].before + places[begin].crossing + places[end].crossing;
        int64_t time = std::max(longest[chunk - 1][begin], own);
        if (time < longest[chunk][end]) {
          longest[chunk][end] = time;
          previous[chunk][end] = begin;
        }
      }
  SmallVector<StringAttr> begins;
  for (int64_t chunk = chunks - 1, end = count - 1; chunk > 0; --chunk) {
    end = previous[chunk][end];
    begins.push_back(places[end].id);
  }
  std::reverse(begins.begin(), begins.end());
  return begins;
}

FailureOr<plan::PipelineAttr> planner::chooseCut(ModuleOp module, const PipelineChoice &pipeline, int64_t positionRanks,
                                                 const CostModel &costs) {
  auto begins = ModelCutter(module, positionRanks, costs).cut(pipeline.countChunks());
  if (!begins)
    return module.emitError(llvm::toString(begins.takeError()));
  MLIRContext *context = module.getContext();
  SmallVector<StringAttr> orders;
  if (pipeline.own)
    orders = plan::printOrders(context, *pipeline.own);
  return plan::PipelineAttr::get(context, pipeline.positions, StringAttr::get(context, pipeline.schedule), *begins,
                                 orders);
}

LogicalResult planner::cutModel(ModuleOp module, const PipelineChoice &pipeline, int64_t positionRanks,
                                const CostModel &costs) {
  FailureOr<plan::PipelineAttr> cut = chooseCut(module, pipeline, positionRanks, costs);
  if (failed(cut))
    return failure();
  module->setAttr(plan::kPipelineAttr, *cut);
  return success();
}
