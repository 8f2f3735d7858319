//===- Tensors.cpp - ONNX types and tensor values in MLIR -----------------===//

#include "Tensors.h"

#include <cstring>

using namespace mlir;
using namespace windlass;
using ::onnx::TensorProto;

Type windlass::getElementType(int32_t dataType, MLIRContext *context) {
  auto unsignedInt = [&](unsigned width) { return IntegerType::get(context, width, IntegerType::Unsigned); };
  auto integer = [&](unsigned width) { return IntegerType::get(context, width); };
  switch (dataType) {
  case TensorProto::FLOAT:
    return Float32Type::get(context);
  case TensorProto::DOUBLE:
    return Float64Type::get(context);
  case TensorProto::FLOAT16:
    return Float16Type::get(context);
  case TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case TensorProto::BOOL:
    return integer(1);
  case TensorProto::INT8:
    return integer(8);
  case TensorProto::INT16:
    return integer(16);
  case TensorProto::INT32:
    return integer(32);
  case TensorProto::INT64:
    return integer(64);
  case TensorProto::UINT8:
    return unsignedInt(8);
  case TensorProto::UINT16:
    return unsignedInt(16);
  case TensorProto::UINT32:
    return unsignedInt(32);
  case TensorProto::UINT64:
    return unsignedInt(64);
  default:
    return {};
  }
}

int64_t windlass::countElements(llvm::ArrayRef<int64_t> shape) {
  constexpr int64_t limit = int64_t(1) << 48;
  int64_t count = 1;
  bool isEmpty = false;
  for (int64_t dim : shape) {
    if (dim < 0 || dim > limit)
      return -1;
    isEmpty |= dim == 0;
    if (dim == 0)
      continue;
    if (count > limit / dim)
      return -1;
    count *= dim;
  }
  return isEmpty ? 0 : count;
}

template <typename To, typename Field> static std::string pack(const Field &values) {
  std::string bytes;
  bytes.resize(values.size() * sizeof(To));
  char *out = bytes.data();
  for (auto value : values) {
    auto element = static_cast<To>(value);
    std::memcpy(out, &element, sizeof(To));
    out += sizeof(To);
  }
  return bytes;
}

llvm::Expected<std::string> windlass::decodeValues(const TensorProto &tensor, RankedTensorType type) {
  std::string bytes;
  int64_t width = getElementBytes(type.getElementType());
  if (tensor.has_raw_data()) {
    bytes = tensor.raw_data();
  } else {
    switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      bytes = pack<float>(tensor.float_data());
      break;
    case TensorProto::DOUBLE:
      bytes = pack<double>(tensor.double_data());
      break;
    case TensorProto::INT64:
      bytes = pack<int64_t>(tensor.int64_data());
      break;
    case TensorProto::UINT64:
      bytes = pack<uint64_t>(tensor.uint64_data());
      break;
    case TensorProto::UINT32:
      bytes = pack<uint32_t>(tensor.uint64_data());
      break;
    default: // int32_data holds all that is narrower, 16-bit floats by their bits.
      bytes = width == 1   ? pack<int8_t>(tensor.int32_data())
              : width == 2 ? pack<int16_t>(tensor.int32_data())
                           : pack<int32_t>(tensor.int32_data());
    }
  }
  int64_t expected = type.getNumElements() * width;
  if (static_cast<int64_t>(bytes.size()) != expected)
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "holds " + llvm::Twine(bytes.size()) +
                                                                       " bytes of values but its shape needs " +
                                                                       llvm::Twine(expected));
  return bytes;
}

DenseElementsAttr windlass::makeElements(RankedTensorType type, llvm::StringRef bytes) {
  if (type.getElementType().isInteger(1)) {
    llvm::SmallVector<bool> values;
    values.reserve(bytes.size());
    for (char byte : bytes)
      values.push_back(byte != 0);
    return DenseElementsAttr::get(type, values);
  }
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, llvm::ArrayRef<Attribute>());
  return DenseElementsAttr::getFromRawBuffer(type, llvm::ArrayRef<char>(bytes.data(), bytes.size()));
}
