#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/Updates.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

namespace windlass::sched {
#define GEN_PASS_DEF_JOINUPDATES
#include "windlass/Dialect/Sched/Transforms/Passes.h.inc"
} // namespace windlass::sched

/// The most elements of one command. Its work then takes long compared with a launch, and a measurement of it needs
/// little memory.
static constexpr int64_t kMostElements = int64_t(1) << 22;

namespace {

/// Steps that become one, at the place of the last.
struct Group {
  SmallVector<LaunchOp> updates;
  int64_t elements = 0;
  SmallVector<Extent> read, written;
};

class UpdateJoiner {
public:
  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isa<BufferOp>(op))
        continue;
      // Nobody may wait longer for a step, and a step for nobody, than before.
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
      close([&](const Group &group) {
        return meet(written, group.read) || meet(written, group.written) || meet(read, group.written);
      });
      if (auto launch = dyn_cast<LaunchOp>(op); launch && isJoinable(launch))
        add(launch, read, written);
    }
    close([](const Group &) { return true; });
  }

private:
  static bool meet(ArrayRef<Extent> a, ArrayRef<Extent> b) {
    return llvm::any_of(
        a, [&](const Extent &x) { return llvm::any_of(b, [&](const Extent &y) { return x.overlaps(y); }); });
  }

  /// Whether the launch is a step of one parameter, on dense buffers, whose kernel takes several.
  static bool isJoinable(LaunchOp launch) {
    std::optional<UpdateOperands> its = getUpdateOperands(launch);
    return its && its->parameters < launch.getRow().operands.mostParameters && its->parameters == 1 &&
           typeOf(launch.getIns()[0]).getNumElements() <= kMostElements &&
           llvm::all_of(
               launch.getIns(), [](Value in) { return typeOf(in).getElementType().isF32(); }) &&
           llvm::all_of(launch->getOperands(), [](Value buffer) { return typeOf(buffer).getLayout().isIdentity(); });
  }

  static bool isAlike(LaunchOp a, LaunchOp b) {
    size_t operands = getUpdateOperands(a)->operands;
    auto scalars = [&](LaunchOp op) { return op.getIns().drop_front(operands); };
    auto inOneArena = [](auto pair) { return getPlace(std::get<0>(pair)).arena == getPlace(std::get<1>(pair)).arena; };
    return a.getKernel() == b.getKernel() && a.getStreamAttr() == b.getStreamAttr() &&
           a.getSettings() == b.getSettings() && a.getOuts().size() == b.getOuts().size() &&
           typeOf(a.getOuts().back()).getElementType() == typeOf(b.getOuts().back()).getElementType() &&
           llvm::all_of(llvm::zip_equal(a.getIns(), b.getIns()), inOneArena) &&
           llvm::all_of(llvm::zip_equal(a.getOuts(), b.getOuts()), inOneArena) &&
           llvm::all_of(llvm::zip_equal(scalars(a), scalars(b)),
                        [](auto pair) { return isSame(std::get<0>(pair), std::get<1>(pair)); });
  }

  void add(LaunchOp launch, ArrayRef<Extent> read, ArrayRef<Extent> written) {
    int64_t elements = typeOf(launch.getIns()[0]).getNumElements();
    auto alike = [&](const Group &group) { return isAlike(group.updates.front(), launch); };
    close([&](const Group &group) {
      return alike(group) && (group.updates.size() == launch.getRow().operands.mostParameters ||
                              group.elements + elements > kMostElements);
    });
    auto *group = llvm::find_if(open, alike);
    if (group == open.end())
      group = open.insert(open.end(), Group());
    group->updates.push_back(launch);
    group->elements += elements;
    llvm::append_range(group->read, read);
    llvm::append_range(group->written, written);
  }

  void close(llvm::function_ref<bool(const Group &)> isDone) {
    for (const Group &group : open)
      if (isDone(group) && group.updates.size() > 1)
        join(group.updates);
    llvm::erase_if(open, isDone);
  }

  static void join(ArrayRef<LaunchOp> updates) {
    LaunchOp first = updates.front(), last = updates.back();
    size_t operands = getUpdateOperands(first)->operands;
    SmallVector<Value> ins, outs;
    for (LaunchOp update : updates) {
      llvm::append_range(ins, update.getIns().take_front(operands));
      llvm::append_range(outs, update.getOuts());
    }
    llvm::append_range(ins, last.getIns().drop_front(operands));
    OpBuilder builder(last);
    auto all = LaunchOp::create(builder, first.getLoc(), first.getKernel(), first.getStream(), ins, outs,
                                first.getSettings(), false, false);
    if (auto id = first->getAttrOfType<StringAttr>(train::kIdAttr))
      all->setAttr(train::kIdAttr,
                   builder.getStringAttr(id.getValue() + " and " + Twine(updates.size() - 1) + " more"));
    for (LaunchOp update : updates)
      update.erase();
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
