#include "windlass/Pipeline/Compile.h"

#include "FailForMemory.h"
#include "FitMemory.h"
#include "HostMemory.h"
#include "PlanByName.h"
#include "RunPasses.h"
#include "SearchStages.h"
#include "windlass/Conversion/PlanToOnnx/OnnxShardings.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Words.h"

#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Pipeline/Claims.h"
#include "windlass/Profile/Kernels/ChooseAttentions.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SHA256.h"

#include <limits>

using namespace mlir;
using namespace windlass;

InFlightDiagnostic Compilation::error(Code code) { return emitError(&context, code); }

LogicalResult Compilation::import(const CompileSettings &settings) {
  CheckOptions options;
  options.import.dims = settings.dims;
  options.import.train = settings.train;
  if (settings.trainable)
    options.import.parameters = {settings.trainable->begin(), settings.trainable->end()};
  options.convert.loss = settings.loss;
  // A user who made a plan has accepted the alterations of its model.
  options.convert.acceptAltered = settings.acceptAltered || settings.trainable;
  options.freeze = settings.freeze;
  options.strict = settings.strict;
  TrainModel model;
  bool isRead = succeeded(importTrainModel(modelPath, context, options, model));
  if (events.modelRead)
    events.modelRead(model.report, isRead ? *model.module : ModuleOp());
  if (!isRead)
    return failure();
  module = std::move(model.module);
  weights = model.weights;
  compiled = settings;
  compiled.loss = model.report.loss;
  if (settings.trainable && failed(trainOnly(*settings.trainable)))
    return failure();
  if (failed(runPhases(*module, Code::pattern, {Phase::prepareGraph})))
    return failure();
  modelHash = plan::hashModel(*module);
  return success();
}

LogicalResult Compilation::trainOnly(llvm::ArrayRef<std::string> names) {
  llvm::StringSet<> found;
  for (auto parameter : module->getOps<train::ParameterOp>()) {
    found.insert(parameter.getLogicalName());
    if (llvm::is_contained(names, parameter.getLogicalName()))
      continue;
    // As the pass that freezes by patterns does.
    parameter.setTrainable(false);
    parameter.setDecays(false);
  }
  for (const std::string &name : names)
    if (!found.contains(name))
      return error(Code::plan_mismatch) << "the plan trains '" << name
                                        << "', which this model does not have; make a plan for this model";
  return success();
}

LogicalResult Compilation::buildFunctions(const CompileSettings &settings) {
  if (settings.searchesMerge) {
    graph = module->clone();
    merging = settings;
  }
  return buildMerged(settings);
}

LogicalResult Compilation::buildMerged(const CompileSettings &settings) {
  if (settings.microBatches % settings.merge != 0)
    return error(Code::contradiction) << "--merge is " << settings.merge << ", which does not divide --micro-batches "
                                      << settings.microBatches << "; give a divisor of it";
  FunctionsOptions options;
  options.average = settings.average;
  options.microBatches = settings.microBatches;
  options.merge = settings.merge;
  options.optimizer = settings.optimizer;
  options.clip = settings.clip;
  options.ema = settings.ema;
  options.precision = settings.precision;
  options.bf16Gradients = settings.bf16Gradients;
  for (auto [patterns, option] : {std::pair(&settings.noDecay, &options.noDecay),
                                  {&settings.decayPatterns, &options.decayScales},
                                  {&settings.ratePatterns, &options.rateScales}})
    for (const std::string &pattern : *patterns)
      option->push_back(pattern);
  return runPasses(*module, Code::training,
                   [&](OpPassManager &manager) { addPhase(manager, Phase::buildFunctions, options); });
}

LogicalResult Compilation::makePlan(const PlanChoice &choice, llvm::function_ref<LogicalResult()> apply,
                                    Purpose purpose, bool mayRecompute) {
  cluster = choice.cluster;
  OwningOpRef<ModuleOp> unplanned(module->clone());
  if (failed(apply()))
    return failure();
  if (mayRecompute) {
    FittedSchedule fit;
    if (failed(fitMemory(*module, choice, /*wantsLeast=*/true, /*expectedExcess=*/0, fit)))
      return failure();
    bool fits = fit.schedule.bytes <= choice.getMemoryLimit();
    if (fits && failed(fitSizes(*module, choice, fit)))
      return failure();
    if (fits && purpose == Purpose::program && failed(verifySchedule(fit.schedule)))
      return failure();
    fit.apply(*module);
    scheduled = std::move(fit.schedule);
  } else if (failed(makeSchedule(*module, choice, Code::strategy, purpose, scheduled))) {
    return failure();
  }
  if (failed(checkMemory(*unplanned, choice)))
    return failure();
  return keepPlan(choice);
}

