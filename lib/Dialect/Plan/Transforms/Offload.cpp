#include "windlass/Dialect/Plan/Transforms/Offload.h"

#include "windlass/Dialect/Plan/IR/PlanOps.h"
#include "windlass/Dialect/Train/IR/TrainOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

std::optional<Offload> plan::parseOffload(StringRef name) {
  for (Offload offload : kOffloads)
    if (name == stringifyOffload(offload))
      return offload;
  return std::nullopt;
}

std::string plan::listOffloads() { return llvm::join(llvm::map_range(kOffloads, stringifyOffload), ", "); }

StringRef plan::stringifyOffload(Offload offload) {
  switch (offload) {
  case Offload::none:
    return "none";
  case Offload::some:
    return "some";
  case Offload::optimizer:
    return "optimizer";
  case Offload::gradients:
    return "gradients";
  case Offload::weights:
    return "weights";
  case Offload::disk:
    return "disk";
  }
  llvm_unreachable("unknown offload");
}

void plan::applyOffload(ModuleOp module, Offload offload) {
  auto host = MemoryKindAttr::get(module.getContext(), MemoryKind::host);
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    // Running statistics are small, and nothing on the host averages.
    if (parameter.getRole() != train::Role::weight || parameter.isRunningStatistic())
      continue;
    for (auto [attribute, least, isOfTraining] : {std::tuple(kStateMemoryAttr, Offload::optimizer, true),
                                                  {kGradientMemoryAttr, Offload::gradients, true},
                                                  {kComputeMemoryAttr, Offload::weights, false}}) {
      parameter->removeAttr(attribute);
      if (offload >= least && (parameter.getTrainable() || !isOfTraining))
        parameter->setAttr(attribute, host);
    }
    if (offload == Offload::disk && parameter.getTrainable())
      parameter->setAttr(kStateMemoryAttr, MemoryKindAttr::get(module.getContext(), MemoryKind::disk));
    parameter->removeAttr(kUpdatesOnDeviceAttr);
    parameter->removeAttr(kMayOffloadAttr);
    if (offload == Offload::some && parameter.getTrainable())
      parameter->setAttr(kMayOffloadAttr, UnitAttr::get(module.getContext()));
  }
}
