#include "windlass/Interpreter/TensorFile.h"

#include "windlass/Support/Printable.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

using namespace windlass::interpreter;
using llvm::StringRef;
using llvm::Twine;
using windlass::printable;

namespace json = llvm::json;

/// The largest header; a larger one belongs to no file that the interpreter can run.
static constexpr uint64_t kHeaderLimit = 64 << 20;

static llvm::Error failure(StringRef path, const Twine &text) { return llvm::createStringError(path + ": " + text); }

/// Returns whether a header is shallow: a deep one would exhaust the stack of the JSON parser, and real ones have three
/// levels.
static bool isShallow(StringRef text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '{' || c == '['))
      ++depth;
    else if (!inString && (c == '}' || c == ']'))
      --depth;
    if (depth > 8)
      return false;
  }
  return true;
}

static std::optional<ElementKind> kindNamed(StringRef name) {
  return llvm::StringSwitch<std::optional<ElementKind>>(name)
      .Case("F32", ElementKind::f32)
      .Case("F64", ElementKind::f64)
      .Case("I64", ElementKind::i64)
      .Case("I32", ElementKind::i32)
      .Case("BOOL", ElementKind::boolean)
      .Default(std::nullopt);
}

static llvm::Expected<Tensor> readTensor(StringRef path, StringRef name, const json::Value &value, StringRef data) {
  auto fail = [&](const Twine &text) { return failure(path, "tensor " + printable(name) + " " + text); };
  const json::Object *entry = value.getAsObject();
  const json::Array *sizes = entry ? entry->getArray("shape") : nullptr;
  const json::Array *offsets = entry ? entry->getArray("data_offsets") : nullptr;
  std::optional<StringRef> type = entry ? entry->getString("dtype") : std::nullopt;
  if (!sizes || !offsets || !type || offsets->size() != 2)
    return fail("lacks dtype, shape or data_offsets");
  std::optional<ElementKind> kind = kindNamed(*type);
  if (!kind)
    return fail("has the type " + printable(*type) + "; only F32, F64, I64, I32 and BOOL are read");
  llvm::SmallVector<int64_t> shape;
  // Bounding every partial product by the file's size keeps it from overflowing, except with sizes of zero.
  uint64_t elements = 1;
  for (const json::Value &size : *sizes) {
    std::optional<int64_t> number = size.getAsInteger();
    if (!number || *number < 0 || *number > int64_t(data.size()))
      return fail("has a shape that the file cannot hold");
    shape.push_back(*number);
    elements *= *number;
    if (elements > data.size())
      return fail("has a shape that the file cannot hold");
  }
  std::optional<int64_t> begin = (*offsets)[0].getAsInteger(), end = (*offsets)[1].getAsInteger();
  if (!begin || !end || *begin < 0 || *end < *begin || *end > int64_t(data.size()))
    return fail("has data_offsets outside the file");
  uint64_t bytes = elements * bytesOf(*kind);
  if (uint64_t(*end - *begin) != bytes)
    return fail("has " + Twine(*end - *begin) + " bytes but its shape needs " + Twine(bytes));
  Tensor tensor(*kind, shape);
  std::memcpy(tensor.mutableData(), data.data() + *begin, bytes);
  if (*kind == ElementKind::boolean)
    for (int64_t i = 0; i < tensor.getElements(); ++i) // Any other byte than 0 and 1 is no bool.
      tensor.mutableData()[i] = std::byte(data[*begin + i] != 0);
  return tensor;
}

llvm::Expected<TensorMap> windlass::interpreter::readTensorFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return failure(path, buffer.getError().message());
  StringRef bytes = (*buffer)->getBuffer();
  if (bytes.size() < 8)
    return failure(path, "is no safetensors file: it has " + Twine(bytes.size()) + " bytes");
  uint64_t length = llvm::support::endian::read64le(bytes.data());
  if (length > kHeaderLimit || length > bytes.size() - 8)
    return failure(path, "is no safetensors file: its header does not fit");
  StringRef header = bytes.substr(8, length), data = bytes.substr(8 + length);
  if (!isShallow(header))
    return failure(path, "has a header that is nested too deeply");
  llvm::Expected<json::Value> parsed = json::parse(header);
  if (!parsed)
    return failure(path, "has a header that is no JSON: " + llvm::toString(parsed.takeError()));
  const json::Object *entries = parsed->getAsObject();
  if (!entries)
    return failure(path, "has a header that is no JSON object");
  TensorMap tensors;
  for (const auto &[key, value] : *entries) {
    if (key == "__metadata__")
      continue;
    llvm::Expected<Tensor> tensor = readTensor(path, key, value, data);
    if (!tensor)
      return tensor.takeError();
    tensors.emplace(std::string(StringRef(key)), std::move(*tensor));
  }
  return tensors;
}

llvm::Error windlass::interpreter::writeTensorFile(StringRef path, const TensorMap &tensors) {
  std::string header;
  llvm::raw_string_ostream text(header);
  json::OStream writer(text);
  int64_t offset = 0;
  writer.object([&] {
    for (const auto &[name, tensor] : tensors)
      writer.attributeObject(json::fixUTF8(name), [&, &tensor = tensor] {
        writer.attribute("dtype", "F64");
        writer.attributeArray("shape", [&] {
          for (int64_t size : tensor.getShape())
            writer.value(size);
        });
        int64_t end = offset + tensor.getElements() * 8;
        writer.attributeArray("data_offsets", [&] {
          writer.value(offset);
          writer.value(end);
        });
        offset = end;
      });
  });
  header.append((8 - header.size() % 8) % 8, ' ');
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return failure(path, error.message());
  char length[8];
  llvm::support::endian::write64le(length, header.size());
  file << StringRef(length, 8) << header;
  for (const auto &[name, tensor] : tensors) {
    Tensor doubles = tensor.cast(ElementKind::f64);
    file << StringRef(reinterpret_cast<const char *>(doubles.data()), doubles.getBytes());
  }
  file.close();
  if (file.has_error()) {
    std::error_code code = file.error();
    file.clear_error();
    return failure(path, code.message());
  }
  return llvm::Error::success();
}
