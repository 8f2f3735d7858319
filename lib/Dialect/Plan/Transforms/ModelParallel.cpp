#include "ModelParallel.h"

#include "ExpertParallel.h"

#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

namespace {

bool isForward(Operation *op) { return !llvm::isa<train::StashOp>(op) && !op->hasAttr(train::kForwardAttr); }

/// Returns the weight that an operand consists of, or of whose parts it has copies, such as an expert's for each token;
/// null where it has another origin.
train::ReadOp getWeight(Value value) {
  for (int depth = 0; depth < 8; ++depth) {
    Operation *producer = value.getDefiningOp();
    if (auto read = llvm::dyn_cast_or_null<train::ReadOp>(producer))
      return read;
    if (!llvm::isa_and_nonnull<train::ReshapeOp, train::TransposeOp, train::GatherOp>(producer))
      return nullptr;
    value = producer->getOperand(0);
  }
  return nullptr;
}

/// Returns the number of operators of the forward pass, except `others`, that read each weight.
llvm::DenseMap<Attribute, int64_t> countReaders(func::FuncOp function, const llvm::SetVector<Operation *> &others) {
  llvm::DenseMap<Attribute, int64_t> counts;
  for (auto read : function.getOps<train::ReadOp>())
    if (isForward(read))
      counts[read.getParameterAttr()] +=
          llvm::count_if(read->getUsers(), [&](Operation *op) { return isForward(op) && !others.contains(op); });
  return counts;
}

/// Whether all elements of the value come from an input.
bool isInput(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!llvm::isa<train::ReshapeOp, train::TransposeOp, train::CastOp, train::SliceOp, train::PadOp>(op))
      return false;
    value = op->getOperand(0);
  }
  auto argument = llvm::cast<BlockArgument>(value);
  auto function = llvm::cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttr(argument.getArgNumber(), train::kInputAttr) != nullptr;
}

constexpr unsigned kRows = 0;

/// Returns the embeddings of an input's ids by the tables with the most rows, where `split` can split these.
llvm::SetVector<Operation *> findTokenEmbeddings(func::FuncOp function, const FactorSplit &split, MeshAttr mesh,
                                                 const Pins &pins) {
  llvm::SetVector<Operation *> found;
  int64_t most = 0;
  for (auto embedding : function.getOps<train::EmbeddingOp>()) {
    int64_t rows = llvm::cast<RankedTensorType>(embedding.getTable().getType()).getDimSize(0);
    if (!isForward(embedding) || !embedding.getTable().getDefiningOp<train::ReadOp>() || rows < most ||
        !isInput(embedding.getIds()))
      continue;
    if (rows > most)
      found.clear();
    most = rows;
    if (!pins.ops.contains(embedding) && canSplit(embedding.getFactors(), kRows, split, {}, mesh))
      found.insert(embedding);
  }
  return found;
}

/// Follows a split forward until matmuls sum over it, or a loss reduces it inside.
class SplitFollower {
public:
  SplitFollower(MeshAttr mesh, const Pins &pins, bool mayEndInLoss)
      : mesh(mesh), pins(pins), mayEndInLoss(mayEndInLoss) {}

  /// Whether every path from `value`, in `layout`, ends in a sum.
  bool endsInSums(Value value, LayoutAttr layout) {
    if (!visited.insert(value.getAsOpaquePointer()).second)
      return true;
    bool isUsed = false;
    for (OpOperand &use : value.getUses()) {
      Operation *op = use.getOwner();
      if (!isForward(op))
        continue;
      isUsed = true;
      auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
      if (!compute || pins.ops.contains(op) || !endsInSums(op, compute.getFactors(), use.getOperandNumber(), layout))
        return false;
    }
    return isUsed;
  }

