#include "windlass/Dialect/Sched/IR/Programs.h"

using namespace mlir;
using namespace windlass::sched;

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name, plan::MeshAttr mesh) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getMeshAttrName(state.name), mesh);
  state.addRegion()->emplaceBlock();
}

SmallVector<ProgramOp> windlass::sched::getPrograms(ModuleOp module) {
  return llvm::to_vector(module.getOps<ProgramOp>());
}

FailureOr<ProgramOp> windlass::sched::getOnlyProgram(ModuleOp module) {
  SmallVector<ProgramOp> programs = getPrograms(module);
  if (programs.size() == 1)
    return programs.front();
  if (programs.empty())
    return module.emitError("has no sched.program");
  return module.emitError("has ") << programs.size() << " programs: plans of one position are supported only";
}

ProgramOp windlass::sched::getProgram(Operation *op) {
  auto program = llvm::dyn_cast<ProgramOp>(op);
  return program ? program : op->getParentOfType<ProgramOp>();
}
