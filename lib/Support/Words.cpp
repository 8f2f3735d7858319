#include "windlass/Support/Words.h"

#include "windlass/rt/words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace windlass;

std::string windlass::countOf(int64_t count, llvm::StringRef noun, llvm::StringRef plural) {
  return rt::count_of(count, noun, plural);
}

std::string windlass::listOf(llvm::ArrayRef<int64_t> numbers, llvm::StringRef last) {
  std::string text;
  for (auto [i, number] : llvm::enumerate(numbers)) {
    if (i > 0)
      text += i + 1 == numbers.size() ? " " + last.str() + " " : ", ";
    text += std::to_string(number);
  }
  return text;
}

std::string windlass::sizeText(int64_t bytes) {
  if (bytes < 1024)
    return countOf(bytes, "byte");
  double value = static_cast<double>(bytes) / 1024;
  llvm::StringRef units[] = {"KiB", "MiB", "GiB", "TiB"}, *unit = units;
  // What rounds up to the next unit is written in it.
  for (; value >= 1023.95 && unit + 1 != std::end(units); ++unit)
    value /= 1024;
  std::string text = llvm::formatv("{0:f1}", value);
  return llvm::StringRef(text).consume_back(".0") ? text.substr(0, text.size() - 2) + " " + unit->str()
                                                  : text + " " + unit->str();
}

std::string windlass::exactSizeText(int64_t bytes) {
  return countOf(bytes, "byte") + (bytes < 1024 ? "" : " (" + sizeText(bytes) + ")");
}
