#include "windlass/Dialect/Sched/Transforms/FuseEpilogues.h"

#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Strides.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_FUSEEPILOGUES
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

class Fusion {
public:
  Fusion(ProgramOp program, llvm::function_ref<bool(LaunchOp)> wants) : symbols(program), wants(wants) {}

  void run(Block &block) {
    SmallVector<LaunchOp> products;
    Sums sums;
    Maps geluGradients;
    for (Operation &op : block) {
      if (auto launch = dyn_cast<LaunchOp>(op)) {
        if (isPlainProduct(launch))
          products.push_back(launch);
        else if (isColumnSum(launch))
          sums[getPlace(launch.getIns()[0])].push_back(launch);
      } else if (auto map = dyn_cast<LaunchMapOp>(op); map && findGeluGrad(map)) {
        geluGradients[getPlace(map.getOuts()[0])].push_back(map);
      }
    }
    for (LaunchOp product : products)
      if (!fuseMap(product) && !fuseGeluGrad(product, geluGradients) && !fuseNorm(product) &&
          !fuseSum(product, /*sumsB=*/true, sums))
        fuseSum(product, /*sumsB=*/false, sums);
  }

  /// Erases the functions of maps that are part of products now.
  void dropFunctions(ProgramOp program) { dropUnusedFunctions(program, replaced); }

private:
  /// The commands that sum columns, in the order of the block, by the place that they read.
  using Sums = llvm::DenseMap<Place, SmallVector<LaunchOp>>;
  /// The commands that compute the gradient of GELU, likewise by the place that they write.
  using Maps = llvm::DenseMap<Place, SmallVector<LaunchMapOp>>;

  static bool isPlainProduct(LaunchOp op) {
    return op.getKernel() == KernelKind::matmul && op.getIntegerSetting("batch_rank") == 0;
  }
  static bool isColumnSum(LaunchOp op) {
    auto kind = op.getSettings().getAs<train::ReductionKindAttr>("kind");
    return op.getKernel() == KernelKind::reduce && (!kind || kind.getValue() == train::ReductionKind::sum);
  }

  /// Makes the fused command before `later`; removes it again where it is not wanted, and otherwise removes the two
  /// that it replaces.
  bool replace(LaunchOp product, Operation *other, Operation *later, KernelKind kernel, ValueRange ins, ValueRange outs,
               bool sumsB) {
    if (!canWriteWhileReading(kernel, ins, outs))
      return false;
    OpBuilder builder(later);
    SmallVector<NamedAttribute> settings = {
        builder.getNamedAttr("contract_rank", builder.getI64IntegerAttr(product.getIntegerSetting("contract_rank")))};
    if (sumsB)
      settings.push_back(builder.getNamedAttr("sums_b", builder.getUnitAttr()));
    auto fused = LaunchOp::create(builder, product.getLoc(), kernel, product.getStream(), ins, outs,
                                  builder.getDictionaryAttr(settings), product.getAccumulate(),
                                  product.getAccumulateAfterFirst());
    fused->setDiscardableAttrs(later->getDiscardableAttrDictionary());
    if (!wants(fused)) {
      fused.erase();
      return false;
    }
    if (auto map = dyn_cast<LaunchMapOp>(other))
      replaced.insert(map.getFunction());
    product.erase();
    other->erase();
    return true;
  }

  /// Whether `bias` has one number for each column, of the type of the sum.
  static bool isBias(MemRefType bias, MemRefType sum) {
    if (bias.getRank() == 0 || bias.getShape() != sum.getShape() || bias.getElementType() != sum.getElementType())
      return false;
    auto strides = getStrides(bias);
    return strides && strides->back() == 1 &&
           llvm::all_of(ArrayRef<int64_t>(*strides).drop_back(), [](int64_t s) { return s == 0; });
  }

  /// Returns the operand of the map for an argument of its function; null where the value is not an argument.
  static Value getInput(LaunchMapOp map, Value argument) {
    auto block = dyn_cast<BlockArgument>(argument);
    return block ? map.getIns()[block.getArgNumber()] : Value();
  }

  static Operation *getNextCommand(LaunchOp product) {
    Operation *next = product->getNextNode();
    while (isa<BufferOp>(next))
      next = next->getNextNode();
    return next->hasAttr(kInLastAttr) == product->hasAttr(kInLastAttr) ? next : nullptr;
  }

