//===- LegalizeElementwise.cpp - element-wise operators -------------------===//

#include "Legalizer.h"

#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace windlass;

/// The ONNX operators of one operand without attributes.
static constexpr std::pair<llvm::StringLiteral, UnaryKind> kUnaryOperators[] = {
    {"Neg", UnaryKind::neg},
    {"Abs", UnaryKind::abs},
    {"Not", UnaryKind::logicalNot},
    {"IsNaN", UnaryKind::isNan},
#define WINDLASS_REAL_FUNCTION(Class, name, onnx, ...) {onnx, UnaryKind::name},
#include "windlass/Dialect/Train/IR/RealFunctions.def"
};

static UnaryKind getUnaryKind(llvm::StringRef name) {
  return llvm::find_if(kUnaryOperators, [&](const auto &row) { return row.first == name; })->second;
}

static std::optional<BinaryKind> getBinaryKind(llvm::StringRef name) {
  static const std::pair<llvm::StringRef, BinaryKind> table[] = {
      {"Add", BinaryKind::add},  {"Sub", BinaryKind::sub},          {"Mul", BinaryKind::mul},
      {"Div", BinaryKind::div},  {"Mod", BinaryKind::mod},          {"And", BinaryKind::bitAnd},
      {"Or", BinaryKind::bitOr}, {"Xor", BinaryKind::bitXor},       {"BitwiseAnd", BinaryKind::bitAnd},
      {"Max", BinaryKind::max},  {"BitwiseOr", BinaryKind::bitOr},  {"Min", BinaryKind::min},
      {"Sum", BinaryKind::add},  {"BitwiseXor", BinaryKind::bitXor}};
  for (auto [key, kind] : table)
    if (key == name)
      return kind;
  return std::nullopt;
}

static std::optional<CompareKind> getCompareKind(llvm::StringRef name) {
  static const std::pair<llvm::StringRef, CompareKind> table[] = {{"Equal", CompareKind::equal},
                                                                  {"Less", CompareKind::less},
                                                                  {"LessOrEqual", CompareKind::lessEqual},
                                                                  {"Greater", CompareKind::greater},
                                                                  {"GreaterOrEqual", CompareKind::greaterEqual}};
  for (auto [key, kind] : table)
    if (key == name)
      return kind;
  return std::nullopt;
}

