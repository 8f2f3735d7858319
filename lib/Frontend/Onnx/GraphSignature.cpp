//===- GraphSignature.cpp - what an exporter says of its inputs -----------===//

#include "GraphSignature.h"

#include "windlass/Support/Printable.h"

#include "llvm/ADT/StringSet.h"

using namespace windlass;

static llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// Reads the path of `target='PATH'` at the front of `text`; a quote inside of it is kept.
static std::optional<llvm::StringRef> readTarget(llvm::StringRef text) {
  if (!text.consume_front("target='"))
    return std::nullopt;
  size_t end = text.rfind('\'');
  if (end == llvm::StringRef::npos || end == 0)
    return std::nullopt;
  return text.take_front(end);
}

llvm::Expected<std::vector<SignatureEntry>> windlass::readGraphSignature(llvm::StringRef text) {
  if (text.size() > kGraphSignatureBytes)
    return makeError("has " + llvm::Twine(text.size()) + " bytes; the limit is " + llvm::Twine(kGraphSignatureBytes));
  std::vector<SignatureEntry> entries;
  llvm::StringSet<> names, targets;
  bool isInInputs = false, sawInputs = false, sawParameter = false;
  while (!text.empty()) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    line = line.trim();
    if (line.consume_front("#")) {
      isInInputs = line.trim() == "inputs";
      if (isInInputs && sawInputs)
        return makeError("lists its inputs twice");
      sawInputs |= isInInputs;
      continue;
    }
    if (line.empty())
      continue;
    if (!sawInputs)
      return makeError("begins with " + printable(line, 60) + " instead of its inputs");
    if (!isInInputs)
      continue;
    auto [name, rest] = line.split(": ");
    auto [kind, detail] = rest.trim().split(' ');
    if (name.empty() || kind.empty())
      return makeError("has the line " + printable(line, 60) + ", which is no 'NAME: KIND'");
    if (!names.insert(name).second)
      return makeError("names the input " + printable(name, 60) + " twice");
    if (kind != "PARAMETER" && kind != "BUFFER" && kind != "CONSTANT_TENSOR") {
      entries.push_back({"USER_INPUT", name.str(), ""});
      continue;
    }
    std::optional<llvm::StringRef> target = readTarget(detail.trim());
    if (!target)
      return makeError("has the line " + printable(line, 60) + ", which lacks target='...'");
    if (!targets.insert(*target).second)
      return makeError("gives the target " + printable(*target, 60) + " to two inputs");
    sawParameter |= kind == "PARAMETER";
    entries.push_back({kind.str(), name.str(), target->str()});
  }
  if (!sawParameter)
    return makeError("names no parameter");
  return entries;
}

std::optional<TracedCall> windlass::readTracedCall(llvm::StringRef text) {
  TracedCall call;
  if (!text.consume_front("%"))
    return std::nullopt;
  std::tie(call.result, text) = text.split(" : ");
  llvm::StringRef rest = text.split("[target=").second;
  size_t end = rest.find(']');
  if (call.result.empty() || end == llvm::StringRef::npos)
    return std::nullopt;
  call.target = rest.take_front(end);
  call.target.consume_front("torch.ops.");
  rest = rest.drop_front(end + 1);
  if (call.target.empty() || !rest.consume_front("(args = ") || !rest.consume_back(")"))
    return std::nullopt;
  call.arguments = rest;
  return call;
}
