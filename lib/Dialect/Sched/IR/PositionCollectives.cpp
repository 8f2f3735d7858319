#include "windlass/Dialect/Sched/IR/PositionCollectives.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

bool windlass::sched::spansPositions(Operation *op) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getPositions();
  auto collective = dyn_cast<LaunchCollectiveOp>(op);
  if (!collective)
    return false;
  auto communicator = getProgram(op).lookupSymbol<CommunicatorOp>(collective.getCommunicator());
  return communicator && communicator.getPositions();
}

/// Returns a text of all that has to be equal where collectives meet.
static std::string describe(Operation *op) {
  std::string text;
  llvm::raw_string_ostream out(text);
  if (auto reduce = dyn_cast<AllReduceOp>(op)) {
    out << train::stringifyReductionKind(reduce.getKind()) << " of " << reduce.getInputs().getTypes() << " over "
        << reduce.getAxes();
  } else {
    auto collective = cast<LaunchCollectiveOp>(op);
    auto communicator = getProgram(op).lookupSymbol<CommunicatorOp>(collective.getCommunicator());
    out << stringifyCollectiveKind(collective.getKind()) << " "
        << train::stringifyReductionKind(collective.getReduction()) << " of " << collective.getIns().getTypes()
        << " over " << communicator.getAxes();
  }
  return text;
}

static bool haveOneShape(plan::MeshAttr a, plan::MeshAttr b) {
  return llvm::equal(a.getAxes(), b.getAxes(),
                     [](plan::AxisAttr x, plan::AxisAttr y) { return x.getSize() == y.getSize(); });
}

/// Returns a program's collectives over positions in the order of a step.
static FailureOr<SmallVector<Operation *>> listCollectives(ProgramOp program, const schedule::Schedule &step) {
  for (func::FuncOp function : getStepFunctions(program))
    if (!hasRole(function, StepRole::update))
      for (Operation &op : function.getBody().getOps())
        if (spansPositions(&op))
          return op.emitOpError("combines over positions in a ")
                 << stringifyStepRole(getStep(function).getRole()) << ", but only updates may";
  SmallVector<Operation *> list;
  for (const schedule::Action &action : step.actions) {
    if (schedule::isTransfer(action.kind) && !list.empty())
      return list.front()->emitOpError("combines over positions before position ")
             << program.getPosition() << " has sent and received all messages of the step";
    if (action.kind == schedule::ActionKind::Update)
      if (func::FuncOp update = getStepFunction(program, StepRole::update, action.chunk))
        for (Operation &op : update.getBody().getOps())
          if (spansPositions(&op))
            list.push_back(&op);
  }
  return list;
}

LogicalResult windlass::sched::checkPositionCollectives(ModuleOp module, const schedule::Pipeline &step) {
  SmallVector<ProgramOp> programs = getPrograms(module);
  SmallVector<Operation *> first;
  for (auto [position, program] : llvm::enumerate(programs)) {
    FailureOr<SmallVector<Operation *>> list = listCollectives(program, step.positions[position]);
    if (failed(list))
      return failure();
    if (position == 0) {
      first = std::move(*list);
      continue;
    }
    if (list->size() != first.size())
      return program.emitOpError("combines over positions ")
             << list->size() << " times in a step, but position 0 does so " << first.size() << " times";
    if (!first.empty() && !haveOneShape(program.getMesh(), programs.front().getMesh()))
      return list->front()->emitOpError("combines over positions on the mesh ")
             << program.getMesh() << ", but that of position 0 is " << programs.front().getMesh();
    for (auto [number, own, other] : llvm::enumerate(*list, first))
      if (std::string mine = describe(own), theirs = describe(other); mine != theirs)
        return own->emitOpError("combines ")
               << mine << " as number " << number << " over positions, but position 0 combines " << theirs;
  }
  return success();
}
