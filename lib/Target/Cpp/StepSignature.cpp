#include "windlass/Target/Cpp/StepSignature.h"

#include "windlass/Dialect/Sched/IR/StepFunctions.h"

using namespace windlass;
using namespace windlass::cpp;

Signature cpp::getStepSignature(sched::StepAttr step) {
  Signature signature(sched::getFunctionName(step), /*isStatic=*/false);
  signature.add<rt::context &>(kContextName);
  bool isBackward = step.getRole() == sched::StepRole::backward;
  if (isBackward || step.getRole() == sched::StepRole::forward)
    for (const char *name : {kIndexName, kSlotName})
      signature.add<std::int64_t>(name);
  if (isBackward)
    signature.add<bool>(kIsLastName);
  return signature;
}

Signature cpp::getBlockSignature(const std::string &name, bool hasLast) {
  Signature signature(name, /*isStatic=*/true);
  signature.add<rt::context &>(kContextName);
  signature.add<const std::int64_t *>(kRowName);
  signature.add<bool>(kAddsName);
  if (hasLast)
    signature.add<bool>(kIsLastName);
  return signature;
}
