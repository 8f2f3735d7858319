#include "FunctionChecks.h"

#include "windlass/Support/Printable.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace windlass::train {

bool checkModule(ModuleOp module, ArrayRef<StringRef> functions) {
  bool isRight = true;
  llvm::StringMap<Operation *> names;
  SymbolTable symbols(module);
  for (Operation &op : *module.getBody()) {
    if (auto function = dyn_cast<func::FuncOp>(op)) {
      if (!llvm::is_contained(functions, function.getSymName())) {
        function.emitOpError() << "@" << function.getSymName() << " is not a function of this level, which has "
                               << llvm::join(functions, ", ");
        isRight = false;
      }
      continue;
    }
    auto parameter = dyn_cast<ParameterOp>(op);
    if (!parameter) {
      op.emitOpError() << "is not allowed in a module of this level, which holds train.parameter and func.func";
      isRight = false;
      continue;
    }
    auto [known, isNew] = names.try_emplace(parameter.getLogicalName(), parameter);
    if (!isNew) {
      parameter.emitOpError() << "has the logical name " << printable(parameter.getLogicalName()) << " of @"
                              << cast<ParameterOp>(known->second).getSymName() << "; names are distinct";
      isRight = false;
    }
    if (parameter.getOf()) {
      auto weight = symbols.lookup<ParameterOp>(*parameter.getOf());
      if (!weight || weight.getRole() != Role::weight) {
        parameter.emitOpError() << "is the state of @" << *parameter.getOf() << ", which is no weight of the module";
        isRight = false;
      }
    }
  }
  return isRight;
}

bool checkFunction(func::FuncOp function, bool mayWrite) {
  bool isRight = true;
  if (!llvm::hasSingleElement(function.getBody())) {
    function.emitOpError() << "must have a body of one block";
    return false;
  }
  for (Type type : function.getArgumentTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape()) {
      function.emitOpError() << "has an argument of type " << type << "; arguments are tensors of static shape";
      isRight = false;
    }
  }
  llvm::StringSet<> ids;
  for (Operation &op : function.front().without_terminator()) {
    if (op.getName().getDialectNamespace() != TrainDialect::getDialectNamespace()) {
      op.emitOpError() << "is not an operator of the train dialect";
      isRight = false;
      continue;
    }
    if (isa<WriteOp>(op) && !mayWrite) {
      op.emitOpError() << "in @" << function.getSymName() << "; parameters are written in @" << kUpdateFunction
                       << " only";
      isRight = false;
    }
    if (isa<ConstantOp, HyperparameterOp>(op))
      continue;
    auto id = op.getAttrOfType<StringAttr>(kIdAttr);
    if (!id) {
      op.emitOpError() << "has no " << kIdAttr;
      isRight = false;
    } else if (!ids.insert(id.getValue()).second) {
      op.emitOpError() << "has the " << kIdAttr << " " << printable(id.getValue()) << " of another operator in @"
                       << function.getSymName();
      isRight = false;
    }
  }
  return isRight;
}

} // namespace windlass::train
