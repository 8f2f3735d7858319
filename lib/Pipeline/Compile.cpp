#include "windlass/Pipeline/Compile.h"

#include "FitMemory.h"
#include "RunPasses.h"
#include "windlass/Commands/Commands.h"
#include "windlass/Conversion/PlanToOnnx/OnnxShardings.h"
#include "windlass/Pipeline/Claims.h"
#include "windlass/Support/Printable.h"

#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Sched/Transforms/Scratch.h"
#include "windlass/Frontend/Check/CheckModel.h"
#include "windlass/Simulator/ChooseAttentions.h"
#include "windlass/Simulator/ChooseEpilogues.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

int Compilation::import(const CompileSettings &settings) {
  CheckOptions options;
  options.import.dims = settings.dims;
  options.import.train = settings.train;
  if (settings.trainable)
    options.import.parameters = {settings.trainable->begin(), settings.trainable->end()};
  options.convert.loss = settings.loss;
  // Whoever made a plan has accepted what its model is.
  options.convert.acceptAltered = settings.acceptAltered || settings.trainable;
  options.freeze = settings.freeze;
  options.strict = settings.strict;
  TrainModel model;
  if (int code = importTrainModel(modelPath, context, options, model)) {
    for (const UnsupportedOp &op : model.report.unsupported)
      llvm::errs() << "windlass: unsupported: " << op.name << " x" << op.count << ", first at '" << op.first << "'"
                   << (op.reason.empty() ? "" : ": " + op.reason) << "\n";
    return code;
  }
  module = std::move(model.module);
  weights = model.weights;
  if (talk != Talk::none)
    printTraining(model.report);
  compiled = settings;
  compiled.loss = model.report.loss;
  if (settings.trainable) {
    llvm::StringSet<> names;
    for (auto parameter : module->getOps<train::ParameterOp>()) {
      names.insert(parameter.getLogicalName());
      if (llvm::is_contained(*settings.trainable, parameter.getLogicalName()))
        continue;
      // As the pass that freezes by patterns.
      parameter.setTrainable(false);
      parameter.setDecays(false);
    }
    for (const std::string &name : *settings.trainable)
      if (!names.contains(name))
        return fail(Code::plan_mismatch,
                    "the plan trains '" + name + "', which this model does not have; make a plan for this model");
  }
  int code = runPhases(*module, Code::pattern, {Phase::prepareGraph});
  if (code == kDone)
    modelHash = plan::hashModel(*module);
  return code;
}

void Compilation::printTraining(const OnnxToTrainReport &report) {
  auto say = [](const llvm::Twine &line) { llvm::errs() << "windlass: " << oneLine(line.str()) << "\n"; };
  if (std::string altered = report.describeAlterations(); !altered.empty())
    say("trains another model than was exported: " + altered);
  if (talk == Talk::all) {
    say(describeTraining(*module));
    for (const ParameterGuess &guess : report.guesses)
      say("guess: " + printable(guess.name) + (guess.trains ? " trains: " : " does not train: ") + guess.reason);
  }
  for (const std::string &warning : report.warnings)
    say("warning: " + warning);
}

int Compilation::buildFunctions(const CompileSettings &settings) {
  FunctionsOptions options;
  options.average = settings.average;
  options.microBatches = settings.microBatches;
  options.optimizer = settings.optimizer;
  options.clip = settings.clip;
  options.precision = settings.precision;
  for (const std::string &pattern : settings.noDecay)
    options.noDecay.push_back(pattern);
  return runPasses(*module, Code::training,
                   [&](OpPassManager &manager) { addPhase(manager, Phase::buildFunctions, options); });
}

int Compilation::makePlan(const PlanChoice &choice, std::unique_ptr<Pass> pass, bool mayRerun) {
  cluster = choice.cluster;
  OwningOpRef<ModuleOp> unplanned(module->clone());
  int code = runPasses(*module, Code::strategy, [&](OpPassManager &manager) { manager.addPass(std::move(pass)); });
  if (code != kDone)
    return code;
  if (mayRerun) {
    Fit fit;
    if ((code = fitMemory(*module, choice, /*wantsLeast=*/true, /*expectedExcess=*/0, fit)))
      return code;
    fit.apply(*module);
    scheduled = std::move(fit.schedule);
  } else if ((code = makeSchedule(*module, cluster, choice.threads, Code::strategy, scheduled))) {
    return code;
  }
  if (scheduled.bytes > choice.getMemoryLimit())
    return failForMemory(*unplanned, choice, scheduled);
  return keepPlan(choice);
}