LogicalResult Compilation::checkMemory(ModuleOp unplanned, const PlanChoice &choice) {
  if (scheduled.bytes > choice.getMemoryLimit())
    return failForMemory(unplanned, choice, scheduled);
  return checkHostMemory(scheduled, cluster);
}

LogicalResult Compilation::keepPlan(const PlanChoice &choice) {
  plan::PlanSettings settings = plan::getPlanSettings(*module, compiled.dims, compiled.loss);
  settings.pins = choice.pins;
  auto plan = plan::buildPlanFile(*module, cluster, settings, modelHash);
  if (failed(plan))
    return failure();
  plan->memoryLimit = choice.memoryLimit;
  if (search)
    plan->claims = makeClaims(*search, scheduled, *plan, choice);
  planText = plan::writePlanFile(*plan);
  return success();
}

/// Returns the device of each rank.
static std::vector<int64_t> getDeviceOrder(const Cluster &cluster) {
  std::vector<int64_t> order = cluster.deviceOrder;
  for (int64_t rank = order.size(); rank < cluster.getDevices(); ++rank)
    order.push_back(rank);
  return order;
}

LogicalResult Compilation::checkOneMicroBatch() {
  if (train::getMerge(*module) == 1)
    return success();
  return error(Code::annotations)
         << "the tensors of the model file are those of one micro-batch, but --merge makes them "
         << train::getMerge(*module) << " times as large; leave --merge out";
}

LogicalResult Compilation::readOnnxPins(const PlanChoice &choice, std::vector<std::string> &pins) {
  if (failed(checkOneMicroBatch()))
    return failure();
  // The strategy makes the axes in which annotations, which name devices only, are read.
  if (failed(runPasses(*module, Code::strategy,
                       [&](OpPassManager &manager) { manager.addPass(createStrategyPass(choice)); })))
    return failure();
  llvm::Expected<GraphOutline> outline = readOutline(modelPath);
  if (!outline)
    return error(Code::model_malformed) << printable(modelPath) + " " + llvm::toString(outline.takeError());
  llvm::Expected<ModelAnnotations> annotations = readAnnotations(modelPath, choice.onnxPins);
  if (!annotations)
    return error(Code::annotations) << printable(modelPath) + " " + llvm::toString(annotations.takeError());
  auto made = makePins(*module, getDeviceOrder(choice.cluster), *outline, *annotations);
  if (!made)
    return error(Code::annotations) << llvm::toString(made.takeError());
  pins.insert(pins.end(), made->begin(), made->end());
  return success();
}

LogicalResult Compilation::applyPipeline(const PlanChoice &choice) {
  const planner::PipelineChoice &pipeline = choice.pipeline;
  if (choice.searchesStages && choice.strategy != "auto")
    return error(Code::usage) << "--stages auto needs --strategy auto: a named strategy is not searched";
  if (pipeline.hasOnePosition())
    return success();
  int64_t devices = choice.cluster.getDevices();
  if (devices % pipeline.positions != 0)
    return error(Code::contradiction) << "--stages is " << pipeline.positions << " but the cluster has "
                                      << countOf(devices, "device") << ", which as many stages cannot share evenly";
  // The search cuts copies.
  if (choice.strategy == "auto")
    return success();
  CostModel costs(choice.cluster, choice.profile.get(), train::getPrecision(*module).str());
  CodeScope scope(&context, Code::strategy);
  return planner::cutModel(*module, pipeline, choice.getPositionRanks(), costs);
}

/// Whether trying an offload would be in vain: disks are slower than memories, where one of these has `found` a plan.
static bool isNeedless(plan::Offload offload, bool found) { return offload == plan::Offload::disk && found; }

/// Returns the rates that copies of an emulated device keep to, a device's part of those of the slowest host.
static rt::emulated_rates getEmulatedRates(const Cluster &cluster) {
  rt::emulated_rates rates;
  if (!cluster.isEmulated())
    return rates;
  auto lower = [](int64_t &rate, std::optional<int64_t> other, int64_t devices) {
    if (other)
      rate = std::min(rate > 0 ? rate : std::numeric_limits<int64_t>::max(), std::max<int64_t>(*other / devices, 1));
  };
  for (const HostGroup &group : cluster.hosts) {
    lower(rates.link, group.deviceLink.bytesPerSecond, 1);
    lower(rates.disk, group.diskBytesPerSecond, group.devices);
  }
  return rates;
}

