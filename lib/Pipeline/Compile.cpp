#include "windlass/Pipeline/Compile.h"

#include "OnnxShardings.h"
#include "VerbSupport.h"

#include "windlass/Autodiff/Passes.h"
#include "windlass/Conversion/PlanToSched/Passes.h"
#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Plan/Transforms/Passes.h"
#include "windlass/Dialect/Plan/Transforms/Pins.h"
#include "windlass/Dialect/Sched/Transforms/Passes.h"
#include "windlass/Dialect/Sched/Transforms/Scratch.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Frontend/Check/CheckModel.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

#include <thread>

using namespace mlir;
using namespace windlass;

/// Runs what `add` adds. Passes report what the user can change at an operator; what they report is of kind `code`
/// unless they say otherwise.
static int runPasses(ModuleOp module, Code code, llvm::function_ref<void(OpPassManager &)> add) {
  CodeScope scope(module.getContext(), code);
  PassManager manager(module.getContext());
  manager.enableVerifier(true);
  add(manager);
  return succeeded(manager.run(module)) ? kDone : exitCodeOf(code);
}

int Compilation::import(const CompileSettings &settings) {
  CheckOptions options;
  options.import.dims = settings.dims;
  options.convert.loss = settings.loss;
  TrainModel model;
  if (int code = importTrainModel(modelPath, context, options, model)) {
    for (const UnsupportedOp &op : model.report.unsupported)
      llvm::errs() << "windlass: unsupported: " << op.name << " x" << op.count << ", first at '" << op.first << "'"
                   << (op.reason.empty() ? "" : ": " + op.reason) << "\n";
    return code;
  }
  module = std::move(model.module);
  weights = model.weights;
  compiled = settings;
  compiled.loss = model.report.loss;
  if (settings.trainable) {
    llvm::StringSet<> names;
    for (auto parameter : module->getOps<train::ParameterOp>()) {
      names.insert(parameter.getLogicalName());
      if (!llvm::is_contained(*settings.trainable, parameter.getLogicalName()))
        parameter.setTrainable(false);
    }
    for (const std::string &name : *settings.trainable)
      if (!names.contains(name))
        return fail(Code::plan_mismatch,
                    "the plan trains '" + name + "', which this model does not have; make a plan for this model");
  }
  int code = runPasses(*module, Code::pattern, [&](OpPassManager &manager) {
    if (!settings.freeze.empty()) {
      train::FreezeParametersPassOptions freeze;
      for (const std::string &pattern : settings.freeze)
        freeze.patterns.push_back(pattern);
      manager.addPass(train::createFreezeParametersPass(freeze));
    }
    // What recognition left over. Not after differentiation: both would share values between forward and backward.
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
    manager.addPass(train::createVerifyGraphPass());
  });
  if (code == kDone)
    modelHash = plan::hashModel(*module);
  return code;
}

int Compilation::buildFunctions(const CompileSettings &settings) {
  return runPasses(*module, Code::training, [&](OpPassManager &manager) {
    // Backward pass, then what the optimizer does with its gradients.
    train::DifferentiatePassOptions differentiate;
    differentiate.microBatches = settings.microBatches;
    manager.addPass(train::createDifferentiatePass(differentiate));
    train::AddOptimizerPassOptions optimizer;
    optimizer.optimizer = settings.optimizer;
    optimizer.microBatches = settings.microBatches;
    optimizer.clip = settings.clip;
    for (const std::string &pattern : settings.noDecay)
      optimizer.noDecay.push_back(pattern);
    manager.addPass(train::createAddOptimizerPass(optimizer));
    // Repeats are found last: the passes before must not make equal layers differ.
    manager.addPass(train::createMarkRepeatsPass());
    manager.addPass(train::createVerifyFunctionsPass());
  });
}

int Compilation::materialize(Code code) {
  return runPasses(*module, code, [&](OpPassManager &manager) {
    manager.addPass(plan::createDecomposeSplitReductions());
    manager.addPass(plan::createMaterializeLayouts());
    manager.addPass(plan::createVerifyLayouts());
  });
}

int Compilation::makePlan(const PlanChoice &choice, llvm::ArrayRef<std::string> pins, std::unique_ptr<Pass> pass) {
  cluster = choice.cluster;
  plan::PlanSettings settings = plan::getPlanSettings(*module, compiled.dims, compiled.loss);
  settings.pins = pins;
  llvm::sort(settings.pins);
  settings.pins.erase(llvm::unique(settings.pins), settings.pins.end());
  int code = runPasses(*module, Code::strategy, [&](OpPassManager &manager) { manager.addPass(std::move(pass)); });
  if (code != kDone)
    return code;
  auto plan = plan::buildPlanFile(*module, cluster, settings, modelHash);
  if (failed(plan))
    return kInternal;
  planText = plan::writePlanFile(*plan);
  return materialize(Code::strategy);
}

static std::unique_ptr<Pass> makeStrategyPass(const PlanChoice &choice, llvm::ArrayRef<std::string> pins) {
  plan::ApplyStrategyOptions options;
  options.strategy = choice.strategy;
  options.ranks = choice.cluster.getDevices();
  options.pins.append(pins.begin(), pins.end());
  return plan::createApplyStrategy(options);
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
                           [&](OpPassManager &manager) { manager.addPass(makeStrategyPass(choice, choice.pins)); }))
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
  std::vector<std::string> pins = choice.pins;
  if (!choice.onnxPins.empty())
    if (int code = readOnnxPins(choice, pins))
      return code;
  return makePlan(choice, pins, makeStrategyPass(choice, pins));
}

