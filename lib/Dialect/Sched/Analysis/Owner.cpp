#include "windlass/Dialect/Sched/Analysis/Owner.h"

#include "windlass/Dialect/Sched/IR/SchedOps.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

static StringAttr getId(Operation *op) { return op->getAttrOfType<StringAttr>(train::kIdAttr); }

static StringAttr getResourceName(FlatSymbolRefAttr name, const SymbolTable &symbols) {
  auto resource = symbols.lookup<ResourceOp>(name.getValue());
  return resource && resource.getLogicalNameAttr() ? resource.getLogicalNameAttr() : name.getAttr();
}

static StringAttr getOwner(Value value, const SymbolTable &symbols) {
  // Along the first operands to what has a name.
  while (Operation *op = value.getDefiningOp()) {
    if (auto load = dyn_cast<LoadOp>(op))
      return getResourceName(load.getResourceAttr(), symbols);
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

StringAttr sched::getOwner(Operation *op, const SymbolTable &symbols) {
  if (StringAttr id = getId(op))
    return id;
  if (auto add = dyn_cast<AddToOp>(op))
    return getResourceName(add.getResourceAttr(), symbols);
  if (auto store = dyn_cast<StoreOp>(op))
    return getResourceName(store.getResourceAttr(), symbols);
  if (op->getNumOperands() > 0)
    if (StringAttr owner = ::getOwner(op->getOperand(0), symbols)) {
      size_t others = isa<AllReduceOp, AllGatherOp, ReduceScatterOp>(op) ? op->getNumOperands() - 1 : 0;
      return others == 0 ? owner
                         : StringAttr::get(op->getContext(), owner.getValue() + " and " + Twine(others) + " more");
    }
  for (Value result : op->getResults())
    for (Operation *user : result.getUsers())
      if (StringAttr owner = getOwner(user, symbols))
        return owner;
  return nullptr;
}