plan::Offload Compilation::chooseOffload(const PlanChoice &choice) {
  if (!choice.searchesOffload)
    return choice.offload;
  CostModel costs(choice.cluster, choice.profile.get(), compiled.precision);
  // Where none fits, the last one needs least of a device.
  plan::Offload best = std::end(plan::kOffloads)[-1];
  double bestSeconds = INFINITY;
  for (plan::Offload offload : plan::kOffloads) {
    if (offload == plan::Offload::some || // which needs a search
        isNeedless(offload, bestSeconds < INFINITY))
      continue;
    OwningOpRef<ModuleOp> unplanned(module->clone());
    plan::applyOffload(*unplanned, offload);
    FittedSchedule fit;
    offloadTries.push_back({offload, std::nullopt});
    if (!tryStrategy(*unplanned, choice, fit) || !getHostNeed(fit.schedule, choice.cluster).fits())
      continue;
    double seconds = predictStep(*fit.schedule.module, costs).seconds;
    offloadTries.back().stepSeconds = seconds;
    if (seconds < bestSeconds) {
      bestSeconds = seconds;
      best = offload;
    }
  }
  return best;
}

LogicalResult Compilation::applyStrategy(const PlanChoice &choice, Purpose purpose) {
  return graph ? chooseMerge(choice, purpose) : applyOne(choice, purpose);
}

LogicalResult Compilation::applyOne(const PlanChoice &choice, Purpose purpose) {
  if (failed(applyPipeline(choice)))
    return failure();
  PlanChoice pinned = choice;
  if (!choice.onnxPins.empty() && choice.strategy == "auto")
    return error(Code::usage)
           << "--onnx-pins needs a named strategy, on whose axes annotations are read: give --strategy "
              "ddp or another one";
  if (!choice.onnxPins.empty())
    if (failed(readOnnxPins(choice, pinned.pins)))
      return failure();
  pinned.pins = plan::sortPins(std::move(pinned.pins));
  if (choice.offload == plan::Offload::some && choice.strategy != "auto")
    return error(Code::usage) << "--offload some needs --strategy auto, which searches the parameters whose state the "
                                 "host keeps; with a named strategy give --offload optimizer, for all parameters";
  if (choice.strategy == "auto")
    return searchPlan(pinned, purpose);
  pinned.offload = chooseOffload(pinned);
  plan::applyOffload(*module, pinned.offload);
  return makePlan(pinned, [&] { return planByName(*module, pinned); }, purpose, /*mayRecompute=*/true);
}

LogicalResult Compilation::applyRandomPlan(const PlanChoice &choice, uint64_t seed) {
  plan::ApplyRandomPlanOptions options;
  options.seed = seed;
  options.ranks = choice.cluster.getDevices();
  PlanChoice unpinned = choice;
  unpinned.pins.clear();
  std::unique_ptr<Pass> pass = plan::createApplyRandomPlan(options);
  auto apply = [&] {
    return runPasses(*module, Code::strategy, [&](OpPassManager &manager) { manager.addPass(std::move(pass)); });
  };
  return makePlan(unpinned, apply, Purpose::program, /*mayRecompute=*/false);
}

LogicalResult Compilation::exportOnnx(std::string &bytes) {
  if (failed(checkOneMicroBatch()))
    return failure();
  llvm::Expected<plan::PlanFile> plan = plan::readPlanFile(planText);
  if (!plan)
    return error(Code::internal) << llvm::toString(plan.takeError());
  llvm::Expected<GraphOutline> outline = readOutline(modelPath);
  if (!outline)
    return error(Code::model_malformed) << printable(modelPath) + " " + llvm::toString(outline.takeError());
  llvm::Expected<ModelAnnotations> annotations = describeShardings(*module, *plan, *outline);
  if (!annotations)
    return error(Code::internal) << llvm::toString(annotations.takeError());
  llvm::Expected<std::string> made = addAnnotations(modelPath, *annotations);
  if (!made)
    return error(Code::annotations) << printable(modelPath) + " " + llvm::toString(made.takeError());
  bytes = std::move(*made);
  return success();
}

LogicalResult Compilation::putPlan(ModuleOp unplanned, const plan::PlanFile &plan, llvm::StringRef what) {
  plan::PlanSettings settings = plan::getPlanSettings(unplanned, compiled.dims, compiled.loss);
  llvm::Error mismatch = plan::checkPlanFits(plan, settings, modelHash, unplanned);
  if (!mismatch)
    mismatch = plan::applyPlanFile(unplanned, plan);
  if (mismatch)
    return error(Code::plan_mismatch) << what << " does not fit: " << llvm::toString(std::move(mismatch));
  return success();
}

