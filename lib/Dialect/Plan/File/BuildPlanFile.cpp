#include "OperatorKeys.h"

#include "windlass/Dialect/Plan/PlanFile.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Words.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

PlanSettings plan::getPlanSettings(ModuleOp module, std::map<std::string, int64_t> dims, std::string loss) {
  PlanSettings settings;
  settings.dims = std::move(dims);
  settings.loss = std::move(loss);
  if (auto attribute = module->getAttrOfType<DictionaryAttr>(train::kSettingsAttr)) {
    if (auto optimizer = attribute.getAs<StringAttr>("optimizer"))
      settings.optimizer = optimizer.getValue().str();
    if (auto precision = attribute.getAs<StringAttr>("precision"))
      settings.precision = precision.getValue().str();
    settings.microBatches = train::getMicroBatches(module);
    settings.merge = train::getMerge(module);
    if (auto clip = attribute.getAs<BoolAttr>("clip"))
      settings.clip = clip.getValue();
    if (auto ema = attribute.getAs<BoolAttr>("ema"))
      settings.ema = ema.getValue();
    settings.bf16Gradients = attribute.contains(train::kBf16GradientsSetting);
  }
  if (module->hasAttr(train::kCountedLabelsAttr))
    settings.average = "tokens";
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    if (!parameter.getTrainable())
      continue;
    settings.trainable.push_back(parameter.getLogicalName().str());
    if (!parameter.getDecays())
      settings.noDecay.push_back(parameter.getLogicalName().str());
    for (auto [attribute, scales] :
         {std::pair(train::kDecayScaleAttr, &settings.decayScales), {train::kRateScaleAttr, &settings.rateScales}})
      if (auto scale = parameter->getAttrOfType<FloatAttr>(attribute))
        (*scales)[parameter.getLogicalName().str()] = scale.getValueAsDouble();
  }
  llvm::sort(settings.trainable);
  llvm::sort(settings.noDecay);
  return settings;
}

std::string plan::hashModel(ModuleOp module) {
  OwningOpRef<ModuleOp> copy(module.clone());
  copy.get()->removeAttr(SymbolTable::getSymbolAttrName());
  for (auto parameter : copy->getOps<train::ParameterOp>()) {
    parameter.setSourceAttr(train::SourceAttr::get(module.getContext(), train::SourceKind::none, "", 0, 0, Type()));
    parameter.removeReasonAttr();
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  copy->print(os, OpPrintingFlags().useLocalScope());
  llvm::SHA256 hash;
  hash.update(text);
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

/// Whether an op needs no row of its own.
static bool isWhole(Operation &op) {
  auto strategy = op.getAttrOfType<StrategyAttr>(kStrategyAttr);
  return strategy.getSplits().empty() && llvm::all_of(op.getResults(), [](Value result) {
           return getLayout(result) == LayoutAttr::getWhole(llvm::cast<RankedTensorType>(result.getType()));
         });
}

/// Writes the mesh, the replicas that share the micro-batches, and the limits of buckets and units.
static LogicalResult addMesh(PlanFile &plan, ModuleOp module) {
  auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttr);
  auto bucketBytes = module->getAttrOfType<IntegerAttr>(kBucketBytesAttr);
  if (!mesh || !bucketBytes)
    return module.emitError("has no ") << (mesh ? kBucketBytesAttr : kMeshAttr) << ": apply a strategy first";
  for (AxisAttr axis : mesh.getAxes())
    plan.mesh.push_back({axis.getName().getValue().str(), axis.getRole(), axis.getSize()});
  if (auto pipeline = module->getAttrOfType<PipelineAttr>(kPipelineAttr)) {
    plan.pipeline = PlannedPipeline{pipeline.getPositions(), pipeline.getSchedule().str(), {}, {}};
    for (StringAttr id : pipeline.getBegins())
      plan.pipeline->begins.push_back(id.str());
    for (StringAttr line : pipeline.getOrders())
      plan.pipeline->orders.push_back(line.str());
  }
  plan.deviceOrder = plan.cluster.deviceOrder;
  if (plan.deviceOrder.empty())
    for (int64_t rank = 0; rank < plan.getPositions() * mesh.getRanks(); ++rank)
      plan.deviceOrder.push_back(rank);
  plan.replicas = mesh.sizeOf(AxisRole::replica);
  int64_t microBatches = train::getMergedMicroBatches(module);
  if (microBatches % plan.replicas != 0)
    return module.emitError("has ") << countOf(microBatches, "micro-batch", "micro-batches") << " per step, which "
                                    << countOf(plan.replicas, "replica") << " cannot share evenly";
  plan.accumulationSteps = microBatches / plan.replicas;
  plan.bucketBytes = bucketBytes.getInt();
  if (auto prefetchBytes = module->getAttrOfType<IntegerAttr>(kPrefetchBytesAttr))
    plan.prefetchBytes = prefetchBytes.getInt();
  if (auto unitBytes = module->getAttrOfType<IntegerAttr>(kUnitBytesAttr))
    plan.unitBytes = unitBytes.getInt();
  plan.keepsGathers = module->hasAttr(kKeepsGathersAttr);
  return success();
}

/// Writes the layouts of each parameter but of state, which has those of its weight's master copy.
static LogicalResult addParameters(PlanFile &plan, ModuleOp module) {
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    if (parameter.getRole() == train::Role::state)
      continue;
    PlannedParameter &row = plan.parameters[parameter.getLogicalName().str()];
    auto getText = [&](StringRef name) {
      LayoutAttr layout = getCopyLayout(parameter, name);
      return layout ? toText(layout) : std::string();
    };
    if (!row.compute.empty())
      return parameter.emitOpError("shares its logical name with another one");
    row = {getText(kLayoutAttr), getText(kMasterLayoutAttr), getText(kGradientLayoutAttr),
           parameter->hasAttr(kUpdatesOnDeviceAttr)};
    if (row.compute.empty() || row.master.empty())
      return parameter.emitOpError("has no layouts");
  }
  return success();
}

