#include "Blocks.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::train;

std::optional<Place> train::findPlace(StringRef id, unsigned depth) {
  for (size_t begin = 0; begin < id.size();) {
    size_t end = id.find_first_of("./", begin);
    if (end == StringRef::npos)
      return std::nullopt;
    StringRef component = id.slice(begin, end);
    StringRef name = component.rtrim("0123456789");
    int64_t index = 0;
    if (name.size() < component.size() && !component.drop_front(name.size()).getAsInteger(10, index)) {
      if (depth == 0)
        return Place{id.take_front(begin + name.size()).rtrim("./_").str(), index};
      --depth;
    }
    begin = end + 1;
  }
  return std::nullopt;
}

bool train::isForward(Operation *op) { return !isa<StashOp>(op) && !op->hasAttr(kForwardAttr); }

llvm::DenseSet<Operation *> train::findWeightless(Block &body) {
  SymbolTable symbols(body.getParentOp()->getParentOfType<ModuleOp>());
  llvm::DenseSet<Operation *> weightless;
  for (Operation &op : body) {
    if (auto read = dyn_cast<ReadOp>(op))
      if (auto parameter = symbols.lookup<ParameterOp>(read.getParameter());
          parameter && parameter.getRole() != Role::buffer)
        continue;
    if (llvm::all_of(op.getOperands(), [&](Value operand) {
          return !operand.getDefiningOp() || weightless.contains(operand.getDefiningOp());
        }))
      weightless.insert(&op);
  }
  return weightless;
}

static bool isViewOfArgument(Operation *op) {
  while (op) {
    if (!isa<BroadcastOp, ReshapeOp, SliceOp, TransposeOp>(op))
      return false;
    op = op->getOperand(0).getDefiningOp();
  }
  return true;
}

llvm::DenseSet<Operation *> train::findShared(Block &body, const llvm::DenseSet<Operation *> &weightless,
                                              unsigned depth) {
  auto placeOf = [&](Operation *op) {
    auto id = op->getAttrOfType<StringAttr>(kIdAttr);
    return id ? findPlace(id.getValue(), depth) : std::nullopt;
  };
  llvm::DenseSet<Operation *> shared;
  for (Operation &op : llvm::reverse(body)) {
    if (!weightless.contains(&op))
      continue;
    std::optional<Place> own = placeOf(&op);
    bool isShared = isViewOfArgument(&op) || llvm::any_of(op.getUsers(), [&](Operation *user) {
                      if (shared.contains(user))
                        return true;
                      std::optional<Place> place = own ? placeOf(user) : std::nullopt;
                      return place && place->prefix == own->prefix && place->index != own->index;
                    });
    if (isShared)
      shared.insert(&op);
  }
  return shared;
}