LogicalResult Compilation::startFrom(planner::PlanSearch &plans, const plan::PlanFile &start, ModuleOp unplanned) {
  if (start.cluster.getDevices() != cluster.getDevices())
    return error(Code::plan_mismatch) << "the plan to start from is for " << start.cluster.getDevices()
                                      << " ranks, but --cluster has " << cluster.getDevices();
  if (start.settings.merge != train::getMerge(unplanned)) {
    if (events.warning)
      events.warning("the plan to start from merges " + countOf(start.settings.merge, "micro-batch", "micro-batches") +
                     ", not " + std::to_string(train::getMerge(unplanned)) + ": it is left out");
    return success();
  }
  OwningOpRef<ModuleOp> planned(unplanned.clone());
  if (failed(putPlan(*planned, start, "the plan to start from")))
    return failure();
  if (!plans.startFrom(*planned, "the older plan") && events.warning)
    events.warning("the plan to start from has something that is not searched: it is left out");
  return success();
}

FailureOr<FoundPlan> Compilation::searchWithOffload(ModuleOp unplanned, const PlanChoice &choice, double mustBeat) {
  auto begin = [&](planner::PlanSearch &plans) {
    return choice.start ? startFrom(plans, *choice.start, unplanned) : success();
  };
  FailureOr<FoundPlan> found = searchStages(unplanned, choice, compiled.precision, begin, mustBeat);
  if (failed(found) || !found->planned || getHostNeed(found->schedule, cluster).fits())
    return found;
  found->planned = nullptr;
  found->refuse = [this, schedule = std::make_shared<Schedule>(std::move(found->schedule))] {
    return checkHostMemory(*schedule, cluster);
  };
  return found;
}

LogicalResult Compilation::searchPlan(const PlanChoice &choice, Purpose purpose) {
  cluster = choice.cluster;
  PlanChoice its = choice;
  // A refusal reads the module that was searched.
  std::vector<OwningOpRef<ModuleOp>> unplanned;
  FoundPlan best;
  for (plan::Offload offload : plan::kOffloads) {
    if (choice.searchesOffload ? isNeedless(offload, bool(best.planned)) : offload != choice.offload)
      continue;
    its.offload = offload;
    unplanned.push_back(module->clone());
    plan::applyOffload(*unplanned.back(), offload);
    // The costs of plans are above their steps by about as much.
    double mustBeat = best.planned ? std::max(best.summary.stepSeconds, best.summary.costNanoseconds / 1e9) : INFINITY;
    FailureOr<FoundPlan> found = searchWithOffload(*unplanned.back(), its, mustBeat);
    if (failed(found))
      return failure();
    bool isFound = bool(found->planned);
    if (choice.searchesOffload)
      offloadTries.push_back({offload, isFound ? std::optional(found->summary.stepSeconds) : std::nullopt,
                              /*hadToBeat=*/mustBeat < INFINITY});
    // Where none fits, the last one is refused, which needs least of a device.
    if (!best.planned || (isFound && found->summary.stepSeconds < best.summary.stepSeconds)) {
      best = std::move(*found);
      best.summary.boundOffload = offload;
    }
  }
  if (!best.planned)
    return best.refuse();
  module = std::move(best.planned);
  scheduled = std::move(best.schedule);
  search = std::move(best.summary);
  if (purpose == Purpose::program && failed(verifySchedule(scheduled)))
    return failure();
  return keepPlan(choice);
}

LogicalResult Compilation::applyPlan(const plan::PlanFile &plan, const PlanChoice &choice, Purpose purpose) {
  cluster = plan.cluster;
  PlanChoice itsChoice = choice;
  itsChoice.cluster = cluster;
  unplanned = module->clone();
  if (failed(putPlan(*module, plan, "the plan")) || failed(plan::checkPins(*module, plan.settings.pins)))
    return failure();
  planText = plan::writePlanFile(plan);
  // An error of an edited plan is reported at the operator, before reshards are made for it.
  auto verifyLayouts = [](OpPassManager &manager) {
    plan::VerifyLayoutsOptions options;
    options.materialized = false;
    manager.addPass(plan::createVerifyLayouts(options));
  };
  if (failed(runPasses(*module, Code::plan_mismatch, verifyLayouts)) ||
      failed(makeSchedule(*module, itsChoice, Code::plan_mismatch, purpose, scheduled)))
    return failure();
  // The search for plans that fit keeps state, gradients and weights where this plan does.
  for (auto parameter : module->getOps<train::ParameterOp>())
    for (StringRef name :
         {plan::kStateMemoryAttr, plan::kUpdatesOnDeviceAttr, plan::kGradientMemoryAttr, plan::kComputeMemoryAttr})
      if (Attribute memory = parameter->getAttr(name))
        unplanned->lookupSymbol<train::ParameterOp>(parameter.getSymNameAttr())->setAttr(name, memory);
  return checkMemory(*unplanned, choice);
}

