#include "Lowering.h"

#include "windlass/Dialect/Train/IR/Optimizers.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/Printable.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;
using plan::LayoutAttr;

Resources::Resources(ModuleOp module, ProgramOp program)
    : module(module), symbols(module), mesh(program.getMesh()), builder(OpBuilder::atBlockBegin(program.getBody())) {}

FailureOr<Resources> Resources::create(ModuleOp module, ProgramOp program) {
  Resources resources(module, program);
  if (failed(resources.declareInputs()) || failed(resources.declareParameters()) || failed(resources.declareOthers()))
    return failure();
  return resources;
}

ResourceOp Resources::declare(Location loc, ResourceKind kind, const Twine &name, RankedTensorType global,
                              LayoutAttr layout) {
  return ResourceOp::create(builder, loc, builder.getStringAttr(name), ResourceKindAttr::get(module.getContext(), kind),
                            TypeAttr::get(layout.getLocalType(global, mesh)), TypeAttr::get(global), layout,
                            /*logical_name=*/nullptr, /*of=*/nullptr, /*scalar=*/nullptr, /*chunk=*/nullptr,
                            /*peer=*/nullptr, /*arena=*/nullptr,
                            /*offset=*/nullptr);
}

LogicalResult Resources::declareInputs() {
  for (StringRef functionName : {train::kMicrobatchFunction, train::kEvaluateFunction}) {
    auto function = module.lookupSymbol<func::FuncOp>(functionName);
    if (!function)
      continue;
    for (BlockArgument argument : function.getArguments()) {
      unsigned number = argument.getArgNumber();
      if (function.getArgAttr(number, train::kInitValueAttr))
        continue;
      auto name = function.getArgAttrOfType<StringAttr>(number, train::kInputAttr);
      if (!name)
        return function.emitError("argument ") << number << " is neither an input nor a value of @init";
      auto type = llvm::cast<RankedTensorType>(argument.getType());
      LayoutAttr layout = plan::getLayout(argument);
      if (ResourceOp existing = inputs.lookup(name.getValue())) {
        if (existing.getGlobalType() != type || existing.getLayout() != layout)
          return function.emitError("takes input ")
                 << printable(name.getValue()) << " with another type or layout than @" << train::kMicrobatchFunction;
        continue;
      }
      ResourceOp resource =
          declare(argument.getLoc(), ResourceKind::input, "input_" + Twine(inputs.size()), type, layout);
      resource.setLogicalNameAttr(name);
      for (StringRef attribute : {train::kFeedAttr, train::kVocabularyAttr})
        if (Attribute value = function.getArgAttr(number, attribute))
          resource->setAttr(attribute, value);
      inputs[name.getValue()] = resource;
    }
  }
  return success();
}

plan::MemoryKind Resources::getUpdateMemory(Operation *op) const {
  if (!train::isOptimizerStep(op))
    return plan::MemoryKind::device;
  // What follows a step follows it to its memory.
  auto staysThere = [](Value result) {
    return llvm::all_of(result.getUsers(), [](Operation *user) {
      return llvm::isa<train::WriteOp, train::SquareSumOp>(user) || train::isOptimizerStep(user);
    });
  };
  // The first operands are what the results replace.
  for (auto [result, operand] : llvm::zip(op->getResults(), op->getOperands())) {
    if (!operand.getDefiningOp<train::ReadOp>() || !staysThere(result))
      return plan::MemoryKind::device;
  }
  auto read = op->getOperand(0).getDefiningOp<train::ReadOp>();
  auto weight = symbols.lookup<train::ParameterOp>(read.getParameter());
  if (weight && weight.getOf())
    weight = symbols.lookup<train::ParameterOp>(*weight.getOf());
  return weight ? plan::getUpdateMemory(weight) : plan::MemoryKind::device;
}

