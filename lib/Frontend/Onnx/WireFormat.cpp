//===- WireFormat.cpp - where the values are in a model message -----------===//
//
// A ModelProto is walked three levels deep: model, graph, initializer. Everything but the values of large initializers
// is copied; the lengths of the two enclosing messages are written anew.
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"

#include "windlass/Support/WorkBudget.h"

#include "llvm/ADT/STLFunctionalExtras.h"

using namespace windlass;

namespace {

/// Field numbers of onnx-ml.proto.
enum : uint64_t {
  kModelIrVersion = 1,
  kModelGraph = 7,
  kGraphNode = 1,
  kGraphInitializer = 5,
  kTensorFloatData = 4,
  kTensorRawData = 9,
  kTensorDoubleData = 10
};

/// The most bytes of values that stay in the skeleton: small constants are read from the parsed message.
constexpr int64_t kStripAbove = 64 << 10;

struct Field {
  uint64_t number = 0;
  unsigned wireType = 0;
  /// The positions in the whole message: of the tag, of the payload (behind the length, for a length-delimited field),
  /// and of the end.
  int64_t begin = 0, payload = 0, end = 0;
};

llvm::Error makeError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

class Walker {
public:
  Walker(llvm::StringRef text, int64_t at, int64_t end) : text(text), at(at), end(end) {}

  bool isDone() const { return at == end; }

  /// Reads the next field. Returns false when the bytes are not a field or it ends beyond the message.
  bool next(Field &field) {
    field.begin = at;
    uint64_t tag = 0, value = 0;
    if (!readVarint(tag) || (tag >> 3) == 0 || (tag >> 3) > 0x1fffffff)
      return false;
    field.number = tag >> 3;
    field.wireType = tag & 7;
    field.payload = at;
    switch (field.wireType) {
    case 0:
      if (!readVarint(value))
        return false;
      break;
    case 1:
      if (end - at < 8)
        return false;
      at += 8;
      break;
    case 2:
      if (!readVarint(value) || value > static_cast<uint64_t>(end - at))
        return false;
      field.payload = at;
      at += static_cast<int64_t>(value);
      break;
    case 5:
      if (end - at < 4)
        return false;
      at += 4;
      break;
    default: // Groups do not occur in ONNX.
      return false;
    }
    field.end = at;
    return true;
  }

  int64_t getPosition() const { return at; }
  /// Returns the number of a varint field.
  uint64_t getNumber(const Field &field) const {
    uint64_t value = 0;
    Walker(text, field.payload, field.end).readVarint(value);
    return value;
  }

private:
  bool readVarint(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at == end)
        return false;
      auto byte = static_cast<unsigned char>(text[at++]);
      if (shift < 64)
        value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return false;
  }

  llvm::StringRef text;
  int64_t at, end;
};