int Compilation::keepPlan(const PlanChoice &choice) {
  plan::PlanSettings settings = plan::getPlanSettings(*module, compiled.dims, compiled.loss);
  settings.pins = choice.pins;
  auto plan = plan::buildPlanFile(*module, cluster, settings, modelHash);
  if (failed(plan))
    return kInternal;
  plan->memoryLimit = choice.memoryLimit;
  if (search)
    plan->claims = makeClaims(*search, scheduled, *plan, choice);
  planText = plan::writePlanFile(*plan);
  return kDone;
}

/// The device of each rank.
static std::vector<int64_t> getDeviceOrder(const Cluster &cluster) {
  std::vector<int64_t> order = cluster.deviceOrder;
  for (int64_t rank = order.size(); rank < cluster.getDevices(); ++rank)
    order.push_back(rank);
  return order;
}

int Compilation::readOnnxPins(const PlanChoice &choice, std::vector<std::string> &pins) {
  // The strategy makes the axes that annotations, which have devices only, are read in.
  if (int code = runPasses(*module, Code::strategy,
                           [&](OpPassManager &manager) { manager.addPass(createStrategyPass(choice)); }))
    return code;
  llvm::Expected<GraphOutline> outline = readOutline(modelPath);
  if (!outline)
    return fail(Code::model_malformed, printable(modelPath) + " " + llvm::toString(outline.takeError()));
  llvm::Expected<ModelAnnotations> annotations = readAnnotations(modelPath, choice.onnxPins);
  if (!annotations)
    return fail(Code::annotations, printable(modelPath) + " " + llvm::toString(annotations.takeError()));
  auto made = makePins(*module, getDeviceOrder(choice.cluster), *outline, *annotations);
  if (!made)
    return fail(Code::annotations, llvm::toString(made.takeError()));
  pins.insert(pins.end(), made->begin(), made->end());
  return kDone;
}

int Compilation::applyStrategy(const PlanChoice &choice) {
  PlanChoice pinned = choice;
  if (!choice.onnxPins.empty() && choice.strategy == "auto")
    return fail(Code::usage, "--onnx-pins needs a named strategy, on whose axes annotations are read: give --strategy "
                             "ddp or another one");
  if (!choice.onnxPins.empty())
    if (int code = readOnnxPins(choice, pinned.pins))
      return code;
  pinned.pins = plan::sortPins(std::move(pinned.pins));
  if (choice.strategy == "auto")
    return searchPlan(pinned);
  return makePlan(pinned, createStrategyPass(pinned), /*mayRerun=*/true);
}

int Compilation::applyRandomPlan(const PlanChoice &choice, uint64_t seed) {
  plan::ApplyRandomPlanOptions options;
  options.seed = seed;
  options.ranks = choice.cluster.getDevices();
  PlanChoice unpinned = choice;
  unpinned.pins.clear();
  return makePlan(unpinned, plan::createApplyRandomPlan(options), /*mayRerun=*/false);
}

int Compilation::exportOnnx(std::string &bytes) {
  llvm::Expected<plan::PlanFile> plan = plan::readPlanFile(planText);
  if (!plan)
    return fail(Code::internal, llvm::toString(plan.takeError()));
  llvm::Expected<GraphOutline> outline = readOutline(modelPath);
  if (!outline)
    return fail(Code::model_malformed, printable(modelPath) + " " + llvm::toString(outline.takeError()));
  llvm::Expected<ModelAnnotations> annotations = describeShardings(*module, *plan, *outline);
  if (!annotations)
    return fail(Code::internal, llvm::toString(annotations.takeError()));
  llvm::Expected<std::string> made = addAnnotations(modelPath, *annotations);
  if (!made)
    return fail(Code::annotations, printable(modelPath) + " " + llvm::toString(made.takeError()));
  bytes = std::move(*made);
  return kDone;
}