/// Writes which part of each block is recomputed.
static LogicalResult addSegments(PlanFile &plan, ModuleOp module) {
  for (const SegmentBlock &block : getSegmentBlocks(module)) {
    std::optional<std::string> label = block.getLabel();
    if (!label)
      return block.ops.front().front()->emitOpError(
          "belongs to a block whose recomputed operators do not form segments");
    plan.segments[block.name] = *label;
  }
  return success();
}

/// Writes the layouts of a function's arguments and results, without those of gradients, which stand in the rows of
/// their weights.
static LogicalResult addSignature(PlannedFunction &rows, func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    if (function.getArgAttr(argument.getArgNumber(), train::kGradientAttr))
      continue;
    LayoutAttr layout = getLayout(argument);
    if (!layout)
      return function.emitError("argument ") << argument.getArgNumber() << " has no layout";
    rows.arguments.push_back(toText(layout));
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    auto layout = function.getResultAttrOfType<LayoutAttr>(i, kLayoutAttr);
    if (!layout)
      return function.emitError("result ") << i << " has no layout";
    rows.results.push_back(toText(layout));
  }
  return success();
}

/// Writes the splits and layouts of a function's operators, those that are whole by their keys only.
static LogicalResult addOperators(PlannedFunction &rows, func::FuncOp function) {
  OperatorKeys keys;
  std::set<std::string> seen;
  for (Operation &op : function.front().without_terminator()) {
    std::string key = keys.get(op);
    if (!seen.insert(key).second)
      return op.emitOpError("has the id ")
             << printable(key) << ", which another one in @" << function.getName() << " has too";
    auto strategy = op.getAttrOfType<StrategyAttr>(kStrategyAttr);
    if (!strategy)
      return op.emitOpError("has no plan.strategy");
    for (Value result : op.getResults())
      if (!getLayout(result))
        return op.emitOpError("has a result without a layout");
    if (isWhole(op)) {
      rows.whole.push_back(key);
      continue;
    }
    PlannedOp &row = rows.operators[key];
    row.splits = toWords(strategy);
    for (Value result : op.getResults())
      row.layouts.push_back(toText(getLayout(result)));
  }
  llvm::sort(rows.whole);
  return success();
}

FailureOr<PlanFile> plan::buildPlanFile(ModuleOp module, const Cluster &cluster, const PlanSettings &settings,
                                        std::string modelHash) {
  PlanFile plan;
  plan.cluster = cluster;
  plan.settings = settings;
  plan.modelHash = std::move(modelHash);
  if (auto name = module->getAttrOfType<StringAttr>(train::kModelAttr))
    plan.modelName = name.getValue().str();
  if (failed(addMesh(plan, module)) || failed(addParameters(plan, module)) || failed(addSegments(plan, module)))
    return failure();
  for (func::FuncOp function : getPlannedFunctions(module)) {
    PlannedFunction &rows = plan.functions[function.getName().str()];
    if (failed(addSignature(rows, function)) || failed(addOperators(rows, function)))
      return failure();
  }
  return plan;
}