void appendVarint(std::string &out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void appendMessage(std::string &out, uint64_t number, llvm::StringRef bytes) {
  appendVarint(out, number << 3 | 2);
  appendVarint(out, bytes.size());
  out.append(bytes.data(), bytes.size());
}

bool holdsValues(const Field &field) {
  return field.wireType == 2 &&
         (field.number == kTensorRawData || field.number == kTensorFloatData || field.number == kTensorDoubleData);
}

class SkeletonBuilder {
public:
  SkeletonBuilder(llvm::StringRef text, const ImportBudgets &budgets)
      : text(text), budgets(budgets), work(budgets.steps) {}

  llvm::Expected<MessageSkeleton> build() {
    Walker walker(text, 0, static_cast<int64_t>(text.size()));
    Field field;
    bool sawGraph = false, sawVersion = false;
    while (!walker.isDone()) {
      if (!walker.next(field)) {
        if (!sawVersion)
          return makeError("is not an ONNX file");
        return makeError("is not a whole ONNX file: it breaks off in the field that starts at byte " +
                         llvm::Twine(field.begin) + " of " + llvm::Twine(text.size()) + "; it may be truncated");
      }
      if (!work.spend(1))
        return tooManyFields();
      sawVersion |= field.number == kModelIrVersion && field.wireType == 0;
      if (field.number != kModelGraph || field.wireType != 2) {
        result.bytes.append(text.data() + field.begin, field.end - field.begin);
        if (llvm::Error error = checkSize())
          return std::move(error);
        continue;
      }
      if (sawGraph)
        return makeError("has two graphs; an ONNX model has one");
      sawGraph = true;
      if (llvm::Error error = addGraph(field))
        return std::move(error);
    }
    if (!sawVersion || !sawGraph)
      return makeError(sawVersion ? "has no graph" : "is not an ONNX file");
    return std::move(result);
  }

private:
  llvm::Error checkSize() {
    if (static_cast<int64_t>(result.bytes.size()) <= budgets.structureBytes)
      return llvm::Error::success();
    return makeError("has more than the budget of " + llvm::Twine(budgets.structureBytes) +
                     " bytes without the values of its weights");
  }

  llvm::Error tooManyFields() {
    return makeError("has more than the budget of " + llvm::Twine(work.getLimit()) + " fields");
  }

  llvm::Error breaksOff(llvm::StringRef what, int64_t at) {
    return makeError("is not a valid ONNX file: " + llvm::Twine(what) + " is damaged at byte " + llvm::Twine(at));
  }

  llvm::Error addGraph(const Field &graph) {
    std::string bytes;
    Walker walker(text, graph.payload, graph.end);
    Field field;
    while (!walker.isDone()) {
      if (!walker.next(field))
        return breaksOff("the graph", field.begin);
      if (!work.spend(1))
        return tooManyFields();
      if (field.number == kGraphInitializer && field.wireType == 2) {
        if (llvm::Error error = addInitializer(field, bytes))
          return error;
      } else {
        bytes.append(text.data() + field.begin, field.end - field.begin);
      }
      if (static_cast<int64_t>(bytes.size()) > budgets.structureBytes)
        return makeError("has more than the budget of " + llvm::Twine(budgets.structureBytes) +
                         " bytes without the values of its weights");
    }
    appendMessage(result.bytes, kModelGraph, bytes);
    return checkSize();
  }

  llvm::Error addInitializer(const Field &tensor, std::string &out) {
    ValueRange range;
    unsigned chunks = 0;
    Field field;
    for (Walker walker(text, tensor.payload, tensor.end); !walker.isDone();) {
      if (!walker.next(field))
        return breaksOff("an initializer", field.begin);
      if (!work.spend(1))
        return tooManyFields();
      bool isUnpacked = field.wireType != 2 && (field.number == kTensorFloatData || field.number == kTensorDoubleData);
      if (!holdsValues(field) && !isUnpacked)
        continue;
      ++chunks;
      if (isUnpacked)
        chunks += 2;
      range.offset = field.payload;
      range.length = field.end - field.payload;
    }
    if (chunks != 1)
      range = ValueRange();
    range.isStripped = range.length > kStripAbove;
    std::string bytes;
    for (Walker walker(text, tensor.payload, tensor.end); !walker.isDone();) {
      if (!walker.next(field))
        return breaksOff("an initializer", field.begin);
      if (!range.isStripped || !holdsValues(field))
        bytes.append(text.data() + field.begin, field.end - field.begin);
    }
    appendMessage(out, kGraphInitializer, bytes);
    result.initializers.push_back(range);
    return llvm::Error::success();
  }

  llvm::StringRef text;
  const ImportBudgets &budgets;
  WorkBudget work;
  MessageSkeleton result;
};

} // namespace

llvm::Expected<MessageSkeleton> windlass::extractSkeleton(llvm::StringRef message, const ImportBudgets &budgets) {
  return SkeletonBuilder(message, budgets).build();
}

llvm::Expected<std::string> windlass::appendFields(llvm::StringRef message,
                                                   const std::map<int64_t, std::string> &toNodes,
                                                   llvm::StringRef toModel, int64_t irVersion) {
  std::string graph, rest;
  uint64_t version = static_cast<uint64_t>(irVersion);
  Walker walker(message, 0, static_cast<int64_t>(message.size()));
  Field field;
  auto append = [&](std::string &out) { out.append(message.data() + field.begin, field.end - field.begin); };
  while (!walker.isDone()) {
    if (!walker.next(field))
      return makeError("is not a whole ONNX file");
    if (field.number == kModelIrVersion && field.wireType == 0) {
      version = std::max(version, walker.getNumber(field));
    } else if (field.number == kModelGraph && field.wireType == 2) {
      int64_t node = 0;
      for (Walker inner(message, field.payload, field.end); !inner.isDone();) {
        if (!inner.next(field))
          return makeError("is not a valid ONNX file: the graph is damaged");
        auto added = field.number == kGraphNode ? toNodes.find(node++) : toNodes.end();
        if (added == toNodes.end())
          append(graph);
        else
          appendMessage(graph, kGraphNode, message.slice(field.payload, field.end).str() + added->second);
      }
    } else {
      append(rest);
    }
  }
  std::string out;
  appendVarint(out, kModelIrVersion << 3);
  appendVarint(out, version);
  out += rest;
  appendMessage(out, kModelGraph, graph);
  return out + toModel.str();
}