  /// Lets the product compute the sum where a norm adds a bias, or a bias and another matrix, to the product.
  bool fuseNorm(LaunchOp product) {
    auto norm = dyn_cast_if_present<LaunchOp>(getNextCommand(product));
    size_t terms = norm ? norm.getArity().terms : 0;
    if (terms == 0 || norm.getStreamAttr() != product.getStreamAttr() || product.getAccumulate() ||
        product.getAccumulateAfterFirst())
      return false;
    Value a = product.getIns()[0], b = product.getIns()[1], out = product.getOuts()[0], sum = norm.getOuts()[0];
    Value x = norm.getIns()[0], bias = norm.getIns()[1];
    if (!isSame(x, out))
      std::swap(x, bias);
    SmallVector<Value> ins = {a, b, bias};
    if (terms > 2)
      ins.push_back(norm.getIns()[2]);
    if (!isSame(x, out) || !isSame(sum, out) || !isBias(typeOf(bias), typeOf(out)) ||
        typeOf(b).getRank() != product.getIntegerSetting("contract_rank") + 1 ||
        (terms > 2 && ins.back().getType() != out.getType()))
      return false;
    OpBuilder builder(norm);
    builder.setInsertionPointAfter(norm);
    SmallVector<NamedAttribute> settings;
    for (NamedAttribute setting : norm.getSettings())
      if (setting.getName() != "terms")
        settings.push_back(setting);
    SmallVector<Value> normIns = {sum};
    llvm::append_range(normIns, norm.getIns().drop_front(terms));
    auto apart = LaunchOp::create(builder, norm.getLoc(), norm.getRow().family, norm.getStream(), normIns,
                                  norm.getOuts().drop_front(), builder.getDictionaryAttr(settings), false, false);
    apart->setDiscardableAttrs(norm->getDiscardableAttrDictionary());
    if (replace(product, norm, norm, KernelKind::matmul_bias, ins, sum, false))
      return true;
    apart.erase();
    return false;
  }

  /// Whether product and map run one after the other, and neither adds to what was there.
  static bool isMapAfter(LaunchMapOp map, LaunchOp product) {
    return map.getStreamAttr() == product.getStreamAttr() && !map.getAccumulateAfterFirst() &&
           !product.getAccumulate() && !product.getAccumulateAfterFirst();
  }

  bool fuseMap(LaunchOp product) {
    auto map = dyn_cast_if_present<LaunchMapOp>(getNextCommand(product));
    if (!map || !isMapAfter(map, product) || map.getIns().size() > 3)
      return false;
    Value a = product.getIns()[0], b = product.getIns()[1], out = product.getOuts()[0];

    // The function's operators are the sum of product and bias and, if there is a second one, GELU of that or a sum
    // with it.
    auto function = symbols.lookup<func::FuncOp>(map.getFunction());
    SmallVector<Operation *> ops;
    for (Operation &op : function.getBody().front().without_terminator())
      ops.push_back(&op);
    auto sum = ops.empty() ? train::AddOp() : dyn_cast<train::AddOp>(ops[0]);
    if (!sum || ops.size() > 2)
      return false;
    Value x = getInput(map, sum->getOperand(0)), bias = getInput(map, sum->getOperand(1));
    if (!x || !bias)
      return false;
    if (!isSame(x, out))
      std::swap(x, bias);
    if (!isSame(x, out) || !isBias(typeOf(bias), typeOf(out)) ||
        typeOf(b).getRank() != product.getIntegerSetting("contract_rank") + 1)
      return false;
    Value last = ops.back()->getResult(0);
    auto gelu = dyn_cast<train::GeluTanhOp>(ops.back());
    auto more = ops.size() == 2 ? dyn_cast<train::AddOp>(ops.back()) : train::AddOp();
    SmallVector<Value> ins = {a, b, bias};
    if (more) {
      bool isSecond = more->getOperand(0) == sum->getResult(0);
      Value added = getInput(map, more->getOperand(isSecond ? 1 : 0));
      if (more->getOperand(isSecond ? 0 : 1) != sum->getResult(0) || !added || added.getType() != out.getType())
        return false;
      ins.push_back(added);
    } else if (ops.size() == 2 &&
               (!gelu || gelu->getOperand(0) != sum->getResult(0) || typeOf(out).getElementTypeBitWidth() != 16)) {
      return false;
    }
    ValueRange results = function.getBody().front().getTerminator()->getOperands();
    if (results.size() == 1 && results[0] == last && isSame(map.getOuts()[0], out))
      return replace(product, map, map, gelu ? KernelKind::matmul_bias_gelu : KernelKind::matmul_bias, ins,
                     map.getOuts(), false);
    if (results.size() != 2 || !gelu)
      return false;
    unsigned kept = results[0] == last ? 1 : 0;
    Value input = map.getOuts()[kept], activated = map.getOuts()[1 - kept];
    if (results[kept] != sum->getResult(0) || results[1 - kept] != last || !isSame(input, out) ||
        activated.getType() != input.getType())
      return false;
    return replace(product, map, map, KernelKind::matmul_bias_gelu, ins, {activated, input}, false);
  }

