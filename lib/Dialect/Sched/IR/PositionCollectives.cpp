#include "windlass/Dialect/Sched/IR/PositionCollectives.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

DenseI64ArrayAttr windlass::sched::getSpannedPositions(Operation *op) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return reduce.getPositionsAttr();
  auto collective = dyn_cast<LaunchCollectiveOp>(op);
  if (!collective)
    return {};
  auto communicator = getProgram(op).lookupSymbol<CommunicatorOp>(collective.getCommunicator());
  return communicator ? communicator.getPositionsAttr() : DenseI64ArrayAttr();
}

bool windlass::sched::spansPositions(Operation *op) { return static_cast<bool>(getSpannedPositions(op)); }

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
  out << " and positions [";
  llvm::interleaveComma(getSpannedPositions(op).asArrayRef(), out);
  out << "]";
  return text;
}

static bool haveOneShape(plan::MeshAttr a, plan::MeshAttr b) {
  return llvm::equal(a.getAxes(), b.getAxes(),
                     [](plan::AxisAttr x, plan::AxisAttr y) { return x.getSize() == y.getSize(); });
}

/// Checks that a collective of a program names positions in their order, its own among them.
static LogicalResult checkNames(Operation *op, ProgramOp program, int64_t count) {
  ArrayRef<int64_t> names = getSpannedPositions(op);
  bool ascends = std::adjacent_find(names.begin(), names.end(), std::greater_equal<int64_t>()) == names.end();
  if (names.empty() || !ascends || names.front() < 0 || names.back() >= count)
    return op->emitOpError("combines ") << describe(op) << ", but names must ascend from 0 to " << count - 1;
  if (!llvm::is_contained(names, int64_t(program.getPosition())))
    return op->emitOpError("combines ") << describe(op) << ", but stands in position " << program.getPosition();
  return success();
}

/// Returns a program's collectives over positions in the order of a step.
static FailureOr<SmallVector<Operation *>> listCollectives(ProgramOp program, const schedule::Schedule &step,
                                                           int64_t positions) {
  llvm::DenseSet<Attribute> communicators;
  for (auto communicator : program.getOps<CommunicatorOp>())
    if (communicator.getPositions())
      communicators.insert(communicator.getSymNameAttr());
  auto isListed = [&](Operation &op) {
    auto collective = dyn_cast<LaunchCollectiveOp>(op);
    return collective ? communicators.contains(collective.getCommunicatorAttr().getAttr()) : spansPositions(&op);
  };
  for (func::FuncOp function : getStepFunctions(program))
    for (Operation &op : function.getBody().getOps()) {
      if (!isListed(op))
        continue;
      if (!hasRole(function, StepRole::reduce) && !hasRole(function, StepRole::update))
        return op.emitOpError("combines over positions in a ")
               << stringifyStepRole(getStep(function).getRole()) << ", but only reductions and updates may";
      if (failed(checkNames(&op, program, positions)))
        return failure();
    }
  SmallVector<Operation *> list;
  for (const schedule::Action &action : step.actions) {
    if (schedule::isTransfer(action.kind) && !list.empty())
      return list.front()->emitOpError("combines over positions before position ")
             << program.getPosition() << " has sent and received all messages of the step";
    if (action.kind == schedule::ActionKind::Reduce || action.kind == schedule::ActionKind::Update)
      if (func::FuncOp function = getStepFunction(program, *getRole(action.kind), action.chunk))
        for (Operation &op : function.getBody().getOps())
          if (isListed(op))
            list.push_back(&op);
  }
  return list;
}

namespace {

/// Lets the collectives of all positions meet, each position's in its order.
class Meetings {
public:
  Meetings(SmallVector<ProgramOp> programs, std::vector<SmallVector<Operation *>> lists)
      : programs(std::move(programs)), lists(std::move(lists)), next(this->lists.size()) {}

  LogicalResult run() {
    for (size_t position = 0; position < lists.size();) {
      Operation *op = getNext(position);
      FailureOr<bool> hasMet = op ? meet(position, op) : FailureOr<bool>(false);
      if (failed(hasMet))
        return failure();
      // A meeting may be what an earlier position waits for.
      position = *hasMet ? 0 : position + 1;
    }
    for (size_t position = 0; position < lists.size(); ++position)
      if (Operation *op = getNext(position))
        return reportStuck(op);
    return success();
  }

private:
  Operation *getNext(size_t position) {
    return next[position] < lists[position].size() ? lists[position][next[position]] : nullptr;
  }
  bool isAtSamePositions(int64_t position, Operation *op) {
    Operation *its = getNext(position);
    return its && getSpannedPositions(its) == getSpannedPositions(op);
  }

  /// Whether all positions of `op`, the next of `position`, have come to it; they go on then.
  FailureOr<bool> meet(size_t position, Operation *op) {
    ArrayRef<int64_t> members = getSpannedPositions(op);
    if (!llvm::all_of(members, [&](int64_t member) { return isAtSamePositions(member, op); }))
      return false;
    for (int64_t member : members) {
      Operation *its = getNext(member);
      if (!haveOneShape(programs[member].getMesh(), programs[position].getMesh()))
        return its->emitOpError("combines over positions on the mesh ")
               << programs[member].getMesh() << ", but that of position " << position << " is "
               << programs[position].getMesh();
      if (std::string mine = describe(its), theirs = describe(op); mine != theirs)
        return its->emitOpError("combines ") << mine << ", but position " << position << " combines " << theirs;
    }
    for (int64_t member : members)
      ++next[member];
    return true;
  }

  LogicalResult reportStuck(Operation *op) {
    for (int64_t member : getSpannedPositions(op).asArrayRef()) {
      if (isAtSamePositions(member, op))
        continue;
      auto error = op->emitOpError("combines ") << describe(op) << ", but position " << member << " combines ";
      if (Operation *its = getNext(member))
        return error << describe(its) << " before it";
      return error << "nothing more over positions in a step";
    }
    llvm_unreachable("all positions of a collective that does not meet have come to it");
  }

  SmallVector<ProgramOp> programs;
  std::vector<SmallVector<Operation *>> lists;
  /// For each position, the number of collectives that have met.
  std::vector<size_t> next;
};

} // namespace

LogicalResult windlass::sched::checkPositionCollectives(ModuleOp module, const schedule::Pipeline &step) {
  SmallVector<ProgramOp> programs = getPrograms(module);
  std::vector<SmallVector<Operation *>> lists;
  for (auto [position, program] : llvm::enumerate(programs)) {
    FailureOr<SmallVector<Operation *>> list = listCollectives(program, step.positions[position], programs.size());
    if (failed(list))
      return failure();
    lists.push_back(std::move(*list));
  }
  return Meetings(std::move(programs), std::move(lists)).run();
}
