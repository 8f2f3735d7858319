#include "MuonStep.h"

#include "windlass/Dialect/Train/IR/TrainFunctions.h"

#include <cmath>

using namespace mlir;
using namespace windlass::train;

namespace {

/// The coefficients of PyTorch's torch.optim.Muon for x <- a x + b (x x^T) x + c (x x^T)^2 x, and how often it does so.
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr int kSteps = 5;
/// The least norm that a matrix is divided by.
constexpr double kLeastNorm = 1e-7;

/// Returns the operator that makes a value, below views and conversions.
Operation *findMaker(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && isa<ReshapeOp, TransposeOp, CastOp, BroadcastOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

/// Returns the product that a value is, but for views, conversions and what is added; null where it is none.
Operation *findProduct(Value value) {
  Operation *op = findMaker(value);
  while (isa_and_nonnull<AddOp>(op)) {
    Operation *lhs = findMaker(op->getOperand(0)), *rhs = findMaker(op->getOperand(1));
    op = isa_and_nonnull<MatmulOp>(rhs) ? rhs : lhs;
  }
  return isa_and_nonnull<MatmulOp>(op) ? op : nullptr;
}

} // namespace

llvm::DenseSet<Operation *> windlass::train::findMuonMatrices(ModuleOp module) {
  llvm::DenseSet<StringAttr> multiplied, words;
  auto add = [](Value value, llvm::DenseSet<StringAttr> &names) {
    if (auto read = dyn_cast_or_null<ReadOp>(findMaker(value)))
      names.insert(read.getParameterAttr().getAttr());
  };
  func::FuncOp microbatch = getMicrobatchFunction(module);
  if (!microbatch)
    return {};
  microbatch.walk([&](Operation *op) {
    if (isa<MatmulOp>(op))
      for (Value operand : op->getOperands())
        add(operand, multiplied);
    if (auto embedding = dyn_cast<EmbeddingOp>(op))
      add(embedding.getTable(), words);
    auto loss = dyn_cast<SoftmaxCrossEntropyOp>(op);
    Operation *logits = loss ? findProduct(loss.getLogits()) : nullptr;
    if (logits)
      for (Value operand : logits->getOperands())
        add(operand, words);
  });
  llvm::DenseSet<Operation *> matrices;
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (parameter.isOptimized() && parameter.getTensorType().getRank() == 2 &&
        multiplied.contains(parameter.getSymNameAttr()) && !words.contains(parameter.getSymNameAttr()))
      matrices.insert(parameter);
  return matrices;
}

double windlass::train::getMuonScale(RankedTensorType matrix) {
  return 0.2 * std::sqrt(static_cast<double>(std::max(matrix.getDimSize(0), matrix.getDimSize(1))));
}

Value MuonStep::scale(const Twine &name, Value matrix, double factor) {
  return make<MulOp>(name, matrix, makeConstant(cast<RankedTensorType>(matrix.getType()), factor));
}

Value MuonStep::multiply(const Twine &name, Value lhs, Value rhs, int64_t lhsDim, int64_t rhsDim) {
  return make<MatmulOp>(name, lhs, rhs, ArrayRef<int64_t>(), ArrayRef<int64_t>(), ArrayRef<int64_t>(lhsDim),
                        ArrayRef<int64_t>(rhsDim));
}

Value MuonStep::orthogonalize(Value matrix) {
  auto type = cast<RankedTensorType>(matrix.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value norm = make<SqrtOp>("direction_norm", make<SquareSumOp>("direction_square_sum", scalar, matrix));
  Value inverse = make<DivOp>("inverse_norm", makeConstant(scalar, 1),
                              make<MaxOp>("least_norm", norm, makeConstant(scalar, kLeastNorm)));
  Value x = make<MulOp>("normalized", matrix, broadcast("inverse_norms", inverse, type.getShape()));
  // The products with the smaller of the two dims take less work.
  bool isWide = type.getDimSize(0) <= type.getDimSize(1);
  int64_t inner = isWide ? 1 : 0;
  for (int step = 0; step < kSteps; ++step) {
    auto name = [&](StringRef part) { return ("iteration_" + Twine(step) + "/" + part).str(); };
    Value gram = multiply(name("gram"), x, x, inner, inner);
    Value square = multiply(name("gram_square"), gram, gram, 1, 0);
    Value sum =
        make<AddOp>(name("polynomial"), scale(name("gram_part"), gram, kB), scale(name("square_part"), square, kC));
    Value product = isWide ? multiply(name("product"), sum, x, 1, 0) : multiply(name("product"), x, sum, 1, 0);
    x = make<AddOp>(name("sum"), scale(name("part"), x, kA), product);
  }
  return x;
}