  /// The operators on the paths that sum over the split.
  SmallVector<Operation *> sums;

private:
  bool endsInSums(Operation *op, const train::OpFactors &factors, unsigned operand, LayoutAttr layout) {
    Splits splits;
    const train::ValueFactors &value = factors.operands[operand];
    if (value.size() != layout.getDims().size())
      return false;
    for (auto [dim, dimLayout] : llvm::zip_equal(value, layout.getDims()))
      if (!takeAxes(factors, dim, dimLayout, splits, mesh))
        return false;
    for (auto &[index, split] : splits) {
      if (factors.factors[index].kind == train::FactorKind::Reduction) {
        sums.push_back(op);
        return llvm::isa<train::MatmulOp>(op);
      }
      if (factors.factors[index].kind == train::FactorKind::Inner)
        return mayEndInLoss && llvm::isa<train::SoftmaxCrossEntropyOp>(op);
    }
    SmallVector<LayoutAttr> whole(op->getNumOperands());
    FailureOr<OpLayouts> layouts =
        inferLayouts(op, factors, getStrategy(op->getContext(), factors, splits), whole, mesh);
    if (failed(layouts))
      return false;
    for (auto [result, made] : llvm::zip_equal(op->getResults(), layouts->results))
      if (llvm::any_of(result.getUsers(), isForward) && !endsInSums(result, made))
        return false;
    return true;
  }

  MeshAttr mesh;
  const Pins &pins;
  bool mayEndInLoss;
  std::set<void *> visited;
};

} // namespace

llvm::DenseMap<Operation *, Splits> plan::findModelParallel(func::FuncOp function, ArrayRef<StringAttr> axes,
                                                            MeshAttr mesh, const Pins &pins) {
  llvm::DenseMap<Operation *, Splits> found;
  const FactorSplit rows{llvm::to_vector<1>(axes), 1};
  llvm::SetVector<Operation *> embeddings = findTokenEmbeddings(function, rows, mesh, pins);
  const llvm::DenseMap<Attribute, int64_t> readers = countReaders(function, embeddings);
  llvm::DenseSet<Attribute> splitWeights;
  // The matmuls that sum over the columns of another one.
  llvm::DenseSet<Operation *> isRowParallel;
  // A fused projection is split in as many blocks as its split makes parts.
  std::set<int64_t> blockCounts = {1};
  for (Operation &op : function.getOps())
    blockCounts.insert(countParts(&op));
  for (auto matmul : function.getOps<train::MatmulOp>()) {
    train::ReadOp weight = getWeight(matmul.getRhs());
    // The factors of the weight that are not summed over.
    StringRef own = weight ? "n" : "m";
    if (!weight)
      weight = getWeight(matmul.getLhs());
    if (!isForward(matmul) || !weight || isRowParallel.contains(matmul) || pins.ops.contains(matmul))
      continue;
    // A split weight that other operators read whole would have to be gathered in each micro-batch, like its gradient.
    bool mayEndInLoss = readers.lookup(weight.getParameterAttr()) == 1;
    train::OpFactors factors = matmul.getFactors();
    for (auto [index, factor] : llvm::enumerate(factors.factors)) {
      if (found.contains(matmul) || !StringRef(factor.name).starts_with(own))
        continue;
      for (int64_t blocks : blockCounts) {
        FactorSplit split{llvm::to_vector<1>(axes), blocks};
        if (!canSplit(factors, index, split, {}, mesh))
          continue;
        Splits splits = {{static_cast<unsigned>(index), split}};
        SmallVector<LayoutAttr> whole(2);
        FailureOr<OpLayouts> layouts =
            inferLayouts(matmul, factors, getStrategy(function.getContext(), factors, splits), whole, mesh);
        SplitFollower follower(mesh, pins, mayEndInLoss);
        if (succeeded(layouts) && follower.endsInSums(matmul.getResult(), layouts->results.front())) {
          found[matmul] = splits;
          splitWeights.insert(weight.getParameterAttr());
          isRowParallel.insert(follower.sums.begin(), follower.sums.end());
          break;
        }
      }
    }
  }
  llvm::DenseSet<Attribute> ids;
  for (Operation *embedding : embeddings) {
    auto table = embedding->getOperand(0).getDefiningOp<train::ReadOp>();
    if (readers.lookup(table.getParameterAttr()) > 0 && !splitWeights.contains(table.getParameterAttr()))
      continue;
    found[embedding] = {{kRows, rows}};
    if (Attribute id = embedding->getAttr(train::kIdAttr))
      ids.insert(id);
  }
  for (auto gradient : function.getOps<train::EmbeddingGradOp>())
    if (ids.contains(gradient->getAttr(train::kForwardAttr)) && !pins.ops.contains(gradient))
      found[gradient] = {{kRows, rows}};
  splitExperts(function, NamedSplit("width", rows), mesh, pins, found);
  return found;
}
