//===- TracedArguments.cpp - arguments of a traced call -------------------===//

#include "TracedArguments.h"

#include "llvm/ADT/StringExtras.h"

using namespace windlass;

/// Splits the list between a bracket at `at` and its partner at commas outside of inner brackets; `at` moves behind the
/// partner.
static llvm::SmallVector<llvm::StringRef> splitList(llvm::StringRef text, size_t &at) {
  llvm::SmallVector<llvm::StringRef> parts;
  int64_t depth = 0;
  size_t begin = at + 1;
  for (; at < text.size(); ++at) {
    char c = text[at];
    if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (--depth > 0)
        continue;
      if (llvm::StringRef last = text.slice(begin, at).trim(); !last.empty())
        parts.push_back(last);
      ++at;
      break;
    } else if (c == ',' && depth == 1) {
      parts.push_back(text.slice(begin, at).trim());
      begin = at + 1;
    }
  }
  return parts;
}

TracedArguments::TracedArguments(llvm::StringRef text) {
  if (!text.starts_with("("))
    return;
  size_t at = 0;
  positional = splitList(text, at);
  at = text.find("kwargs = {", at);
  if (at == llvm::StringRef::npos)
    return;
  at += llvm::StringRef("kwargs = ").size();
  for (llvm::StringRef part : splitList(text, at)) {
    auto [name, value] = part.split(':');
    named.emplace_back(name.trim().trim("'\""), value.trim());
  }
}

llvm::StringRef TracedArguments::get(size_t position, llvm::StringRef name) const {
  for (const auto &[key, value] : named)
    if (key == name)
      return value;
  return position < positional.size() ? positional[position] : llvm::StringRef();
}

double TracedArguments::getNumber(size_t position, llvm::StringRef name, double fallback) const {
  llvm::StringRef text = get(position, name);
  double number = fallback;
  return text.empty() || text.getAsDouble(number) ? fallback : number;
}

llvm::SmallVector<llvm::StringRef> windlass::findMentions(llvm::StringRef arguments) {
  llvm::SmallVector<llvm::StringRef> names;
  while (true) {
    arguments = arguments.drop_front(std::min(arguments.find('%'), arguments.size()));
    if (arguments.empty())
      return names;
    arguments = arguments.drop_front();
    llvm::StringRef name = arguments.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (!name.empty())
      names.push_back(name);
  }
}
