//===- OnnxOps.cpp - the onnx dialect -------------------------------------===//

#include "windlass/Dialect/Onnx/IR/OnnxOps.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace windlass::onnx;

/// The since-version is printed as a bare number.
static ParseResult parseVersion(OpAsmParser &parser, IntegerAttr &version) {
  int64_t value = 0;
  if (parser.parseInteger(value))
    return failure();
  version = parser.getBuilder().getI64IntegerAttr(value);
  return success();
}

static void printVersion(OpAsmPrinter &printer, Operation *, IntegerAttr version) { printer << version.getInt(); }

#include "windlass/Dialect/Onnx/IR/OnnxDialect.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "windlass/Dialect/Onnx/IR/OnnxTypes.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "windlass/Dialect/Onnx/IR/OnnxAttributes.cpp.inc"

#define GET_OP_CLASSES
#include "windlass/Dialect/Onnx/IR/OnnxOps.cpp.inc"

void OnnxDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "windlass/Dialect/Onnx/IR/OnnxTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "windlass/Dialect/Onnx/IR/OnnxAttributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "windlass/Dialect/Onnx/IR/OnnxOps.cpp.inc"
      >();
}

LogicalResult SourceAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr file, int64_t offset,
                                 int64_t length) {
  if (offset < 0 || length < 0)
    return emitError() << "a source has offset " << offset << " and length " << length << "; both must be 0 or more";
  if (length > std::numeric_limits<int64_t>::max() - offset)
    return emitError() << "a source of " << length << " bytes at offset " << offset << " ends beyond 2^63";
  return success();
}

LogicalResult SpecAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr kind, StringAttr,
                               StringAttr target) {
  if (kind != "PARAMETER" && kind != "BUFFER" && kind != "CONSTANT_TENSOR" && kind != "USER_INPUT")
    return emitError() << "an input of a signature has kind '" << kind.getValue()
                       << "'; it must be 'PARAMETER', 'BUFFER', 'CONSTANT_TENSOR' or 'USER_INPUT'";
  if (target.empty() != (kind == "USER_INPUT"))
    return emitError() << "an input of a signature has kind '" << kind.getValue() << "' and target '"
                       << target.getValue() << "'; exactly the tensors of the module have a target";
  return success();
}

LogicalResult GraphOp::verifyRegions() {
  Block &block = getBody().front();
  if (block.getNumArguments() != getInputNames().size())
    return emitOpError() << "has " << block.getNumArguments() << " inputs but names " << getInputNames().size();
  auto terminator = dyn_cast<ReturnOp>(block.back());
  if (!terminator)
    return emitOpError() << "must end with onnx.return";
  if (terminator.getNumOperands() != getOutputNames().size())
    return emitOpError() << "returns " << terminator.getNumOperands() << " values but names " << getOutputNames().size()
                         << " outputs";
  std::optional<ArrayAttr> dims = getDimParams();
  if (!dims)
    return success();
  if (dims->size() != block.getNumArguments())
    return emitOpError() << "names the dimensions of " << dims->size() << " inputs but has " << block.getNumArguments();
  for (auto [index, argument, names] : llvm::enumerate(block.getArguments(), *dims)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    auto list = dyn_cast<ArrayAttr>(names);
    if (!list || !llvm::all_of(list, llvm::IsaPred<StringAttr>))
      return emitOpError() << "dimension names of input " << index << " must be an array of strings";
    if (type && static_cast<size_t>(type.getRank()) != list.size())
      return emitOpError() << "input " << index << " has rank " << type.getRank() << " but " << list.size()
                           << " dimension names";
  }
  return success();
}

LogicalResult InitializerOp::verify() {
  if (getSource().has_value() == getValue().has_value())
    return emitOpError() << "must have either a source or a value";
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError() << "must have a static shape, but has " << getType();
  if (std::optional<ElementsAttr> value = getValue(); value && value->getShapedType() != type)
    return emitOpError() << "has a value of type " << value->getShapedType() << " but result type " << type;
  if (std::optional<StringRef> kind = getKind(); kind && *kind != "parameter" && *kind != "buffer")
    return emitOpError() << "has kind '" << *kind << "'; it must be 'parameter' or 'buffer'";
  if (std::optional<SourceAttr> source = getSource()) {
    if (!type.getElementType().isIntOrFloat())
      return emitOpError() << "refers to elements of type " << type.getElementType()
                           << "; only integers and floats have bytes in a file";
    // The importer bounds the number of elements; text may hold anything.
    int64_t bits = type.getElementTypeBitWidth() == 1 ? 8 : type.getElementTypeBitWidth();
    __int128 bytes = bits / 8;
    for (int64_t dim : type.getShape()) {
      bytes *= dim;
      if (bytes > std::numeric_limits<int64_t>::max())
        return emitOpError() << "has more than 2^63 bytes";
    }
    if (static_cast<int64_t>(bytes) != source->getLength())
      return emitOpError() << "refers to " << source->getLength() << " bytes but its type " << type << " has "
                           << static_cast<int64_t>(bytes);
  }
  return success();
}

LogicalResult NodeOp::verify() {
  if (getOpType().empty())
    return emitOpError() << "must name an operator";
  if (static_cast<int64_t>(getSinceVersion()) < 1)
    return emitOpError() << "has since-version " << static_cast<int64_t>(getSinceVersion()) << "; it must be 1 or more";
  return success();
}
