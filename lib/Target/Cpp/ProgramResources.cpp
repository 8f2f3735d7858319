#include "ProgramResources.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

StringAttr cpp::getInputName(sched::ResourceOp input) {
  StringAttr name = input.getLogicalNameAttr();
  return name ? name : input.getSymNameAttr();
}

FailureOr<ProgramResources> ProgramResources::collect(sched::ProgramOp program) {
  sched::ArenaTable arenas(program);
  ProgramResources all;
  all.program = program;
  for (auto resource : program.getOps<sched::ResourceOp>()) {
    if (!resource.getOffset() || !arenas.find(resource.getArenaAttr().getAttr()))
      return resource.emitOpError("has no place in an arena");
    switch (resource.getKind()) {
    case sched::ResourceKind::parameter:
      all.parameters.push_back(resource);
      break;
    case sched::ResourceKind::state:
      all.states.push_back(resource);
      break;
    case sched::ResourceKind::gradient:
      all.gradients.push_back(resource);
      break;
    case sched::ResourceKind::input:
      all.inputs.push_back(resource);
      break;
    case sched::ResourceKind::scalar:
      all.scalars.push_back(resource);
      break;
    case sched::ResourceKind::loss:
      all.loss = resource;
      break;
    case sched::ResourceKind::grad_norm:
      all.gradNorm = resource;
      break;
    case sched::ResourceKind::evaluate:
      all.evaluate = resource;
      break;
    case sched::ResourceKind::master:
      all.masters[resource.getOfAttr().getAttr()] = resource;
      break;
    case sched::ResourceKind::reduced:
      all.reduced[resource.getOfAttr().getAttr()] = resource;
      break;
    case sched::ResourceKind::value:
    case sched::ResourceKind::squares:
      break;
    case sched::ResourceKind::sent:
    case sched::ResourceKind::received:
      all.borders.push_back(resource);
      break;
    }
  }
  return all;
}

sched::ResourceOp ProgramResources::getMaster(sched::ResourceOp parameter) const {
  sched::ResourceOp own = masters.lookup(parameter.getOfAttr().getAttr());
  return own ? own : parameter;
}

sched::ResourceOp ProgramResources::getReduced(sched::ResourceOp gradient) const {
  sched::ResourceOp own = reduced.lookup(gradient.getOfAttr().getAttr());
  return own ? own : gradient;
}
