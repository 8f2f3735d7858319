#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/Analysis/CommandUses.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_FUSENORMS
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

namespace {

/// The scalar functions that maps apply, by name.
using ScalarFunctions = DenseMap<StringRef, func::FuncOp>;

class NormFusion {
public:
  /// `shared` are the storages that several functions use; `taken` receives the names of the functions of maps that
  /// have been removed.
  NormFusion(const ScalarFunctions &functions, const DenseSet<int64_t> &shared, Block &block, llvm::StringSet<> &taken)
      : functions(functions), shared(shared), block(block), taken(taken), uses(block) {}

  void run() {
    SmallVector<LaunchOp> norms, gradients;
    for (auto launch : block.getOps<LaunchOp>()) {
      if (getKernelOfSum(launch.getKernel()))
        norms.push_back(launch);
      else if (launch.getRow().accumulation == Accumulation::parameters && !launch.getAccumulate() &&
               !launch.getAccumulateAfterFirst())
        gradients.push_back(launch);
    }
    for (LaunchOp norm : norms)
      takeSum(norm);
    for (LaunchOp gradient : gradients)
      takeAdditionTo(takeParameters(gradient));
  }

private:
  /// The most terms that a norm of a sum adds up.
  static constexpr size_t kMostTerms = 3;

  /// Returns the operands of a map whose function only adds its two or three arguments up, in the order of addition;
  /// empty for other maps.
  SmallVector<Value> getTerms(LaunchMapOp map) const {
    auto found = functions.find(map.getFunction());
    if (found == functions.end() || map.getOuts().size() != 1)
      return {};
    func::FuncOp function = found->second;
    Block &body = function.getBody().front();
    Value result = body.getTerminator()->getOperand(0);
    SmallVector<Value> terms;
    size_t ops = 0;
    for (Value left = result;;) {
      Operation *add = left.getDefiningOp();
      if (!add || !isa<train::AddOp, train::AccumulateOp>(add) || add->getNumOperands() != 2)
        break;
      ++ops;
      // What is itself a sum comes first: floats may change places, but not brackets.
      Value first = add->getOperand(0), second = add->getOperand(1);
      if (isa<BlockArgument>(first) && !isa<BlockArgument>(second))
        std::swap(first, second);
      auto argument = dyn_cast<BlockArgument>(second);
      if (!argument)
        return {};
      terms.push_back(map.getIns()[argument.getArgNumber()]);
      left = first;
      if (auto last = dyn_cast<BlockArgument>(first)) {
        terms.push_back(map.getIns()[last.getArgNumber()]);
        break;
      }
    }
    bool isAll = terms.size() >= 2 && terms.size() <= kMostTerms && terms.size() == ops + 1 &&
                 ops == static_cast<size_t>(std::distance(body.begin(), body.end())) - 1;
    auto element = typeOf(map.getOuts()[0]).getElementType();
    if (!isAll || !isa<FloatType>(element) ||
        llvm::any_of(terms, [&](Value term) { return typeOf(term).getElementType() != element; }))
      return {};
    std::reverse(terms.begin(), terms.end());
    return terms;
  }

  /// Whether the map's function is the identity.
  bool isCopy(LaunchMapOp map) const {
    auto found = functions.find(map.getFunction());
    if (found == functions.end() || map.getIns().size() != 1 || map.getOuts().size() != 1)
      return false;
    func::FuncOp function = found->second;
    Block &body = function.getBody().front();
    return &body.front() == body.getTerminator() && body.getTerminator()->getOperand(0) == body.getArgument(0);
  }

  void erase(Operation *command) {
    if (auto map = dyn_cast<LaunchMapOp>(command))
      taken.insert(map.getFunction());
    uses.remove(command);
    command->erase();
  }

  /// Makes the command that replaces two, at the place of `later` and with its `plan.repeat`; `named` gives the
  /// operator.
  LaunchOp replace(Operation *later, LaunchOp named, KernelKind kernel, ValueRange ins, ValueRange outs,
                   DictionaryAttr settings, bool accumulatesAfterFirst) {
    OpBuilder builder(later);
    auto both = LaunchOp::create(builder, named.getLoc(), kernel, named.getStream(), ins, outs, settings,
                                 /*accumulate=*/false, accumulatesAfterFirst);
    both->setDiscardableAttrs(named->getDiscardableAttrDictionary());
    copyRepeat(later, both);
    uses.add(both);
    return both;
  }

  /// Makes the sum that the norm reads a result of the norm.
  void takeSum(LaunchOp norm) {
    Value x = norm.getIns()[0];
    LaunchMapOp sum;
    for (Operation *op : uses.of(x))
      if (auto map = dyn_cast<LaunchMapOp>(op);
          map && map->isBeforeInBlock(norm) && map.getOuts().size() == 1 && isSame(map.getOuts()[0], x))
        sum = map;
    if (!sum || sum.getStreamAttr() != norm.getStreamAttr() || sum.getAccumulateAfterFirst() || !canMove(sum, norm))
      return;
    SmallVector<Value> ins = getTerms(sum), outs(norm.getOuts());
    size_t terms = ins.size();
    if (terms == 0)
      return;
    llvm::append_range(ins, norm.getIns().drop_front());
    outs.insert(outs.begin(), x);
    KernelKind kernel = *getKernelOfSum(norm.getKernel());
    if (!canWriteWhileReading(kernel, ins, outs, terms))
      return;
    Builder builder(norm.getContext());
    SmallVector<NamedAttribute> settings(norm.getSettings().getValue());
    settings.push_back(builder.getNamedAttr("terms", builder.getI64IntegerAttr(terms)));
    replace(norm, norm, kernel, ins, outs, builder.getDictionaryAttr(settings), false);
    erase(norm);
    erase(sum);
  }

