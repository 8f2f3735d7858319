#include "windlass/Dialect/Sched/Analysis/Owner.h"

#include "windlass/Dialect/Sched/IR/SchedOps.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

static StringAttr getId(Operation *op) { return op->getAttrOfType<StringAttr>(train::kIdAttr); }

static StringAttr getResourceName(Operation *user, FlatSymbolRefAttr name) {
  auto resource = SymbolTable::lookupNearestSymbolFrom<ResourceOp>(user, name);
  return resource && resource.getLogicalNameAttr() ? resource.getLogicalNameAttr() : name.getAttr();
}

static StringAttr getOwner(Value value) {
  // Along the first operands to what has a name.
  while (Operation *op = value.getDefiningOp()) {
    if (auto load = dyn_cast<LoadOp>(op))
      return getResourceName(op, load.getResourceAttr());
    if (StringAttr id = getId(op))
      return id;
    if (op->getNumOperands() == 0)
      return nullptr;
    value = op->getOperand(0);
  }
  // A value of the forward pass belongs to what reads it.
  for (Operation *user : value.getUsers())
    if (StringAttr id = getId(user))
      return id;
  return nullptr;
}

StringAttr sched::getOwner(Operation *op) {
  if (StringAttr id = getId(op))
    return id;
  if (auto add = dyn_cast<AddToOp>(op))
    return getResourceName(op, add.getResourceAttr());
  if (auto store = dyn_cast<StoreOp>(op))
    return getResourceName(op, store.getResourceAttr());
  if (op->getNumOperands() > 0)
    if (StringAttr owner = ::getOwner(op->getOperand(0))) {
      size_t others = isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op) ? op->getNumOperands() - 1 : 0;
      return others == 0 ? owner
                         : StringAttr::get(op->getContext(), owner.getValue() + " and " + Twine(others) + " more");
    }
  for (Value result : op->getResults())
    for (Operation *user : result.getUsers())
      if (StringAttr owner = getOwner(user))
        return owner;
  return nullptr;
}
