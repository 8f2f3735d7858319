#include "windlass/Dialect/Sched/IR/Programs.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name, plan::MeshAttr mesh) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getMeshAttrName(state.name), mesh);
  state.addRegion()->emplaceBlock();
}

SmallVector<ProgramOp> windlass::sched::getPrograms(ModuleOp module) {
  return llvm::to_vector(module.getOps<ProgramOp>());
}

LogicalResult ProgramOp::verify() {
  if (static_cast<int64_t>(getPosition()) < 0)
    return emitOpError("is of position ") << static_cast<int64_t>(getPosition()) << ", but positions count from 0";
  return success();
}

schedule::Placement windlass::sched::getPlacement(ModuleOp module) {
  schedule::Placement placement;
  auto given = module->getAttrOfType<PlacementAttr>(kPlacementAttr);
  if (!given)
    return placement;
  placement.positionOf.assign(given.getChunks().begin(), given.getChunks().end());
  if (!given.getChains().empty())
    placement.chains.assign(given.getChains().begin(), given.getChains().end());
  int64_t last = placement.positionOf.empty() ? 0 : *llvm::max_element(placement.positionOf);
  // What is out of range is none, whatever the number.
  placement.positions = std::clamp<int64_t>(last, 0, schedule::kMaxChunks) + 1;
  return placement;
}

LogicalResult windlass::sched::checkPrograms(ModuleOp module) {
  SmallVector<ProgramOp> programs = getPrograms(module);
  if (programs.empty())
    return module.emitError("has no sched.program");
  if (llvm::Error error = schedule::checkPlacement(getPlacement(module), programs.size()))
    return module.emitError("has no placement of its ")
           << programs.size() << " programs: " << llvm::toString(std::move(error));
  for (auto [position, program] : llvm::enumerate(programs))
    if (program.getPosition() != position)
      return program.emitOpError("is of position ") << program.getPosition() << ", but is number " << position
                                                    << " of the programs, which stand in the order of positions";
  return success();
}

FailureOr<ProgramOp> windlass::sched::getOnlyProgram(ModuleOp module) {
  SmallVector<ProgramOp> programs = getPrograms(module);
  if (programs.size() == 1)
    return programs.front();
  if (programs.empty())
    return module.emitError("has no sched.program");
  return module.emitError("has ") << programs.size() << " programs: plans of one position are supported only";
}

SmallVector<ResourceOp> windlass::sched::getBorder(ProgramOp program, ResourceKind kind, int64_t chunk, int64_t peer) {
  return llvm::filter_to_vector(program.getOps<ResourceOp>(), [&](ResourceOp resource) {
    return resource.getKind() == kind && resource.getChunkNumber() == chunk &&
           resource.getPeer() == static_cast<uint64_t>(peer);
  });
}

ProgramOp windlass::sched::getProgram(Operation *op) {
  auto program = llvm::dyn_cast<ProgramOp>(op);
  return program ? program : op->getParentOfType<ProgramOp>();
}