  /// Returns the operator of a map that computes nothing but the gradient of GELU, in 16 bits.
  train::GeluTanhGradOp findGeluGrad(LaunchMapOp map) {
    auto function = symbols.lookup<func::FuncOp>(map.getFunction());
    auto gradient = dyn_cast<train::GeluTanhGradOp>(function.getBody().front().front());
    bool isAlone = gradient && gradient->getNextNode() == function.getBody().front().getTerminator();
    return isAlone && typeOf(map.getOuts()[0]).getElementTypeBitWidth() == 16 ? gradient : train::GeluTanhGradOp();
  }

  /// Lets the product, which is the gradient of a result of GELU, compute that of the input too, in the place of a
  /// command of `maps`. The map moves to the product: behind it may be records that others wait for.
  bool fuseGeluGrad(LaunchOp product, Maps &maps) {
    Value out = product.getOuts()[0];
    auto its = maps.find(getPlace(out));
    if (its == maps.end())
      return false;
    for (LaunchMapOp *it = its->second.begin(); it != its->second.end(); ++it) {
      LaunchMapOp map = *it;
      if (!isMapAfter(map, product) || !product->isBeforeInBlock(map) || !isSame(map.getOuts()[0], out))
        continue;
      train::GeluTanhGradOp gradient = findGeluGrad(map);
      Value x = getInput(map, gradient->getOperand(0)), dy = getInput(map, gradient->getOperand(1));
      if (!x || !dy || !isSame(dy, out) || x.getType() != out.getType() || !canMoveUp(map, product))
        continue;
      if (product->isBeforeInBlock(x.getDefiningOp()))
        moveBefore(x.getDefiningOp(), product);
      if (replace(product, map, product, KernelKind::matmul_gelu_grad, {product.getIns()[0], product.getIns()[1], x},
                  out, false)) {
        its->second.erase(it);
        return true;
      }
    }
    return false;
  }

  /// Returns the operand's type with its first `count` dims last.
  static MemRefType turned(MemRefType type, int64_t count) {
    auto strides = getStrides(type);
    if (!strides)
      return type;
    SmallVector<int64_t> shape(type.getShape());
    std::rotate(shape.begin(), shape.begin() + count, shape.end());
    std::rotate(strides->begin(), strides->begin() + count, strides->end());
    return MemRefType::get(shape, type.getElementType(), StridedLayoutAttr::get(type.getContext(), 0, *strides));
  }

  /// Lets the product sum the columns of its second operand, or of its first one without `sumsB`, in the place of a
  /// command of `sums`. Returns whether there is such a command.
  bool fuseSum(LaunchOp product, bool sumsB, Sums &sums) {
    Value a = product.getIns()[0], b = product.getIns()[1], out = product.getOuts()[0], operand = sumsB ? b : a;
    auto its = sums.find(getPlace(operand));
    if (its == sums.end())
      return false;
    int64_t contracted = product.getIntegerSetting("contract_rank");
    MemRefType summed = turned(typeOf(operand), sumsB ? contracted : 0);
    for (LaunchOp *it = its->second.begin(); it != its->second.end(); ++it) {
      LaunchOp sum = *it;
      Value vector = sum.getOuts()[0];
      bool isLike = sum.getStreamAttr() == product.getStreamAttr() &&
                    sum.getIntegerSetting("reduced_rank") == contracted &&
                    sum.getAccumulate() == product.getAccumulate() &&
                    sum.getAccumulateAfterFirst() == product.getAccumulateAfterFirst() &&
                    typeOf(vector).getElementType() == typeOf(out).getElementType() &&
                    typeOf(vector).getLayout().isIdentity() && turned(typeOf(sum.getIns()[0]), 0) == summed;
      if (!isLike)
        continue;
      bool isFirst = sum->isBeforeInBlock(product);
      LaunchOp earlier = isFirst ? sum : product, later = isFirst ? product : sum;
      if (canMove(earlier, later) &&
          replace(product, sum, later, KernelKind::matmul_bias_grad, {a, b}, {out, vector}, sumsB)) {
        its->second.erase(it);
        return true;
      }
    }
    return false;
  }

  SymbolTable symbols;
  llvm::function_ref<bool(LaunchOp)> wants;
  llvm::StringSet<> replaced;
};

struct FuseEpilogues : sched::impl::FuseEpiloguesBase<FuseEpilogues> {
  void runOnOperation() override {
    fuseEpilogues(getOperation(), [](LaunchOp) { return true; });
  }
};

} // namespace

void windlass::sched::fuseEpilogues(ProgramOp program, llvm::function_ref<bool(LaunchOp)> wants) {
  Fusion fusion(program, wants);
  for (auto function : program.getOps<func::FuncOp>())
    if (!function->hasAttr(kScalarFunctionAttr))
      fusion.run(function.getBody().front());
  fusion.dropFunctions(program);
}
