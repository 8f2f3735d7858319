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

Expr<rt::decay_mode> cpp::decayMode(rt::decay_mode mode) {
  switch (mode) {
  case rt::decay_mode::decoupled:
    return Expr<rt::decay_mode>(std::string("decay_mode::decoupled"));
  case rt::decay_mode::coupled:
    return Expr<rt::decay_mode>(std::string("decay_mode::coupled"));
  case rt::decay_mode::none:
    break;
  }
  return Expr<rt::decay_mode>(std::string("decay_mode::none"));
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

std::string cpp::listText(llvm::ArrayRef<int64_t> values) {
  std::string text = "{";
  for (auto [i, value] : llvm::enumerate(values))
    text += (i ? ", " : "") + std::to_string(value);
  return text + "}";
}

std::string cpp::bufferText(llvm::ArrayRef<int64_t> where, MemRefType type) {
  std::string text =
      "(" + listText(where) + ", " + elementTypeText(type.getElementType()) + ", " + listText(type.getShape());
  auto [strides, offset] = type.getStridesAndOffset();
  int64_t expected = 1;
  bool dense = true;
  for (int64_t i = type.getRank(); i-- > 0; expected *= type.getDimSize(i))
    dense &= type.getDimSize(i) == 1 || strides[i] == expected;
  return text + (dense ? "" : ", " + listText(strides)) + ")";
}

std::string Signature::getText(llvm::function_ref<bool(llvm::StringRef parameter)> isUsed) const {
  std::string text = (isStatic ? "static status " : "status ") + name + "(";
  for (auto [i, parameter] : llvm::enumerate(parameters)) {
    text += std::string(i ? ", " : "") + (isUsed(parameter.name) ? "" : "[[maybe_unused]] ") + parameter.type.str();
    text += (parameter.type.ends_with("&") ? "" : " ") + parameter.name;
  }
  return text + ")";
}

std::string CppBuilder::callText(llvm::StringRef name, llvm::ArrayRef<std::string> arguments) {
  return (name + "(" + llvm::join(arguments, ", ") + ")").str();
}

void CppBuilder::line(const std::string &text) {
  std::string comment = label.empty() ? "" : " // " + label.getText();
  lines.push_back(std::string(2 * depth, ' ') + text + comment);
}

void CppBuilder::check(const Expr<rt::status> &status) { line("WINDLASS_TRY(" + status.text + ");"); }

void CppBuilder::checkEach(llvm::StringRef counter, int64_t first, int64_t last, const Expr<rt::status> &status) {
  line(("for (int " + counter + " = ").str() + std::to_string(first) + "; " + counter.str() +
       " <= " + std::to_string(last) + "; ++" + counter.str() + ") WINDLASS_TRY(" + status.text + ");");
}

void CppBuilder::beginIf(const Expr<bool> &condition) {
  setLabel({});
  line("if (" + condition.text + ") {");
  ++depth;
}

void CppBuilder::endIf() {
  --depth;
  setLabel({});
  line("}");
}
