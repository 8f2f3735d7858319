#include "PlanByName.h"

#include "RunPasses.h"

#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Pipeline/MakeSchedule.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/TensorBytes.h"

using namespace mlir;
using namespace windlass;

std::unique_ptr<Pass> windlass::createStrategyPass(const PlanChoice &choice) {
  plan::ApplyStrategyOptions options;
  options.strategy = choice.strategy;
  options.ranks = choice.getPositionRanks();
  options.pins.append(choice.pins.begin(), choice.pins.end());
  return plan::createApplyStrategy(options);
}

static LogicalResult applyPass(ModuleOp module, const PlanChoice &choice) {
  return runPasses(module, Code::strategy,
                   [&](OpPassManager &manager) { manager.addPass(createStrategyPass(choice)); });
}

/// Fails where a rule that measures plans cannot do so.
static LogicalResult checkRule(ModuleOp module, const PlanChoice &choice, const plan::TierRule &rule,
                               const plan::StrategyTerms &terms) {
  auto fail = [&]() -> InFlightDiagnostic {
    return emitError(module.getContext(), Code::contradiction) << "strategy " << printable(choice.strategy) << " ";
  };
  if (!choice.pipeline.hasOnePosition())
    return fail() << "measures the memory of one stage, but --stages is " << choice.pipeline.positions
                  << ": leave --stages out, or take zero-infinity";
  if (rule.needsOwnMemory && choice.cluster.getBackend() == "cpu" && !choice.cluster.isEmulated())
    return fail() << "divides the memory of a device that has one beside its host's, but the ranks of "
                  << choice.cluster.describe() << " compute in the host's: plan for GPUs, or take zero-infinity";
  if (rule.needsOwnMemory && terms.model)
    return fail() << "packs whole weights into chunks, but " << terms.model->name
                  << " splits them: leave it out, or take zero-infinity*" << terms.model->name;
  return success();
}

/// Returns the bytes of what a device holds from step to step besides weights, gradients and state.
static int64_t getBufferBytes(sched::ProgramOp program) {
  int64_t bytes = 0;
  for (auto resource : program.getOps<sched::ResourceOp>())
    if (!llvm::is_contained({sched::ResourceKind::parameter, sched::ResourceKind::master, sched::ResourceKind::state,
                             sched::ResourceKind::gradient, sched::ResourceKind::reduced},
                            resource.getKind()))
      bytes += getTensorBytes(resource.getTensorType());
  return bytes;
}

/// Plans a copy of a module at L2 as the rule wants it measured, with all blocks recomputed, and adds to `facts` what
/// its schedule shows.
static FailureOr<OwningOpRef<ModuleOp>> measure(ModuleOp module, const PlanChoice &choice, const plan::TierRule &rule,
                                                plan::TierFacts &facts) {
  OwningOpRef<ModuleOp> planned(module.clone());
  PlanChoice measured = choice;
  if (rule.measure == plan::TierMeasure::free)
    plan::labelTiers(*planned, rule, {});
  else
    // The first strategy keeps all of each weight on each device, so that what comes and goes is activations.
    measured.strategy = plan::getNamedStrategies().front().name.str();
  if (failed(applyPass(*planned, measured)))
    return failure();
  plan::recomputeAllBlocks(*planned);
  Schedule schedule;
  if (failed(makeSchedule(*planned, measured, Code::strategy, Purpose::trial, schedule)))
    return failure();
  sched::ArenaOp arena = sched::getDeviceArena(schedule.program);
  int64_t permanent = arena->getAttrOfType<IntegerAttr>(sched::kPermanentBytesAttr).getInt();
  facts.activationBytes = schedule.liveBytes - schedule.reserve.total() - permanent;
  facts.bufferBytes = getBufferBytes(schedule.program);
  facts.freeBytes = choice.getMemoryLimit() - schedule.bytes;
  return planned;
}

LogicalResult windlass::planByName(ModuleOp module, const PlanChoice &choice) {
  const plan::TierRule *rule = plan::findTierRule(choice.strategy);
  llvm::Expected<plan::StrategyTerms> terms = plan::parseStrategy(choice.strategy, choice.getPositionRanks());
  // The pass reports what is wrong with the strategy.
  bool isNamed = !llvm::errorToBool(terms.takeError());
  if (!rule || !isNamed || rule->measure == plan::TierMeasure::nothing)
    return applyPass(module, choice);
  if (failed(checkRule(module, choice, *rule, *terms)))
    return failure();
  plan::TierFacts facts;
  facts.ranks = terms->dataRanks;
  facts.deviceBytes = choice.getMemoryLimit();
  FailureOr<OwningOpRef<ModuleOp>> measured = measure(module, choice, *rule, facts);
  if (failed(measured))
    return failure();
  llvm::Expected<plan::TierChoice> chosen = rule->choose(**measured, facts);
  if (!chosen)
    return emitError(module.getContext(), Code::memory)
           << "strategy " << printable(choice.strategy) << " " << llvm::toString(chosen.takeError());
  plan::labelTiers(module, *rule, *chosen);
  if (failed(applyPass(module, choice)))
    return failure();
  plan::applyTiers(module, *rule, *chosen);
  return success();
}
