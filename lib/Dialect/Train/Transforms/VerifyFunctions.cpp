// train-verify-functions
#include "FunctionChecks.h"
#include "windlass/Dialect/Train/Transforms/Passes.h"
#include "windlass/Support/Printable.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace windlass::train {

#define GEN_PASS_DEF_VERIFYFUNCTIONSPASS
#include "windlass/Dialect/Train/Transforms/Passes.h.inc"

namespace {

/// Checks one module; every check reports and goes on.
class FunctionsVerifier {
public:
  explicit FunctionsVerifier(ModuleOp module) : module(module) {}
  bool run();

private:
  InFlightDiagnostic report(Operation *op) {
    isRight = false;
    return op->emitOpError();
  }
  func::FuncOp find(StringRef name, bool isRequired);
  void checkArguments(func::FuncOp function, func::FuncOp init);
  void checkParts(func::FuncOp microbatch);
  void checkGradients(func::FuncOp microbatch, func::FuncOp update);

  ModuleOp module;
  bool isRight = true;
};

func::FuncOp FunctionsVerifier::find(StringRef name, bool isRequired) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (function) {
    isRight &= checkFunction(function, name == kUpdateFunction);
  } else if (isRequired) {
    module.emitError() << "a training step has a function @" << name;
    isRight = false;
  }
  return function;
}

void FunctionsVerifier::checkArguments(func::FuncOp function, func::FuncOp init) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    if (function.getArgAttrOfType<StringAttr>(index, kInputAttr))
      continue;
    auto value = function.getArgAttrOfType<IntegerAttr>(index, kInitValueAttr);
    if (!value) {
      report(function) << "argument " << index << " has neither " << kInputAttr << " nor " << kInitValueAttr;
      continue;
    }
    uint64_t result = value.getValue().getZExtValue();
    if (result >= init.getNumResults())
      report(function) << "argument " << index << " is value " << result << " of @" << kInitFunction << ", which has "
                       << init.getNumResults();
    else if (init.getResultTypes()[result] != function.getArgumentTypes()[index])
      report(function) << "argument " << index << " has type " << function.getArgumentTypes()[index] << ", but value "
                       << result << " of @" << kInitFunction << " is " << init.getResultTypes()[result];
  }
}

void FunctionsVerifier::checkParts(func::FuncOp microbatch) {
  enum Part { Forward, Stash, Backward };
  constexpr StringRef names[] = {"forward", "stash", "backward"};
  Part current = Forward;
  llvm::DenseMap<Operation *, Part> parts;
  llvm::StringSet<> forwardIds;
  for (Operation &op : microbatch.front().without_terminator()) {
    auto forward = op.getAttrOfType<StringAttr>(kForwardAttr);
    if (isa<ConstantOp, HyperparameterOp>(op))
      continue;
    Part part = isa<StashOp>(op) ? Stash : forward ? Backward : Forward;
    parts[&op] = part;
    if (part < current)
      report(&op) << "of the " << names[part] << " part follows the " << names[current] << " part";
    current = std::max(current, part);
    auto id = op.getAttrOfType<StringAttr>(kIdAttr);
    if (part == Forward && id)
      forwardIds.insert(id.getValue());
    if (part == Backward && !forwardIds.contains(forward.getValue()))
      report(&op) << "is the adjoint of " << printable(forward.getValue()) << ", which is no forward operator";
    for (Value operand : op.getOperands()) {
      auto source = parts.find(operand.getDefiningOp());
      if (part == Backward && source != parts.end() && source->second == Forward)
        report(&op) << "uses a value of the forward part; hand it over by train.stash";
    }
  }
}

void FunctionsVerifier::checkGradients(func::FuncOp microbatch, func::FuncOp update) {
  SmallVector<ParameterOp> weights;
  for (ParameterOp parameter : module.getOps<ParameterOp>())
    if (parameter.getTrainable())
      weights.push_back(parameter);
  auto check = [&](func::FuncOp function, unsigned first, TypeRange types, auto getAttr, StringRef what) {
    if (types.size() != first + weights.size()) {
      report(function) << "has " << types.size() - std::min<size_t>(first, types.size()) << " gradients as " << what
                       << ", but the module has " << weights.size() << " trainable parameters";
      return;
    }
    for (auto [index, weight] : llvm::enumerate(weights)) {
      auto name = getAttr(first + index);
      if (!name || name.getValue() != weight.getSymName() || types[first + index] != weight.getType())
        report(function) << what << " " << first + index << " must be the gradient of @" << weight.getSymName()
                         << " of type " << weight.getType();
    }
  };
  check(
      microbatch, 1, microbatch.getResultTypes(),
      [&](unsigned index) { return microbatch.getResultAttrOfType<FlatSymbolRefAttr>(index, kGradientAttr); },
      "results");
  if (update)
    check(
        update, 0, update.getArgumentTypes(),
        [&](unsigned index) { return update.getArgAttrOfType<FlatSymbolRefAttr>(index, kGradientAttr); }, "arguments");
}

bool FunctionsVerifier::run() {
  isRight = checkModule(module, {kInitFunction, kMicrobatchFunction, kUpdateFunction, kEvaluateFunction});
  func::FuncOp init = find(kInitFunction, true), microbatch = find(kMicrobatchFunction, true);
  func::FuncOp evaluate = find(kEvaluateFunction, true), update = find(kUpdateFunction, false);
  // The checks below compare functions that are right by themselves.
  if (!isRight)
    return false;
  if (init.getNumArguments() != 0)
    report(init) << "takes " << init.getNumArguments() << " arguments; init values depend on no input";
  for (ReadOp read : init.getOps<ReadOp>())
    report(read) << "in @" << kInitFunction << "; init values depend on no parameter";
  checkArguments(microbatch, init);
  checkArguments(evaluate, init);
  checkParts(microbatch);
  checkGradients(microbatch, update);
  return isRight;
}

class VerifyFunctionsPass : public impl::VerifyFunctionsPassBase<VerifyFunctionsPass> {
public:
  void runOnOperation() override {
    if (!FunctionsVerifier(getOperation()).run())
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace windlass::train