int Compilation::applyRandomPlan(const PlanChoice &choice, uint64_t seed) {
  plan::ApplyRandomPlanOptions options;
  options.seed = seed;
  options.ranks = choice.cluster.getDevices();
  return makePlan(choice, {}, plan::createApplyRandomPlan(options));
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

int Compilation::applyPlan(const plan::PlanFile &plan, const CompileSettings &settings) {
  cluster = plan.cluster;
  plan::PlanSettings made = plan::getPlanSettings(*module, settings.dims, compiled.loss);
  if (llvm::Error error = plan::checkPlanFits(plan, made, modelHash, *module))
    return fail(Code::plan_mismatch, "the plan does not fit: " + llvm::toString(std::move(error)));
  if (llvm::Error error = plan::applyPlanFile(*module, plan))
    return fail(Code::plan_mismatch, "the plan does not fit: " + llvm::toString(std::move(error)));
  FailureOr<plan::Pins> pins = plan::readPins(*module, plan.settings.pins);
  if (failed(pins) || failed(plan::verifyPins(*module, *pins)))
    return exitCodeOf(Code::pin);
  planText = plan::writePlanFile(plan);
  // What an edit broke is said at the operator, before reshards are made for it.
  int code = runPasses(*module, Code::plan_mismatch, [](OpPassManager &manager) {
    plan::VerifyLayoutsOptions options;
    options.materialized = false;
    manager.addPass(plan::createVerifyLayouts(options));
  });
  return code == kDone ? materialize(Code::plan_mismatch) : code;
}

/// What the back end declares for a rank of a module at L5.
static rt::reserve declareReserve(ModuleOp module, const Cluster &cluster, int64_t threads) {
  if (cluster.getBackend() != "cpu")
    return {};
  rt::reserve_need need;
  auto mesh = module->getAttrOfType<plan::MeshAttr>(plan::kMeshAttr);
  need.ranks = mesh.getRanks();
  need.has_processes = need.ranks > 1;
  int64_t hosts = 0, most = 1;
  for (const HostGroup &group : cluster.hosts) {
    hosts += group.count;
    most = std::max(most, group.devices);
  }
  need.is_one_host = hosts <= 1;
  need.threads = threads ? threads : std::max<int64_t>(1, std::thread::hardware_concurrency() / most);
  for (auto communicator : module.getOps<sched::CommunicatorOp>()) {
    int64_t members = 1;
    for (Attribute axis : communicator.getAxes())
      members *= mesh.sizeOf(cast<StringAttr>(axis).getValue());
    need.communicators.push_back(members);
  }
  need.scratch_bytes = sched::getScratchBytesPerThread(module);
  for (auto resource : module.getOps<sched::ResourceOp>())
    switch (resource.getKind()) {
    case sched::ResourceKind::input:
      need.input_bytes += resource.getGlobalTensorType().getNumElements() *
                          std::max<int64_t>(1, resource.getGlobalTensorType().getElementTypeBitWidth() / 8);
      [[fallthrough]];
    case sched::ResourceKind::parameter:
    case sched::ResourceKind::state:
      ++need.tensors;
      break;
    default:
      break;
    }
  return rt::declare_reserve(need);
}

int Compilation::schedule(int64_t memoryLimit, int64_t threads) {
  int code = runPasses(*module, Code::lowering, [&](OpPassManager &manager) {
    // Functions of one rank on its parts of the values.
    manager.addPass(sched::createPlanToSched());
    manager.addPass(sched::createVerifyAsync());
    // Then commands on buffers: fusion first, while values are still values.
    manager.addPass(sched::createFuseElementwise());
    manager.addPass(sched::createLowerToCommands());
    manager.addPass(sched::createVerifyCommands());
  });
  if (code != kDone)
    return code;
  reserve = declareReserve(*module, cluster, threads);
  int64_t arenas = 0;
  for (auto arena : module->getOps<sched::ArenaOp>())
    arenas += arena.getBytes();
  int64_t bytes = arenas + reserve.total();
  if (memoryLimit > 0 && bytes > memoryLimit)
    return fail(Code::memory, "the plan needs " + std::to_string(bytes) + " bytes per device, " +
                                  std::to_string(reserve.total()) + " of them beside its arena, but the limit is " +
                                  std::to_string(memoryLimit) + "; raise --memory-limit by " +
                                  std::to_string(bytes - memoryLimit) + " or split the batch over more ranks");
  return kDone;
}

int Compilation::emit(cpp::ProjectFiles &files) {
  if (cluster.getBackend() != "cpu")
    return fail(Code::devices, "programs are made for back end 'cpu' only, but the cluster's " + cluster.describe() +
                                   " is of '" + cluster.getBackend() + "': plan for it, or emit for --cluster cpu:N");
  if (failed(convertSchedToEmitC(*module)))
    return kInternal;
  cpp::ProjectOptions options;
  options.planJson = planText;
  options.planHash = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(planText)), true);
  options.ranks = getRanks();
  options.scratchBytes = sched::getScratchBytesPerThread(*module);
  auto made = cpp::makeProject(*module, options);
  if (failed(made))
    return kInternal;
  files = std::move(*made);
  return kDone;
}
