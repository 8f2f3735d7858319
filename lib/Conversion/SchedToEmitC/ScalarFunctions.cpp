#include "ScalarFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace windlass;

namespace {

/// Returns the type of an element in memory; scalar functions compute with half types as float.
std::string memoryTypeText(Type type) {
  return type.isBF16() ? "detail::bf16" : type.isF16() ? "detail::f16" : cpp::scalarTypeText(type);
}

bool isHalf(Type type) { return type.isBF16() || type.isF16(); }

/// Builds the body of one functor: every scalar op is a call of its definition in windlass/rt/scalar.h.
class FunctorEmitter {
public:
  FunctorEmitter(std::vector<std::string> &lines, func::FuncOp function, std::string name)
      : lines(lines), function(function), name(std::move(name)) {}

  LogicalResult emit() {
    auto result = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    std::string outputs, inputs, parameters;
    for (auto [i, value] : llvm::enumerate(result.getOperands())) {
      std::string type = memoryTypeText(value.getType());
      outputs += (i ? ", " : "") + type;
      parameters += (i ? ", " : "") + type + " &r" + std::to_string(i);
    }
    for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
      std::string type = memoryTypeText(argument.getType()), name = "a" + std::to_string(i);
      inputs += (i ? ", " : "") + type;
      names[argument] = isHalf(argument.getType()) ? "static_cast<float>(" + name + ")" : name;
      // An argument that the function does not read would be a warning in the emitted program.
      parameters += ", [[maybe_unused]] " + type + " a" + std::to_string(i);
    }
    line("struct " + name + " {");
    line("  static constexpr const char *name = \"" + describe() + "\";");
    line("  using outputs = type_list<" + outputs + ">;");
    line("  using inputs = type_list<" + inputs + ">;");
    line("  WINDLASS_FN static void apply(" + parameters + ") {");
    for (Operation &op : function.getBody().front().without_terminator())
      if (failed(emit(&op)))
        return failure();
    for (auto [i, value] : llvm::enumerate(result.getOperands())) {
      std::string expression = names.lookup(value);
      if (isHalf(value.getType()))
        expression = memoryTypeText(value.getType()) + "(" + expression + ")";
      line("    r" + std::to_string(i) + " = " + expression + ";");
    }
    line("  }");
    line("};");
    return success();
  }

private:
  /// Its operators, for tables of time.
  std::string describe() {
    constexpr size_t limit = 60;
    std::string text;
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isa<arith::ConstantOp>(op))
        continue;
      text += (text.empty() ? "" : ", ") + op.getName().stripDialect().str();
      if (text.size() > limit)
        return text.substr(0, limit) + "...";
    }
    return text.empty() ? "copy" : text;
  }

  void line(const std::string &text) { lines.push_back(text); }

  std::string define(Value value, const std::string &expression) {
    std::string variable = "v" + std::to_string(names.size());
    line("    const " + cpp::scalarTypeText(value.getType()) + " " + variable + " = " + expression + ";");
    return names[value] = variable;
  }

  LogicalResult emit(Operation *op) {
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      define(constant, literal(constant.getValue(), constant.getType()));
      return success();
    }
    std::string type = cpp::scalarTypeText(op->getResult(0).getType());
    auto operand = [&](unsigned i) { return names.lookup(op->getOperand(i)); };
    if (auto cast = dyn_cast<train::CastOp>(op)) {
      std::string expression = type == "bool" ? operand(0) + " != 0" : "static_cast<" + type + ">(" + operand(0) + ")";
      define(cast, expression);
      return success();
    }
    if (auto sum = dyn_cast<train::AccumulateOp>(op)) {
      std::string expression = operand(0);
      for (unsigned i = 1; i < op->getNumOperands(); ++i)
        expression = "windlass::scalar::add(" + expression + ", " + operand(i) + ")";
      define(sum, expression);
      return success();
    }
    auto scalar = dyn_cast<train::ScalarOpInterface>(op);
    if (!scalar || op->getNumResults() != 1)
      return op->emitOpError("has no place in a scalar function");
    std::string expression = "windlass::scalar::" + scalar.getScalarFunction().str() + "(";
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      expression += (i ? ", " : "") + operand(i);
    define(op->getResult(0), expression + ")");
    return success();
  }

  std::string literal(Attribute value, Type type) {
    if (auto real = dyn_cast<FloatAttr>(value))
      return "static_cast<" + cpp::scalarTypeText(type) + ">(" + cpp::real(real.getValueAsDouble()).text + ")";
    if (type.isInteger(1))
      return cast<IntegerAttr>(value).getValue().isZero() ? "false" : "true";
    return "static_cast<" + cpp::scalarTypeText(type) + ">(" + std::to_string(cast<IntegerAttr>(value).getInt()) + ")";
  }

  std::vector<std::string> &lines;
  func::FuncOp function;
  std::string name;
  llvm::DenseMap<Value, std::string> names;
};

} // namespace

FailureOr<llvm::StringMap<std::string>> windlass::emitScalarFunctions(sched::ProgramOp program,
                                                                      std::vector<std::string> &lines) {
  llvm::StringMap<std::string> functors;
  for (auto function : program.getOps<func::FuncOp>()) {
    if (!function->hasAttr(sched::kScalarFunctionAttr))
      continue;
    std::string name = "fused_" + std::to_string(functors.size());
    functors[function.getName()] = name;
    if (failed(FunctorEmitter(lines, function, name).emit()))
      return failure();
  }
  return functors;
}