LogicalResult Compilation::verifyClaims(const plan::PlanClaims &claims, const std::vector<std::string> &pins,
                                        llvm::StringRef certificate, const PlanChoice &choice) {
  return windlass::verifyClaims(claims, {*module, *unplanned, scheduled, compiled.precision, pins}, certificate,
                                choice);
}

bool Compilation::trySchedule(const PlanChoice &choice, Schedule &schedule) {
  FittedSchedule fit;
  if (!tryStrategy(*module, choice, fit))
    return false;
  schedule = std::move(fit.schedule);
  return true;
}

StepPrediction Compilation::predict(const PlanChoice &choice,
                                    const std::function<void(const SimulatedCommand &)> &visit) {
  return predictStep(*scheduled.module, CostModel(cluster, choice.profile.get(), compiled.precision), visit);
}

LogicalResult Compilation::materialize() { return windlass::materialize(*module, Code::plan_mismatch); }

/// Adds the attentions of the device's library. Their workspaces are scratch, which commands use one after another;
/// where the growth of the scratch does not fit besides the plan, our own kernels compute the attention.
void Compilation::addAttentions(const PlanChoice &choice, cpp::ProjectOptions &options) {
  const AttentionChoices *measured =
      choice.profile && choice.profile->attention ? &*choice.profile->attention : nullptr;
  const int64_t room = std::max<int64_t>(choice.getMemoryLimit() - scheduled.bytes, 0);
  const int64_t planned = options.scratchBytes;
  for (sched::ProgramOp program : sched::getPrograms(*scheduled.module))
    for (const rt::attention_choice &each : chooseAttentions(program, measured)) {
      if (each.workspace_bytes <= planned + room) {
        options.attentions.push_back(each);
        options.scratchBytes = std::max(options.scratchBytes, each.workspace_bytes);
      } else if (events.warning) {
        events.warning("attention " + rt::name_of(each.shape) +
                       " stays with Windlass's kernels, which are several times slower: cuDNN needs " +
                       sizeText(each.workspace_bytes) + " of workspace, the plan leaves " + sizeText(planned + room));
      }
    }
}

rt::status windlass::checkTypes(llvm::StringRef backend, const plan::ProgramSettings &settings) {
  if (backend != "cpu")
    return {};
  if (settings.precision != "f32")
    return rt::bad_input("programs for back end 'cpu' compute in f32, but the plan is of --precision " +
                         settings.precision + ": plan with it for a cluster of GPUs, or emit with --precision f32")
        .as(Code::devices);
  if (settings.bf16Gradients)
    return rt::bad_input("programs for back end 'cpu' have f32 only, but the plan has --bf16-gradients: plan with it "
                         "for a cluster of GPUs, or emit without it")
        .as(Code::devices);
  return {};
}

LogicalResult Compilation::emit(const PlanChoice &choice, cpp::ProjectFiles &files) {
  const std::string &backend = cluster.getBackend();
  plan::PlanSettings settings = plan::getPlanSettings(*module, compiled.dims, compiled.loss);
  if (rt::status checked = checkTypes(backend, settings); !checked.is_ok())
    return error(checked.kind()) << checked.message();
  if (failed(verifySchedule(scheduled)))
    return failure();
  cpp::ProjectOptions options;
  for (sched::ProgramOp program : sched::getPrograms(*scheduled.module))
    options.scratchBytes = std::max(options.scratchBytes, sched::getScratchBytesPerThread(program));
  if (backend == "cuda")
    addAttentions(choice, options);
  if (failed(convertSchedToEmitC(*scheduled.module)))
    return failure();
  options.planJson = planText;
  options.planHash = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(planText)), true);
  options.backend = backend;
  options.ranks = getRanks();
  options.reserveBytes = cluster.getGivenReserve();
  options.emulated = getEmulatedRates(cluster);
  options.products = choice.profile && choice.profile->products ? &*choice.profile->products : nullptr;
  auto made = cpp::makeProject(*scheduled.module, options);
  if (failed(made))
    return failure();
  files = std::move(*made);
  return success();
}
