#include "windlass/Dialect/Sched/IR/PositionCollectives.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_VERIFYASYNC
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

/// Checks that the op has only those attributes of the plan that later levels read.
static LogicalResult checkNoPlan(Operation &op) {
  if (llvm::isa_and_nonnull<plan::PlanDialect>(op.getDialect()))
    return op.emitOpError("does not belong to L4: reshards are collectives here");
  for (NamedAttribute attribute : op.getDiscardableAttrs())
    if (attribute.getName().getValue().starts_with("plan.") && attribute.getName() != plan::kRepeatAttr)
      return op.emitOpError("still has ") << attribute.getName();
  return success();
}

namespace {

class Verifier {
public:
  explicit Verifier(ProgramOp program)
      : program(program), symbols(program), mesh(program.getMesh()),
        placement(getPlacement(program->getParentOfType<ModuleOp>())) {}

  LogicalResult run() {
    if (failed(checkStepFunctions(program)))
      return failure();
    for (Operation &op : *program.getBody())
      if (failed(checkTopLevel(op)))
        return failure();
    if (!schedule)
      return program.emitOpError("has no sched.schedule");
    if (failed(checkActions(schedule)))
      return failure();
    return success(succeeded(checkStash()) && succeeded(checkBorders()));
  }

private:
  LogicalResult checkTopLevel(Operation &op) {
    if (auto resource = llvm::dyn_cast<ResourceOp>(op))
      return checkResource(resource);
    if (auto found = llvm::dyn_cast<ScheduleOp>(op)) {
      if (schedule)
        return op.emitOpError("stands beside another schedule");
      schedule = found;
      return success();
    }
    if (failed(checkNoPlan(op)))
      return failure();
    auto function = llvm::dyn_cast<func::FuncOp>(op);
    if (!function)
      return op.emitOpError("does not belong to L4");
    if (function->hasAttr(kScalarFunctionAttr))
      return success();
    return checkFunction(function);
  }

  /// Adds `axis` to `used`; fails where the mesh does not have it or `used` holds it already.
  LogicalResult useAxis(Operation *op, StringAttr axis, llvm::StringSet<> &used) {
    if (mesh.indexOf(axis.getValue()) < 0)
      return op->emitOpError("names axis ") << axis << ", which the mesh " << mesh << " does not have";
    if (!used.insert(axis.getValue()).second)
      return op->emitOpError("names axis ") << axis << " twice";
    return success();
  }

  LogicalResult checkResource(ResourceOp resource) {
    plan::LayoutAttr layout = resource.getLayout();
    llvm::StringSet<> used;
    auto use = [&](StringAttr axis) { return useAxis(resource, axis, used); };
    for (plan::DimLayoutAttr dim : layout.getDims())
      for (plan::FactorLayoutAttr factor : dim.getFactors()) {
        int64_t rest = factor.getSize();
        for (StringAttr axis : factor.getAxes()) {
          if (failed(use(axis)))
            return failure();
          if (rest % mesh.sizeOf(axis.getValue()) != 0)
            return resource.emitOpError("has a factor of size ")
                   << factor.getSize() << ", which axis " << axis << " does not divide evenly";
          rest /= mesh.sizeOf(axis.getValue());
        }
      }
    for (StringAttr axis : layout.getFlat())
      if (failed(use(axis)))
        return failure();
    for (plan::UnreducedAttr unreduced : layout.getUnreduced())
      if (failed(use(unreduced.getAxis())))
        return failure();
    RankedTensorType local = layout.getLocalType(resource.getGlobalTensorType(), mesh);
    if (local != resource.getTensorType())
      return resource.emitOpError("is of type ") << resource.getType() << ", but its layout makes it " << local;
    if (resource.getArena())
      return resource.emitOpError("has an arena, which belongs to L5");
    return resource.isOfSlot() ? checkChunk(resource) : success();
  }

  LogicalResult checkChunk(ResourceOp resource) {
    int64_t chunk = resource.getChunkNumber();
    if (failed(checkOwnChunk(resource, chunk)))
      return failure();
    if (!resource.isBorder())
      return success();
    int64_t peer = *resource.getPeer();
    if (peer != placement.getPrevious(chunk) && peer != placement.getNext(chunk))
      return resource.emitOpError("names peer ") << peer << ", which is no neighbour of chunk " << chunk;
    if (!placement.crossesPositions(chunk, peer))
      return resource.emitOpError("names peer ") << peer << ", which is on the position of chunk " << chunk << " too";
    return success();
  }