void Legalizer::registerElementwise() {
  for (const auto &[name, kind] : kUnaryOperators)
    if (!name.empty())
      handle(name, &Legalizer::legalizeUnary);
  for (const char *name :
       {"Add", "Sub", "Mul", "Div", "Mod", "And", "Or", "Xor", "BitwiseAnd", "BitwiseOr", "BitwiseXor"})
    handle(name, &Legalizer::legalizeBinary);
  for (const char *name : {"Max", "Min", "Sum", "Mean"})
    handle(name, &Legalizer::legalizeVariadic);
  for (const char *name : {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
    handle(name, &Legalizer::legalizeCompare);
  handle("Pow", &Legalizer::legalizePow);
  handle("Where", &Legalizer::legalizeWhere);
  handle("Cast", &Legalizer::legalizeCast);
  handle("CastLike", &Legalizer::legalizeCast);
  handle("Clip", &Legalizer::legalizeClip);
  handle("Identity", &Legalizer::legalizeIdentity);
}

LogicalResult Legalizer::legalizeUnary(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  UnaryKind kind = getUnaryKind(node.op.getOpType());
  const Entry &x = node.inputs[0];
  bool wantsBoolean = kind == UnaryKind::logicalNot;
  bool takesIntegers = kind == UnaryKind::neg || kind == UnaryKind::abs || kind == UnaryKind::sign;
  if (wantsBoolean != x.isBoolean() || (!wantsBoolean && !takesIntegers && !x.isFloat()))
    return kind == UnaryKind::relu ? unsupported("is applied to integers")
                                   : invalid(node, "has an operand of another element type than it takes");
  return give(node, eval.unary(kind, x));
}

/// Fails where two operands do not fit together.
LogicalResult Legalizer::checkOperands(NodeContext &node, const Entry &lhs, const Entry &rhs) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (lhs.getElementType() != rhs.getElementType()) {
    stream << "has operands of types " << lhs.type << " and " << rhs.type;
    return invalid(node, text);
  }
  FailureOr<Shape> shape = broadcastShapes(lhs.getShape(), rhs.getShape());
  if (succeeded(shape))
    return checkCount(node, *shape);
  stream << "has operands of shapes " << lhs.type << " and " << rhs.type << ", which do not broadcast";
  return invalid(node, text);
}

LogicalResult Legalizer::legalizeBinary(NodeContext &node) {
  if (failed(expectTensors(node, 2)) || failed(checkOperands(node, node.inputs[0], node.inputs[1])))
    return failure();
  BinaryKind kind = *getBinaryKind(node.op.getOpType());
  bool isLogical = node.op.getOpType() == "And" || node.op.getOpType() == "Or" || node.op.getOpType() == "Xor";
  if (isLogical != node.inputs[0].isBoolean())
    return invalid(node, "has operands of another element type than it takes");
  if (kind == BinaryKind::mod && node.inputs[0].isFloat() && node.getInt("fmod", 0) == 0)
    return invalid(node, "takes floats only with fmod = 1");
  if (kind == BinaryKind::mod && !node.inputs[0].isFloat() && node.getInt("fmod", 0) != 0)
    return unsupported("has fmod = 1 on integers");
  return give(node, eval.binary(kind, node.inputs[0], node.inputs[1]));
}

LogicalResult Legalizer::legalizeVariadic(NodeContext &node) {
  if (node.inputs.empty())
    return invalid(node, "has no operands");
  if (failed(expectTensors(node, node.inputs.size())))
    return failure();
  llvm::StringRef name = node.op.getOpType();
  BinaryKind kind = name == "Mean" ? BinaryKind::add : *getBinaryKind(name);
  Entry result = node.inputs[0];
  for (const Entry &operand : llvm::drop_begin(node.inputs)) {
    if (failed(checkOperands(node, result, operand)))
      return failure();
    result = eval.binary(kind, result, operand);
    if (!result.isTensor())
      return give(node, result);
  }
  if (name == "Mean")
    result = eval.binary(BinaryKind::div, result, eval.scalar(double(node.inputs.size()), result.getElementType()));
  return give(node, result);
}

LogicalResult Legalizer::legalizeCompare(NodeContext &node) {
  if (failed(expectTensors(node, 2)) || failed(checkOperands(node, node.inputs[0], node.inputs[1])))
    return failure();
  return give(node, eval.compare(*getCompareKind(node.op.getOpType()), node.inputs[0], node.inputs[1]));
}

LogicalResult Legalizer::legalizePow(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  // The exponent may have another type; the result has the base's.
  const Entry &base = node.inputs[0];
  Entry exponent = node.inputs[1];
  if (!base.isFloat() && exponent.isFloat())
    return unsupported("raises integers to a float power");
  exponent = eval.cast(exponent, base.getElementType());
  if (!exponent.isTensor())
    return give(node, exponent);
  if (failed(checkOperands(node, base, exponent)))
    return failure();
  return give(node, eval.binary(BinaryKind::pow, base, exponent));
}

LogicalResult Legalizer::legalizeWhere(NodeContext &node) {
  if (failed(expectTensors(node, 3)) || failed(checkOperands(node, node.inputs[1], node.inputs[2])))
    return failure();
  if (!node.inputs[0].isBoolean())
    return invalid(node, "has a condition that is not boolean");
  FailureOr<Shape> branches = broadcastShapes(node.inputs[1].getShape(), node.inputs[2].getShape());
  FailureOr<Shape> shape = broadcastShapes(node.inputs[0].getShape(), *branches);
  if (failed(shape))
    return invalid(node, "has a condition whose shape does not broadcast with the branches");
  if (failed(checkCount(node, *shape)))
    return failure();
  return give(node, eval.select(node.inputs[0], node.inputs[1], node.inputs[2]));
}

/// Returns the element type of an ONNX number.
static Type getElementTypeByNumber(int64_t number, MLIRContext *context) {
  switch (number) {
  case 1:
    return Float32Type::get(context);
  case 2:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case 3:
    return IntegerType::get(context, 8);
  case 6:
    return IntegerType::get(context, 32);
  case 7:
    return IntegerType::get(context, 64);
  case 9:
    return IntegerType::get(context, 1);
  case 10:
    return Float16Type::get(context);
  case 11:
    return Float64Type::get(context);
  case 16:
    return BFloat16Type::get(context);
  default:
    return {};
  }
}

Type Legalizer::readElementType(NodeContext &node, llvm::StringRef attribute) {
  return getComputedType(getElementTypeByNumber(node.getInt(attribute, 0), builder.getContext()));
}

LogicalResult Legalizer::legalizeCast(NodeContext &node) {
  bool isLike = node.op.getOpType() == "CastLike";
  if (failed(expectTensors(node, isLike ? 2 : 1)))
    return failure();
  Type type = isLike ? node.inputs[1].getElementType() : readElementType(node, "to");
  if (!type)
    return unsupported("casts to ONNX element type " + llvm::Twine(node.getInt("to", 0)));
  return give(node, eval.cast(node.inputs[0], type));
}

LogicalResult Legalizer::legalizeClip(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  Entry result = node.inputs[0];
  for (size_t i : {1, 2}) {
    if (!node.has(i))
      continue;
    if (!node.inputs[i].isTensor())
      return invalid(node, "has a bound that is not a tensor");
    if (failed(checkOperands(node, result, node.inputs[i])))
      return failure();
    result = eval.binary(i == 1 ? BinaryKind::max : BinaryKind::min, result, node.inputs[i]);
    if (!result.isTensor())
      return give(node, result);
  }
  return give(node, result);
}

LogicalResult Legalizer::legalizeIdentity(NodeContext &node) {
  if (node.inputs.size() != 1)
    return invalid(node, "needs one operand");
  return give(node, node.inputs[0]);
}
