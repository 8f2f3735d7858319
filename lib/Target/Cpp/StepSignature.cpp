#include "windlass/Target/Cpp/StepSignature.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

using namespace windlass;
using namespace windlass::cpp;

std::string cpp::getPositionName(sched::ProgramOp program) {
  if (sched::getPrograms(program->getParentOfType<mlir::ModuleOp>()).size() == 1)
    return "";
  return "position_" + std::to_string(program.getPosition());
}

Signature cpp::getStepSignature(sched::StepAttr step) {
  Signature signature(sched::getFunctionName(step), /*isStatic=*/false);
  signature.add<rt::context &>(kContextName);
  bool isBackward = sched::isOfBackward(step.getRole());
  if (isBackward || step.getRole() == sched::StepRole::forward) {
    signature.add<bool>(kAddsName);
    signature.add<std::int64_t>(kSlotName);
  }
  if (isBackward) {
    signature.add<std::int64_t>(kHandedSlotName);
    signature.add<bool>(kIsLastName);
  }
  return signature;
}

Signature cpp::getBlockSignature(const std::string &name, bool hasSlot, bool hasLast) {
  Signature signature(name, /*isStatic=*/true);
  signature.add<rt::context &>(kContextName);
  signature.add<const std::int64_t *>(kRowName);
  if (hasSlot)
    signature.add<const rt::slot_places &>(kOwnSlotsName);
  signature.add<bool>(kAddsName);
  if (hasLast)
    signature.add<bool>(kIsLastName);
  return signature;
}