  /// Returns the only command that reads what `producer` writes to `out`; null if it is not a map on the same stream
  /// behind it, or if another function may read it.
  LaunchMapOp getOnlyReader(LaunchOp producer, Value out) {
    if (std::optional<int64_t> storage = getStorage(out); storage && shared.contains(*storage))
      return {};
    LaunchMapOp reader;
    for (Operation *op : uses.of(out)) {
      if (!producer->isBeforeInBlock(op))
        continue;
      auto [ins, outs] = getInsAndOuts(op);
      if (llvm::any_of(ins, [&](Value in) { return getStorage(in) == getStorage(out) && overlap(in, out); })) {
        auto map = dyn_cast<LaunchMapOp>(op);
        if (reader || !map || map.getStreamAttr() != producer.getStreamAttr())
          return {};
        reader = map;
      }
      if (llvm::any_of(outs, [&](Value other) { return isSame(other, out); }))
        break; // another value from here on
    }
    return reader;
  }

  /// Lets the command that computes gradients of parameters add them to their buffers itself, at its place, if all of
  /// them are added.
  LaunchOp takeParameters(LaunchOp gradient) {
    SmallVector<Operation *> maps;
    SmallVector<Value> outs = {gradient.getOuts()[0]};
    for (Value out : gradient.getOuts().drop_front()) {
      LaunchMapOp map = getOnlyReader(gradient, out);
      if (!map || !map.getAccumulateAfterFirst() || !isCopy(map) || !isSame(map.getIns()[0], out) ||
          typeOf(map.getOuts()[0]) != typeOf(out))
        return gradient;
      maps.push_back(map);
      outs.push_back(map.getOuts()[0]);
    }
    if (maps.empty() || !canWriteWhileReading(gradient.getKernel(), gradient.getIns(), outs))
      return gradient;
    // The sums move up: behind the first of them its reduction may begin, which reads it.
    for (Operation *map : maps)
      if (!canMoveUp(cast<LaunchMapOp>(map), gradient, maps))
        return gradient;
    for (Value out : outs)
      if (Operation *buffer = out.getDefiningOp(); gradient->isBeforeInBlock(buffer))
        moveBefore(buffer, gradient);
    LaunchOp both =
        replace(gradient, gradient, gradient.getKernel(), gradient.getIns(), outs, gradient.getSettings(), true);
    erase(gradient);
    for (Operation *map : maps)
      erase(map);
    return both;
  }

  /// Makes the buffer that a map adds to the gradient of the norm's input an operand of the command.
  void takeAdditionTo(LaunchOp gradient) {
    Value dx = gradient.getOuts()[0];
    LaunchMapOp map = getOnlyReader(gradient, dx);
    bool addsAlready = gradient.getIns().size() > gradient.getRow().operands.least;
    if (!map || map.getAccumulateAfterFirst() || addsAlready || !canMove(gradient, map))
      return;
    SmallVector<Value> terms = getTerms(map);
    if (terms.size() != 2)
      return;
    if (!isSame(terms[0], dx))
      std::swap(terms[0], terms[1]);
    Value total = map.getOuts()[0];
    if (!isSame(terms[0], dx) || overlap(terms[1], dx) || typeOf(terms[1]).getShape() != typeOf(dx).getShape())
      return;
    SmallVector<Value> ins(gradient.getIns()), outs(gradient.getOuts());
    ins.push_back(terms[1]);
    outs[0] = total;
    if (!canWriteWhileReading(gradient.getKernel(), ins, outs))
      return;
    replace(map, gradient, gradient.getKernel(), ins, outs, gradient.getSettings(), gradient.getAccumulateAfterFirst());
    erase(gradient);
    erase(map);
  }

  const ScalarFunctions &functions;
  const DenseSet<int64_t> &shared;
  Block &block;
  llvm::StringSet<> &taken;
  CommandUses uses;
};

/// Returns the storages that several functions use, such as what a backward hands to its weight gradient.
DenseSet<int64_t> findShared(ProgramOp program) {
  DenseMap<int64_t, Operation *> userOf;
  DenseSet<int64_t> shared;
  program.walk([&](BufferOp buffer) {
    if (std::optional<int64_t> storage = getStorage(buffer.getResult()))
      if (userOf.try_emplace(*storage, buffer->getParentOp()).first->second != buffer->getParentOp())
        shared.insert(*storage);
  });
  return shared;
}

struct FuseNorms : sched::impl::FuseNormsBase<FuseNorms> {
  void runOnOperation() override {
    ScalarFunctions functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(kScalarFunctionAttr))
        functions[function.getName()] = function;
    DenseSet<int64_t> shared = findShared(getOperation());
    llvm::StringSet<> taken;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function->hasAttr(kScalarFunctionAttr))
        NormFusion(functions, shared, function.getBody().front(), taken).run();
    dropUnusedFunctions(getOperation(), taken);
  }
};

} // namespace
