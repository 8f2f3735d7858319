#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_VERIFYASYNC
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

/// Only what later levels read is left of the plan.
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
  explicit Verifier(ProgramOp program) : program(program), mesh(program.getMesh()) {}

  LogicalResult run() {
    if (failed(checkStepFunctions(program)))
      return failure();
    for (Operation &op : *program.getBody())
      if (failed(checkTopLevel(op)))
        return failure();
    if (!schedule)
      return program.emitOpError("has no sched.schedule");
    if (failed(checkActions(schedule, program)))
      return failure();
    return checkStash();
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
    return success();
  }

  LogicalResult checkFunction(func::FuncOp function) {
    if (!getStep(function) || function.isExternal())
      return function.emitOpError("does not belong to L4");
    if (function.getNumArguments() != 0 && !hasRole(function, StepRole::backward))
      return function.emitOpError("takes ") << function.getNumArguments() << " values: only a backward takes any";
    if (function.getNumResults() != 0 && !hasRole(function, StepRole::forward))
      return function.emitOpError("returns ") << function.getNumResults() << " values: only a forward returns any";
    for (Operation &op : function.front())
      if (failed(checkNoPlan(op)) || failed(checkOp(op)))
        return failure();
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
    if (auto exchange = llvm::dyn_cast<AllToAllOp>(op))
      return checkShape(op, exchange.getAxes(), exchange.getConcatDim(), exchange.getSplitDim());
    if (llvm::isa<LoadOp, StoreOp, AddToOp, MapOp, func::ReturnOp, train::TrainOpInterface>(op))
      return success();
    return op.emitOpError("does not belong to L4");
  }

  LogicalResult checkAxes(Operation &op, ArrayAttr axes) {
    llvm::StringSet<> used;
    if (axes.empty())
      return op.emitOpError("names no axis");
    for (auto axis : axes.getAsRange<StringAttr>())
      if (failed(useAxis(&op, axis, used)))
        return failure();
    return success();
  }

  /// The result has the operand's shape, larger along `grown` and smaller along `shrunk` by the number of members.
  LogicalResult checkShape(Operation &op, ArrayAttr axes, std::optional<uint64_t> grown,
                           std::optional<uint64_t> shrunk) {
    if (failed(checkAxes(op, axes)))
      return failure();
    int64_t members = 1;
    for (auto axis : axes.getAsRange<StringAttr>())
      members *= mesh.sizeOf(axis.getValue());
    auto input = llvm::cast<RankedTensorType>(op.getOperand(0).getType());
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
    if (op.getResult(0).getType() != expected)
      return op.emitOpError("makes ") << op.getResult(0).getType() << ", but " << members << " members make "
                                      << expected;
    return success();
  }

  /// The step, whose order is legal, runs both functions.
  LogicalResult checkStash() {
    func::FuncOp forward = getStepFunction(program, StepRole::forward);
    func::FuncOp backward = getStepFunction(program, StepRole::backward);
    if (forward.getResultTypes() != backward.getArgumentTypes())
      return backward.emitOpError("takes another stash than the forward returns");
    return success();
  }

  ProgramOp program;
  plan::MeshAttr mesh;
  ScheduleOp schedule;
};

struct VerifyAsync : windlass::sched::impl::VerifyAsyncBase<VerifyAsync> {
  using VerifyAsyncBase::VerifyAsyncBase;

  void runOnOperation() override {
    if (failed(check(getOperation())))
      signalPassFailure();
  }

  static LogicalResult check(ModuleOp module) {
    if (getPrograms(module).empty())
      return module.emitError("has no sched.program");
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
    return success();
  }
};

} // namespace
