#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/Updates.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/Dialect/Train/IR/Optimizers.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_JOINUPDATES
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

static bool isSquareSum(LaunchOp launch) { return launch.getKernel() == KernelKind::square_sum; }

/// Whether a command for several parameters may have the buffer: state in f32, or a gradient in f32 or bf16.
static bool isDenseFloat(Value buffer) {
  Type element = typeOf(buffer).getElementType();
  return (element.isF32() || element.isBF16()) && typeOf(buffer).getLayout().isIdentity();
}

namespace {

/// Commands that become one, at the place of the last: steps, or sums of squares of which each adds to the one before.
struct Group {
  SmallVector<LaunchOp> commands;
  int64_t elements = 0;
  SmallVector<Extent> read, written;
};

class UpdateJoiner {
public:
  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<BufferOp>(op))
        continue;
      // Nobody may wait longer for a command, and a command for nobody, than before.
      if (!isa<LaunchOp, LaunchMapOp>(op)) {
        close([](const Group &) { return true; });
        continue;
      }
      SmallVector<Extent> read, written;
      auto [ins, outs] = getInsAndOuts(&op);
      for (Value in : ins)
        read.push_back(getExtent(in));
      for (Value out : outs)
        written.push_back(getExtent(out));
      auto launch = dyn_cast<LaunchOp>(op);
      bool joins = launch && isJoinable(launch);
      close([&](const Group &group) {
        // A sum that goes on writes what the group writes.
        bool goesOn = joins && isSquareSum(launch) && isAlike(group.commands.front(), launch);
        return meet(written, group.read) || (!goesOn && meet(written, group.written)) || meet(read, group.written);
      });
      if (joins)
        add(launch, read, written);
    }
    close([](const Group &) { return true; });
  }

private:
  static bool meet(ArrayRef<Extent> a, ArrayRef<Extent> b) {
    return llvm::any_of(
        a, [&](const Extent &x) { return llvm::any_of(b, [&](const Extent &y) { return x.overlaps(y); }); });
  }

  /// Whether the launch is a step of one parameter, or the sum of one gradient's squares, on dense buffers, whose
  /// kernel takes several.
  static bool isJoinable(LaunchOp launch) {
    if (isSquareSum(launch))
      return launch.getIns().size() == 1 && !launch.getAccumulateAfterFirst() &&
             llvm::all_of(launch->getOperands(), isDenseFloat);
    std::optional<UpdateOperands> its = getUpdateOperands(launch);
    return its && its->parameters < launch.getRow().operands.mostParameters && its->parameters == 1 &&
           typeOf(launch.getIns()[0]).getNumElements() <= train::kMostJoinedElements &&
           llvm::all_of(launch.getIns(), isDenseFloat) &&
           llvm::all_of(launch.getOuts(), [](Value buffer) { return typeOf(buffer).getLayout().isIdentity(); });
  }

  /// Whether `next` may be in a group that begins with `first`.
  static bool isAlike(LaunchOp first, LaunchOp next) {
    auto haveOneKind = [](auto pair) {
      auto [a, b] = pair;
      return getPlace(a).arena == getPlace(b).arena && typeOf(a).getElementType() == typeOf(b).getElementType();
    };
    if (first.getKernel() != next.getKernel() || first.getStreamAttr() != next.getStreamAttr() ||
        first.getSettings() != next.getSettings() || first.getOuts().size() != next.getOuts().size() ||
        !llvm::all_of(llvm::zip_equal(first.getIns(), next.getIns()), haveOneKind))
      return false;
    // In a backward, an instance of a repeated block keeps its own.
    bool isInLast = first->hasAttr(kInLastAttr);
    if (isInLast != next->hasAttr(kInLastAttr) ||
        (isInLast && first->getAttr(plan::kRepeatAttr) != next->getAttr(plan::kRepeatAttr)))
      return false;
    if (isSquareSum(first))
      return next.getAccumulate() && isSame(first.getOuts()[0], next.getOuts()[0]);
    size_t operands = getUpdateOperands(first)->operands;
    auto scalars = [&](LaunchOp op) { return op.getIns().drop_front(operands); };
    return llvm::all_of(llvm::zip_equal(first.getOuts(), next.getOuts()), haveOneKind) &&
           llvm::all_of(llvm::zip_equal(scalars(first), scalars(next)),
                        [](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
  }

  /// Whether the kernel cannot take one more, of `elements` elements.
  static bool isFull(const Group &group, int64_t elements) {
    LaunchOp first = group.commands.front();
    const OperandCounts &operands = first.getRow().operands;
    if (isSquareSum(first))
      return group.commands.size() == operands.most;
    return group.commands.size() == operands.mostParameters || group.elements + elements > train::kMostJoinedElements;
  }

  void add(LaunchOp launch, ArrayRef<Extent> read, ArrayRef<Extent> written) {
    int64_t elements = typeOf(launch.getIns()[0]).getNumElements();
    auto alike = [&](const Group &group) { return isAlike(group.commands.front(), launch); };
    close([&](const Group &group) { return alike(group) && isFull(group, elements); });
    auto *group = llvm::find_if(open, alike);
    if (group == open.end())
      group = open.insert(open.end(), Group());
    group->commands.push_back(launch);
    group->elements += elements;
    llvm::append_range(group->read, read);
    llvm::append_range(group->written, written);
  }

  void close(llvm::function_ref<bool(const Group &)> isDone) {
    // The commands of a joined group are gone, so that it is asked once.
    llvm::erase_if(open, [&](const Group &group) {
      bool closes = isDone(group);
      if (closes && group.commands.size() > 1)
        join(group.commands);
      return closes;
    });
  }

  static void join(ArrayRef<LaunchOp> commands) {
    LaunchOp first = commands.front(), last = commands.back();
    SmallVector<Value> ins, outs;
    if (isSquareSum(first)) {
      for (LaunchOp command : commands)
        ins.push_back(command.getIns()[0]);
      outs.push_back(last.getOuts()[0]);
    } else {
      size_t operands = getUpdateOperands(first)->operands;
      for (LaunchOp command : commands) {
        llvm::append_range(ins, command.getIns().take_front(operands));
        llvm::append_range(outs, command.getOuts());
      }
      llvm::append_range(ins, last.getIns().drop_front(operands));
    }
    OpBuilder builder(last);
    auto all = LaunchOp::create(builder, first.getLoc(), first.getKernel(), first.getStream(), ins, outs,
                                first.getSettings(), first.getAccumulate(), false);
    if (auto id = first->getAttrOfType<StringAttr>(train::kIdAttr))
      all->setAttr(train::kIdAttr,
                   builder.getStringAttr(id.getValue() + " and " + Twine(commands.size() - 1) + " more"));
    if (Attribute isInLast = first->getAttr(kInLastAttr)) {
      all->setAttr(kInLastAttr, isInLast);
      copyRepeat(first, all);
    }
    for (LaunchOp command : commands)
      command.erase();
  }

  SmallVector<Group, 2> open;
};

struct JoinUpdates : sched::impl::JoinUpdatesBase<JoinUpdates> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function->hasAttr(kScalarFunctionAttr))
        UpdateJoiner().run(function.getBody().front());
  }
};

} // namespace