int Compilation::putPlan(const plan::PlanFile &plan, llvm::StringRef what) {
  plan::PlanSettings settings = plan::getPlanSettings(*module, compiled.dims, compiled.loss);
  llvm::Error error = plan::checkPlanFits(plan, settings, modelHash, *module);
  if (!error)
    error = plan::applyPlanFile(*module, plan);
  if (error)
    return fail(Code::plan_mismatch, what.str() + " does not fit: " + llvm::toString(std::move(error)));
  return kDone;
}

int Compilation::applyPlan(const plan::PlanFile &plan, const PlanChoice &choice) {
  cluster = plan.cluster;
  unplanned = module->clone();
  if (int code = putPlan(plan, "the plan"))
    return code;
  if (failed(plan::checkPins(*module, plan.settings.pins)))
    return exitCodeOf(Code::pin);
  planText = plan::writePlanFile(plan);
  // What an edit broke is said at the operator, before reshards are made for it.
  int code = runPasses(*module, Code::plan_mismatch, [](OpPassManager &manager) {
    plan::VerifyLayoutsOptions options;
    options.materialized = false;
    manager.addPass(plan::createVerifyLayouts(options));
  });
  if (code != kDone)
    return code;
  if ((code = makeSchedule(*module, cluster, choice.threads, Code::plan_mismatch, scheduled)))
    return code;
  return scheduled.bytes > choice.getMemoryLimit() ? failForMemory(*unplanned, choice, scheduled) : kDone;
}

bool Compilation::trySchedule(const PlanChoice &choice, Schedule &schedule) {
  Fit fit;
  if (!tryStrategy(*module, choice, fit))
    return false;
  schedule = std::move(fit.schedule);
  return true;
}

StepPrediction Compilation::predict(const PlanChoice &choice,
                                    const std::function<void(const SimulatedCommand &)> &visit) {
  return predictStep(*scheduled.module, CostModel(cluster, choice.profile.get(), compiled.precision), visit);
}

int Compilation::materialize() { return windlass::materialize(*module, Code::plan_mismatch); }

int Compilation::verify() { return runPhases(*scheduled.module, Code::lowering, {Phase::verifyCommands}); }

/// Their workspaces are scratch, which is of one command after another. What it grows by has to fit beside the plan.
void Compilation::addAttentions(const PlanChoice &choice, cpp::ProjectOptions &options) {
  const AttentionChoices &measured = *choice.profile->attention;
  int64_t room = options.scratchBytes + std::max<int64_t>(choice.getMemoryLimit() - scheduled.bytes, 0);
  options.attention = {measured.device, measured.library, chooseAttentions(*scheduled.module, measured, room)};
  for (const rt::attention_choice &each : options.attention.choices)
    options.scratchBytes = std::max(options.scratchBytes, each.workspace_bytes);
}

int windlass::checkPrecision(llvm::StringRef backend, llvm::StringRef precision) {
  if (backend != "cpu" || precision == "f32")
    return kDone;
  return fail(Code::devices, "programs for back end 'cpu' compute in f32, but the plan is of --precision " +
                                 precision.str() +
                                 ": plan with it for a cluster of GPUs, or emit with --precision f32");
}

int Compilation::emit(const PlanChoice &choice, cpp::ProjectFiles &files) {
  const std::string &backend = cluster.getBackend();
  if (int code = checkPrecision(backend, plan::getPlanSettings(*module, compiled.dims, compiled.loss).precision))
    return code;
  if (backend == "cuda" && choice.profile && choice.profile->products && !choice.profile->products->epilogues.empty()) {
    chooseEpilogues(*scheduled.module, *choice.profile->products);
    // Commands have moved: no byte may be read or written in another order for that.
    if (int code = verify())
      return code;
  }
  cpp::ProjectOptions options;
  options.scratchBytes = sched::getScratchBytesPerThread(*scheduled.module);
  if (backend == "cuda" && choice.profile && choice.profile->attention)
    addAttentions(choice, options);
  if (failed(convertSchedToEmitC(*scheduled.module)))
    return kInternal;
  options.planJson = planText;
  options.planHash = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(planText)), true);
  options.backend = backend;
  options.ranks = getRanks();
  if (choice.profile && choice.profile->products)
    options.products = &*choice.profile->products;
  auto made = cpp::makeProject(*scheduled.module, options);
  if (failed(made))
    return kInternal;
  files = std::move(*made);
  return kDone;
}
