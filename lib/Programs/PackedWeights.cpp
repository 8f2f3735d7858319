#include "windlass/Programs/PackedWeights.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/Support/OutputFile.h"
#include "windlass/Support/TensorBytes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

static llvm::StringRef dtypeOf(Type type) {
  if (type.isF64())
    return "F64";
  if (type.isBF16())
    return "BF16";
  if (type.isF16())
    return "F16";
  if (type.isInteger(64))
    return "I64";
  if (type.isInteger(32))
    return "I32";
  if (type.isInteger(1))
    return "BOOL";
  return "F32";
}

static llvm::SmallVector<train::ParameterOp> packedOf(ModuleOp module, bool withTrained) {
  llvm::SmallVector<train::ParameterOp> packed;
  for (auto parameter : module.getOps<train::ParameterOp>())
    if (parameter.getSource().getKind() == train::SourceKind::packed && (withTrained || !parameter.getTrainable()))
      packed.push_back(parameter);
  return packed;
}

/// Returns the type of the values as they are stored.
static RankedTensorType storedTypeOf(train::ParameterOp parameter) {
  Type stored = parameter.getSource().getStored();
  return stored ? parameter.getTensorType().clone(stored) : parameter.getTensorType();
}

/// Returns the values of one parameter; `error` is set where they do not fit its type.
static llvm::ArrayRef<char> bytesOf(train::ParameterOp parameter, const WeightStore &weights, std::string &error) {
  train::SourceAttr source = parameter.getSource();
  RankedTensorType type = storedTypeOf(parameter);
  auto bytes = weights.getMessageBytes(source.getOffset(), source.getLength());
  if (!bytes) {
    error = "'" + parameter.getLogicalName().str() + "': " + llvm::toString(bytes.takeError());
    return {};
  }
  if (static_cast<int64_t>(bytes->size()) != getTensorBytes(type)) {
    error = "'" + parameter.getLogicalName().str() + "' has " + std::to_string(bytes->size()) +
            " bytes of values but its shape needs " + std::to_string(getTensorBytes(type));
    return {};
  }
  return *bytes;
}

std::string windlass::hashPackedWeights(ModuleOp module, const WeightStore &weights, bool withTrained,
                                        std::string &error) {
  llvm::SHA256 hash;
  for (train::ParameterOp parameter : packedOf(module, withTrained)) {
    hash.update(parameter.getLogicalName());
    llvm::ArrayRef<char> bytes = bytesOf(parameter, weights, error);
    if (!error.empty())
      return "";
    hash.update(llvm::StringRef(bytes.data(), bytes.size()));
  }
  return llvm::toHex(hash.final(), true);
}

std::string windlass::writePackedWeights(ModuleOp module, const WeightStore &weights, bool withTrained,
                                         const std::string &path) {
  std::string error, header;
  llvm::raw_string_ostream text(header);
  llvm::json::OStream json(text);
  int64_t offset = 0;
  auto packed = packedOf(module, withTrained);
  json.object([&] {
    for (train::ParameterOp parameter : packed) {
      int64_t bytes = parameter.getSource().getLength();
      json.attributeObject(parameter.getLogicalName(), [&] {
        json.attribute("dtype", dtypeOf(storedTypeOf(parameter).getElementType()));
        json.attributeArray("shape", [&] {
          for (int64_t size : parameter.getTensorType().getShape())
            json.value(size);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(offset);
          json.value(offset + bytes);
        });
      });
      offset += bytes;
    }
  });
  header.append((8 - header.size() % 8) % 8, ' '); // values start aligned
  return writeFile(path, [&](llvm::raw_ostream &out) {
    uint64_t length = header.size();
    for (int i = 0; i < 8; ++i)
      out << static_cast<char>(length >> (8 * i));
    out << header;
    for (train::ParameterOp parameter : packed) {
      llvm::ArrayRef<char> bytes = bytesOf(parameter, weights, error);
      if (!error.empty())
        break;
      out.write(bytes.data(), bytes.size());
    }
    return error;
  });
}