  LogicalResult checkOwnChunk(Operation *op, int64_t chunk) {
    if (chunk < 0 || chunk >= placement.countChunks() ||
        placement.positionOf[chunk] != static_cast<int64_t>(program.getPosition()))
      return op->emitOpError("is of chunk ")
             << chunk << ", which position " << program.getPosition() << " does not run";
    return success();
  }

  /// A forward reads inputs and what the chunk before sends, and makes what the next one receives; a backward reads
  /// what the next chunk sends, and makes what the one before receives. A slot's inputs reach the backward in the
  /// stash.
  LogicalResult checkSlotUse(func::FuncOp function, Operation &op, FlatSymbolRefAttr name) {
    auto resource = symbols.lookup<ResourceOp>(name.getAttr());
    StepAttr step = getStep(function);
    if (!resource.isOfSlot() || step.getRole() == StepRole::evaluate)
      return success();
    if (resource.getChunkNumber() != step.getChunk())
      return op.emitOpError("uses ") << name << " of chunk " << resource.getChunkNumber() << " in a function of chunk "
                                     << step.getChunk();
    bool isLoad = llvm::isa<LoadOp>(op);
    StepRole role = StepRole::forward;
    if (resource.isBorder() && (resource.getPeer() == placement.getNext(step.getChunk())) == isLoad)
      role = StepRole::backward;
    if (isLoad == (resource.getKind() == ResourceKind::sent) || step.getRole() != role)
      return op.emitOpError(isLoad ? "loads " : "writes ")
             << name << ", a resource of kind " << stringifyResourceKind(resource.getKind())
             << (resource.isBorder() ? " with that peer" : "") << ", in a " << stringifyStepRole(step.getRole());
    return success();
  }

  LogicalResult checkFunction(func::FuncOp function) {
    if (!getStep(function) || function.isExternal())
      return function.emitOpError("does not belong to L4");
    StepAttr step = getStep(function);
    if (function.getNumArguments() != 0 && !isOfBackward(step.getRole()))
      return function.emitOpError("takes ") << function.getNumArguments() << " values: only a backward takes any";
    bool hasReader =
        step.getRole() == StepRole::backward && getStepFunction(program, StepRole::weight_gradient, step.getChunk());
    if (function.getNumResults() != 0 && !hasReader && step.getRole() != StepRole::forward)
      return function.emitOpError("returns ")
             << function.getNumResults() << " values: only a forward returns any, and a backward in two parts";
    if (failed(checkOwnChunk(function, step.getChunk())))
      return failure();
    llvm::DenseMap<Value, plan::MemoryKind> memories;
    for (Operation &op : function.front()) {
      if (failed(checkNoPlan(op)) || failed(checkOp(op)) || failed(checkMemory(op, memories)))
        return failure();
      if (auto name = op.getAttrOfType<FlatSymbolRefAttr>("resource"))
        if (failed(checkSlotUse(function, op, name)))
          return failure();
    }
    return success();
  }

  LogicalResult checkOp(Operation &op) {
    if (auto reduce = llvm::dyn_cast<AllReduceOp>(op))
      return checkAxes(op, reduce.getAxes());
    if (auto gather = llvm::dyn_cast<AllGatherOp>(op))
      return checkShape(op, gather.getAxes(), gather.getDim(), std::nullopt);
    if (auto scatter = llvm::dyn_cast<ReduceScatterOp>(op))
      return checkShape(op, scatter.getAxes(), std::nullopt, scatter.getDim());
    if (auto part = llvm::dyn_cast<OwnPartOp>(op))
      return checkShape(op, part.getAxes(), std::nullopt, part.getDim());
    if (auto permute = llvm::dyn_cast<PermuteOp>(op))
      return checkAxes(op, permute.getAxes());
    if (auto gather = llvm::dyn_cast<GatherRowsOp>(op))
      return checkRows(gather);
    if (auto scatter = llvm::dyn_cast<ScatterRowsOp>(op))
      return checkRows(scatter);
    if (auto exchange = llvm::dyn_cast<AllToAllOp>(op))
      return checkShape(op, exchange.getAxes(), exchange.getConcatDim(), exchange.getSplitDim());
    if (llvm::isa<LoadOp, StoreOp, AddToOp, MapOp, MoveOp, func::ReturnOp, train::TrainOpInterface>(op))
      return success();
    return op.emitOpError("does not belong to L4");
  }

