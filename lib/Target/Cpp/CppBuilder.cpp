#include "windlass/Target/Cpp/CppBuilder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace windlass;
using namespace windlass::cpp;

Expr<bool> cpp::boolean(bool value) { return Expr<bool>(std::string(value ? "true" : "false")); }
Expr<std::int32_t> cpp::int32(int64_t value) { return Expr<std::int32_t>(std::to_string(value)); }
Expr<std::int64_t> cpp::int64(int64_t value) { return Expr<std::int64_t>(std::to_string(value)); }

Expr<double> cpp::real(double value) {
  if (std::isnan(value))
    return Expr<double>(std::string("std::numeric_limits<double>::quiet_NaN()"));
  if (std::isinf(value))
    return Expr<double>(std::string(value < 0 ? "-std::numeric_limits<double>::infinity()"
                                              : "std::numeric_limits<double>::infinity()"));
  // 17 digits read back as the same double.
  std::string text = llvm::formatv("{0:e16}", value).str();
  return Expr<double>(text);
}

Expr<rt::reduction> cpp::reductionKind(rt::reduction kind) {
  switch (kind) {
  case rt::reduction::max:
    return Expr<rt::reduction>(std::string("reduction::max"));
  case rt::reduction::min:
    return Expr<rt::reduction>(std::string("reduction::min"));
  case rt::reduction::sum:
    break;
  }
  return Expr<rt::reduction>(std::string("reduction::sum"));
}

std::string cpp::elementTypeText(Type type) {
  if (type.isF64())
    return "element_type::f64";
  if (type.isBF16())
    return "element_type::bf16";
  if (type.isF16())
    return "element_type::f16";
  if (type.isInteger(64))
    return "element_type::i64";
  if (type.isInteger(32))
    return "element_type::i32";
  if (type.isInteger(1))
    return "element_type::boolean";
  return "element_type::f32";
}

std::string cpp::scalarTypeText(Type type) {
  if (type.isF64())
    return "double";
  if (type.isInteger(64))
    return "std::int64_t";
  if (type.isInteger(32))
    return "std::int32_t";
  if (type.isInteger(1))
    return "bool";
  return "float";
}

Expr<rt::place> cpp::placeAt(std::int64_t arena, std::int64_t offset) {
  return Expr<rt::place>("{" + std::to_string(arena) + ", " + std::to_string(offset) + "}");
}

Expr<rt::row_place> cpp::rowPlaceAt(std::int64_t arena, std::int64_t column) {
  return Expr<rt::row_place>("{" + std::to_string(arena) + ", " + std::to_string(column) + "}");
}

std::string cpp::listText(llvm::ArrayRef<int64_t> values) {
  std::string text = "{";
  for (auto [i, value] : llvm::enumerate(values))
    text += (i ? ", " : "") + std::to_string(value);
  return text + "}";
}

Type CppBuilder::opaqueType(llvm::StringRef text) { return emitc::OpaqueType::get(builder.getContext(), text); }

Value CppBuilder::callOpaque(llvm::StringRef name, Type result, llvm::ArrayRef<Argument> arguments,
                             llvm::ArrayRef<std::string> templateArguments) {
  llvm::SmallVector<Value> operands;
  llvm::SmallVector<Attribute> order, templates;
  for (const Argument &argument : arguments) {
    if (argument.value) {
      order.push_back(builder.getIndexAttr(static_cast<int64_t>(operands.size())));
      operands.push_back(argument.value);
    } else {
      order.push_back(emitc::OpaqueAttr::get(builder.getContext(), argument.text));
    }
  }
  for (const std::string &text : templateArguments)
    templates.push_back(emitc::OpaqueAttr::get(builder.getContext(), text));
  auto call = emitc::CallOpaqueOp::create(builder, loc, result ? TypeRange(result) : TypeRange(), name, operands,
                                          builder.getArrayAttr(order),
                                          templates.empty() ? ArrayAttr() : builder.getArrayAttr(templates));
  return result ? call.getResult(0) : Value();
}

void CppBuilder::check(Value status) { callOpaque("WINDLASS_TRY", Type(), {Argument{status, ""}}); }

void CppBuilder::comment(llvm::StringRef text) {
  std::string clean;
  for (char c : text.take_front(100))
    clean += llvm::isAlnum(c) || llvm::StringRef("._-/ ").contains(c) ? c : '_';
  emitc::VerbatimOp::create(builder, loc, "// " + clean);
}

void CppBuilder::returnOk() {
  Value status = callOpaque("ok_status", typeOf<rt::status>(), {});
  emitc::ReturnOp::create(builder, loc, status);
}