RankedTensorType Resources::getHeldGradientType(train::ParameterOp parameter, LayoutAttr made, LayoutAttr layout,
                                                LayoutAttr master) const {
  RankedTensorType type = parameter.getTensorType(), sent = train::getSentGradientType(parameter);
  bool isOfOne = train::getMergedMicroBatches(module) == mesh.sizeOf(plan::AxisRole::replica);
  if (sent == type || !isOfOne || !made)
    return type;
  bool isOnHost = plan::getGradientMemory(parameter) != plan::MemoryKind::device ||
                  plan::getUpdateMemory(parameter) != plan::MemoryKind::device;
  bool travels = isOnHost || isSent(type, made, layout, mesh) || isSent(type, layout, master, mesh);
  return travels ? sent : type;
}

Type Resources::getSentElement(ResourceOp resource) const {
  bool isGradient = llvm::is_contained({ResourceKind::gradient, ResourceKind::reduced}, resource.getKind());
  return (isGradient ? train::getSentGradientType(symbols.lookup<train::ParameterOp>(*resource.getOf()))
                     : resource.getTensorType())
      .getElementType();
}

LogicalResult Resources::declareParameters() {
  auto describe = [&](ResourceOp resource, train::ParameterOp parameter) {
    resource.setLogicalNameAttr(parameter.getLogicalNameAttr());
    resource.setOfAttr(FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    return resource;
  };
  SmallVector<train::ParameterOp> all(module.getOps<train::ParameterOp>());
  llvm::DenseMap<Attribute, LayoutAttr> made; // by weight, the layout in which @microbatch makes the gradient
  if (func::FuncOp microbatch = train::getMicrobatchFunction(module))
    for (unsigned i = 0; i < microbatch.getNumResults(); ++i)
      if (auto name = microbatch.getResultAttrOfType<FlatSymbolRefAttr>(i, train::kGradientAttr))
        if (auto layout = microbatch.getResultAttrOfType<LayoutAttr>(i, plan::kLayoutAttr))
          made[name.getAttr()] = plan::addReplicaSum(layout, module);
  auto layoutOf = [](train::ParameterOp parameter, StringRef name) {
    return parameter->getAttrOfType<LayoutAttr>(name);
  };
  for (train::ParameterOp parameter : all) {
    if (parameter.getRole() == train::Role::state)
      continue;
    LayoutAttr compute = layoutOf(parameter, plan::kLayoutAttr), master = layoutOf(parameter, plan::kMasterLayoutAttr);
    if (!compute || !master)
      return parameter.emitOpError("has no layouts");
    bool isConverted = parameter.getTrainable() && parameter.getComputeTensorType() != parameter.getTensorType();
    plan::MemoryKind memory = plan::getStateMemory(parameter), read = plan::getComputeMemory(parameter);
    // A weight on the host that is its own master copy stays there when the state is on the disk.
    bool isApart = parameter.getTrainable() && memory != read &&
                   !(memory == plan::MemoryKind::disk && read == plan::MemoryKind::host);
    if (isConverted || isApart || !plan::haveSameParts(compute, master, mesh))
      masters[parameter.getSymName()] =
          describe(declare(parameter.getLoc(), ResourceKind::master, "master_" + parameter.getSymName(),
                           parameter.getTensorType(), master.withMemory(memory)),
                   parameter);
    parameters[parameter.getSymName()] =
        describe(declare(parameter.getLoc(), ResourceKind::parameter, "parameter_" + parameter.getSymName(),
                         parameter.getComputeTensorType(), compute.withMemory(read)),
                 parameter);
  }
  for (train::ParameterOp parameter : all)
    if (LayoutAttr layout = layoutOf(parameter, plan::kGradientLayoutAttr)) {
      LayoutAttr master = layoutOf(parameter, plan::kMasterLayoutAttr);
      RankedTensorType type = getHeldGradientType(parameter, made.lookup(parameter.getSymNameAttr()), layout, master);
      gradients[parameter.getSymName()] =
          describe(declare(parameter.getLoc(), ResourceKind::gradient, "gradient_" + parameter.getSymName(), type,
                           layout.withMemory(plan::getGradientMemory(parameter))),
                   parameter);
      if (!plan::haveSameParts(plan::dropUnreduced(layout), master, mesh))
        reducedGradients[parameter.getSymName()] = describe(
            declare(parameter.getLoc(), ResourceKind::reduced, "reduced_" + parameter.getSymName(), type, master),
            parameter);
    }
  for (train::ParameterOp parameter : all)
    if (parameter.getRole() == train::Role::state) {
      LayoutAttr layout = layoutOf(parameter, plan::kMasterLayoutAttr);
      if (!layout)
        return parameter.emitOpError("has no layouts");
      auto weight = symbols.lookup<train::ParameterOp>(*parameter.getOf());
      parameters[parameter.getSymName()] =
          describe(declare(parameter.getLoc(), ResourceKind::state, "state_" + parameter.getSymName(),
                           parameter.getTensorType(), layout.withMemory(plan::getStateMemory(weight))),
                   parameter);
    }
  return success();
}

void Resources::declareScalars() {
  module.walk([&](train::HyperparameterOp op) {
    for (Operation *user : op->getUsers()) {
      plan::MemoryKind memory = getUpdateMemory(user);
      ResourceOp &resource = scalars[{static_cast<int64_t>(op.getName()), static_cast<int64_t>(memory)}];
      if (resource)
        continue;
      auto type = llvm::cast<RankedTensorType>(op.getResult().getType());
      StringRef prefix = memory == plan::MemoryKind::device ? "scalar_" : "host_scalar_";
      resource = declare(op.getLoc(), ResourceKind::scalar, prefix + train::stringifyHyperparameter(op.getName()), type,
                         LayoutAttr::getWhole(type).withMemory(memory));
      resource.setScalarAttr(op.getNameAttr());
    }
  });
}

LogicalResult Resources::declareOthers() {
  auto lookup = [&](StringRef name) { return symbols.lookup<func::FuncOp>(name); };
  auto declareResult = [&](func::FuncOp function, unsigned result, ResourceKind kind,
                           const Twine &name) -> FailureOr<ResourceOp> {
    auto type = llvm::dyn_cast<RankedTensorType>(function.getResultTypes()[result]);
    auto layout = function.getResultAttrOfType<LayoutAttr>(result, plan::kLayoutAttr);
    if (!type || !layout)
      return function.emitError("result ") << result << " has no layout";
    if (kind == ResourceKind::loss)
      layout = plan::addReplicaSum(layout, module);
    return declare(function.getLoc(), kind, name, type, layout);
  };

  if (func::FuncOp init = lookup(train::kInitFunction))
    for (unsigned i = 0; i < init.getNumResults(); ++i) {
      FailureOr<ResourceOp> resource = declareResult(init, i, ResourceKind::value, "value_" + Twine(i));
      if (failed(resource))
        return failure();
      values[i] = *resource;
    }
  func::FuncOp update = lookup(train::kUpdateFunction);
  declareScalars();
  struct Output {
    func::FuncOp function;
    ResourceKind kind;
    StringRef name;
    ResourceOp &resource;
  };
  for (Output output :
       {Output{lookup(train::kMicrobatchFunction), ResourceKind::loss, "step_loss", loss},
        Output{update, ResourceKind::grad_norm, "step_grad_norm", gradientNorm},
        Output{lookup(train::kEvaluateFunction), ResourceKind::evaluate, "evaluate_loss", evaluation}}) {
    if (!output.function)
      continue;
    if (output.function.getNumResults() == 0)
      return output.function.emitError("returns nothing");
    FailureOr<ResourceOp> resource = declareResult(output.function, 0, output.kind, output.name);
    if (failed(resource))
      return failure();
    output.resource = *resource;
  }
  return success();
}

ResourceOp Resources::ofArgument(BlockArgument argument) {
  auto function = llvm::cast<func::FuncOp>(argument.getOwner()->getParentOp());
  unsigned number = argument.getArgNumber();
  if (auto index = function.getArgAttrOfType<IntegerAttr>(number, train::kInitValueAttr))
    return values.lookup(index.getInt());
  if (auto name = function.getArgAttrOfType<FlatSymbolRefAttr>(number, train::kGradientAttr))
    return gradients.lookup(name.getValue());
  if (auto name = function.getArgAttrOfType<StringAttr>(number, train::kInputAttr))
    return inputs.lookup(name.getValue());
  return nullptr;
}