  /// Checks that the operands of an operator are in one kind of memory, which runs it, and notes where its results are.
  /// `memories` holds the values that are elsewhere than on the device.
  LogicalResult checkMemory(Operation &op, llvm::DenseMap<Value, plan::MemoryKind> &memories) {
    auto getMemory = [&](Value value) {
      auto found = memories.find(value);
      return found == memories.end() ? plan::MemoryKind::device : found->second;
    };
    plan::MemoryKind memory = plan::MemoryKind::device;
    if (op.getNumOperands() > 0)
      memory = getMemory(op.getOperand(0));
    for (Value operand : op.getOperands())
      if (getMemory(operand) != memory)
        return op.emitOpError("has operands in memory of kind ")
               << stringifyMemoryKind(memory) << " and of kind " << stringifyMemoryKind(getMemory(operand))
               << ": bring them to one with sched.move";
    auto name = op.getAttrOfType<FlatSymbolRefAttr>("resource");
    auto resource = name ? symbols.lookup<ResourceOp>(name.getValue()) : ResourceOp();
    if (auto move = llvm::dyn_cast<MoveOp>(op)) {
      if (!findMovingKind(memory, move.getMemory()))
        return op.emitOpError("moves a value in memory of kind ")
               << stringifyMemoryKind(memory) << " to kind " << stringifyMemoryKind(move.getMemory())
               << ": values move between the device and the host, and between the host and the disk";
      memory = move.getMemory();
    } else if (llvm::isa<LoadOp>(op)) {
      memory = resource.getLayout().getMemory();
    } else if (resource && resource.getLayout().getMemory() != memory) {
      return op.emitOpError("writes a value in memory of kind ")
             << stringifyMemoryKind(memory) << " to " << name << ", which is of kind "
             << stringifyMemoryKind(resource.getLayout().getMemory());
    } else if (memory != plan::MemoryKind::device &&
               !llvm::isa<StoreOp, AddToOp, MapOp, train::AccumulateOp, train::ScalarOpInterface>(op)) {
      const KernelRow *row = findRow(&op);
      if (!row || !row->runsOnHost)
        return op.emitOpError("reads memory of kind ") << stringifyMemoryKind(memory) << ", but runs on devices only";
    }
    if (memory == plan::MemoryKind::disk && !llvm::isa<LoadOp, StoreOp, MoveOp>(op))
      return op.emitOpError("reads memory of kind disk, where nothing computes: bring it to the host with sched.move");
    if (memory != plan::MemoryKind::device)
      for (Value result : op.getResults())
        memories[result] = memory;
    return success();
  }

  LogicalResult checkAxes(Operation &op, ArrayAttr axes) {
    llvm::StringSet<> used;
    if (axes.empty() && !spansPositions(&op))
      return op.emitOpError("names no axis");
    for (auto axis : axes.getAsRange<StringAttr>())
      if (failed(useAxis(&op, axis, used)))
        return failure();
    return success();
  }

  int64_t countMembers(ArrayAttr axes) {
    int64_t members = 1;
    for (auto axis : axes.getAsRange<StringAttr>())
      members *= mesh.sizeOf(axis.getValue());
    return members;
  }

  /// Checks that the rows of an exchange are those of all members.
  template <class Op> LogicalResult checkRows(Op op) {
    if (failed(checkAxes(*op, op.getAxes())))
      return failure();
    int64_t members = countMembers(op.getAxes());
    if (op.getMembers() != members)
      return op.emitOpError("exchanges rows of ") << op.getMembers() << " members, but there are " << members;
    return success();
  }

  /// Checks that each result has its operand's shape, larger along `grown` and smaller along `shrunk` by the number of
  /// members.
  LogicalResult checkShape(Operation &op, ArrayAttr axes, std::optional<uint64_t> grown,
                           std::optional<uint64_t> shrunk) {
    if (failed(checkAxes(op, axes)))
      return failure();
    int64_t members = countMembers(axes);
    for (auto [operand, result] : llvm::zip_equal(op.getOperandTypes(), op.getResultTypes()))
      if (failed(checkShape(op, members, llvm::cast<RankedTensorType>(operand), result, grown, shrunk)))
        return failure();
    return success();
  }

