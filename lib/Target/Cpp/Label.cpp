#include "windlass/Target/Cpp/Label.h"

#include "llvm/ADT/StringExtras.h"

using namespace windlass::cpp;

Label Label::ofName(llvm::StringRef name) {
  constexpr llvm::StringLiteral kCut = "...";
  Label label;
  if (name.size() > kLongestName) {
    label.text = kCut;
    name = name.take_back(kLongestName - kCut.size());
  }
  for (char c : name)
    label.text += llvm::isAlnum(c) || c == '_' || c == '.' ? c : '_';
  return label;
}

Label Label::ofNumber(size_t number) {
  Label label;
  label.text = std::to_string(number);
  return label;
}