  LogicalResult checkShape(Operation &op, int64_t members, RankedTensorType input, Type result,
                           std::optional<uint64_t> grown, std::optional<uint64_t> shrunk) {
    uint64_t rank = input.getRank();
    for (std::optional<uint64_t> dim : {grown, shrunk})
      if (dim && *dim >= rank)
        return op.emitOpError("names dim ") << *dim << " of " << input;
    if (grown == shrunk)
      return op.emitOpError("splits and joins dim ") << *grown;
    SmallVector<int64_t> shape(input.getShape());
    if (grown)
      shape[*grown] *= members;
    if (shrunk) {
      if (shape[*shrunk] % members != 0)
        return op.emitOpError("splits a dim of size ") << shape[*shrunk] << " among " << members << " members";
      shape[*shrunk] /= members;
    }
    auto expected = RankedTensorType::get(shape, input.getElementType());
    if (result != expected)
      return op.emitOpError("makes ") << result << ", but " << members << " members make " << expected;
    return success();
  }

  /// The step, whose order is legal, runs these functions.
  LogicalResult checkStash() {
    for (func::FuncOp forward : getStepFunctions(program)) {
      if (!hasRole(forward, StepRole::forward))
        continue;
      int64_t chunk = getStep(forward).getChunk();
      func::FuncOp backward = getStepFunction(program, StepRole::backward, chunk),
                   weightGradient = getStepFunction(program, StepRole::weight_gradient, chunk);
      if (!backward)
        continue;
      if (forward.getResultTypes() != backward.getArgumentTypes())
        return backward.emitOpError("takes another stash than the forward returns");
      SmallVector<Type> handed(forward.getResultTypes());
      llvm::append_range(handed, backward.getResultTypes());
      if (weightGradient && weightGradient.getArgumentTypes() != ArrayRef(handed))
        return weightGradient.emitOpError("takes other values than the forward and the backward return");
    }
    return success();
  }

  /// Checks that both sides of a border have the same types in the same order.
  LogicalResult checkBorders() {
    for (ResourceOp resource : program.getOps<ResourceOp>()) {
      if (!resource.isBorder())
        continue;
      int64_t chunk = resource.getChunkNumber(), peer = *resource.getPeer();
      bool isSent = resource.getKind() == ResourceKind::sent;
      SmallVector<ResourceOp> own = getBorder(program, resource.getKind(), chunk, peer);
      ProgramOp other = getPrograms(program->getParentOfType<ModuleOp>())[placement.positionOf[peer]];
      SmallVector<ResourceOp> others =
          getBorder(other, isSent ? ResourceKind::received : ResourceKind::sent, peer, chunk);
      size_t place = llvm::find(own, resource) - own.begin();
      if (place >= others.size())
        return resource.emitOpError(isSent ? "is sent to" : "is received from")
               << " chunk " << peer << ", which " << (isSent ? "receives" : "sends") << " " << others.size()
               << " values";
      if (others[place].getGlobalType() != resource.getGlobalType())
        return resource.emitOpError("has type ") << resource.getGlobalType() << " but @" << others[place].getSymName()
                                                 << " of chunk " << peer << " has " << others[place].getGlobalType();
      // Each rank exchanges what it has with the one of the same number.
      if (others[place].getType() != resource.getType() || others[place].getLayout() != resource.getLayout())
        return resource.emitOpError("has layout ")
               << resource.getLayout() << " but @" << others[place].getSymName() << " of chunk " << peer << " has "
               << others[place].getLayout() << ": a value has one layout on both sides of a border";
    }
    return success();
  }

  ProgramOp program;
  /// Looks names up at once: a large program has thousands of resources, and more loads and stores of them.
  SymbolTable symbols;
  plan::MeshAttr mesh;
  schedule::Placement placement;
  ScheduleOp schedule;
};

struct VerifyAsync : windlass::sched::impl::VerifyAsyncBase<VerifyAsync> {
  using VerifyAsyncBase::VerifyAsyncBase;

  void runOnOperation() override {
    if (failed(check(getOperation())))
      signalPassFailure();
  }

  static LogicalResult check(ModuleOp module) {
    if (failed(checkPrograms(module)))
      return failure();
    for (Operation &op : *module.getBody()) {
      if (auto program = llvm::dyn_cast<ProgramOp>(op)) {
        if (failed(Verifier(program).run()))
          return failure();
        continue;
      }
      if (failed(checkNoPlan(op)))
        return failure();
      if (!llvm::isa<train::ParameterOp>(op))
        return op.emitOpError("does not belong to L4: a module has parameters and programs");
    }
    return checkSteps(module);
  }
};

} // namespace
