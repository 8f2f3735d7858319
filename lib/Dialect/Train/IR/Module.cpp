// Parameters and the operators that read and write them.
#include "OpSupport.h"

#include <cmath>

using namespace mlir;
using namespace windlass::train;

Attribute SourceAttr::parse(AsmParser &parser, Type) {
  StringRef keyword;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&keyword))
    return {};
  std::optional<SourceKind> kind = symbolizeSourceKind(keyword);
  if (!kind) {
    parser.emitError(place) << "there is no source of kind " << keyword << "; write none, packed or external";
    return {};
  }
  std::string file;
  int64_t offset = 0, length = 0;
  Type stored;
  if (succeeded(parser.parseOptionalComma()))
    if (parser.parseString(&file) || parser.parseComma() || parser.parseInteger(offset) || parser.parseComma() ||
        parser.parseInteger(length) || (succeeded(parser.parseOptionalComma()) && parser.parseType(stored)))
      return {};
  if (parser.parseGreater())
    return {};
  return get(parser.getContext(), *kind, file, offset, length, stored);
}

void SourceAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifySourceKind(getKind());
  if (!getFile().empty() || getOffset() != 0 || getLength() != 0) {
    printer << ", ";
    printer.printString(getFile());
    printer << ", " << getOffset() << ", " << getLength();
    if (getStored())
      printer << ", " << getStored();
  }
  printer << '>';
}

LogicalResult CountedLabelsAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef, RankedTensorType type,
                                        ArrayRef<int64_t> starts, ArrayRef<int64_t> sizes, int64_t,
                                        int64_t vocabulary) {
  if (!type.hasStaticShape() || !type.getElementType().isSignlessInteger() || type.getRank() == 0)
    return emitError() << "labels are a tensor of integers of a static shape, not " << type;
  if (vocabulary < 0)
    return emitError() << "the bound of ids is " << vocabulary << "; it is at least 0";
  if (static_cast<int64_t>(starts.size()) != type.getRank() || sizes.size() != starts.size())
    return emitError() << "a box of " << type << " has " << type.getRank() << " starts and sizes, not " << starts.size()
                       << " and " << sizes.size();
  for (auto [start, size, whole] : llvm::zip_equal(starts, sizes, type.getShape()))
    if (start < 0 || size < 1 || start > whole || size > whole - start)
      return emitError() << "a box from " << start << " of " << size << " elements lies outside of " << type;
  return success();
}

LogicalResult ParameterOp::verify() {
  if (getLogicalName().empty())
    return emitOpError() << "has an empty logical name; give it the name of its initializer";
  if (getTrainable() && getRole() != Role::weight)
    return emitOpError() << "is trainable, but its role is " << stringifyRole(getRole())
                         << "; only weights are trained";
  if (getTrainable() && !isa<FloatType>(getTensorType().getElementType()))
    return emitOpError() << "is trainable, but has integer elements: " << getTensorType();
  if (getOf().has_value() != (getRole() == Role::state))
    return emitOpError() << "has role " << stringifyRole(getRole()) << (getOf() ? " and" : " but not")
                         << " the attribute 'of'; exactly states name their weight";
  if (getComputeType() && !isa<FloatType>(getTensorType().getElementType()))
    return emitOpError() << "has compute type " << *getComputeType() << ", but integer elements: " << getTensorType();
  if (std::optional<llvm::APFloat> momentum = getMomentum()) {
    if (getRole() != Role::weight || getDecays())
      return emitOpError() << "has a momentum, as running statistics have; these are weights that do not decay";
    if (double share = momentum->convertToDouble(); !(share >= 0 && share <= 1))
      return emitOpError() << "has a momentum of " << share << "; a share is between 0 and 1";
  }
  SourceAttr source = getSource();
  if (source.getOffset() < 0 || source.getLength() < 0)
    return emitOpError() << "has its bytes at offset " << source.getOffset() << " and length " << source.getLength()
                         << "; both are at least 0";
  if (source.getStored() && (!isa<FloatType>(source.getStored()) || !isa<FloatType>(getTensorType().getElementType())))
    return emitOpError() << "is stored as " << source.getStored() << " and used as " << getTensorType().getElementType()
                         << "; only floats are converted";
  if (source.getKind() == SourceKind::external && source.getFile().empty())
    return emitOpError() << "has external bytes, but names no file";
  return success();
}

/// Fails unless `name` is a parameter of that type: its compute type, as operators outside of `@update` find it, or its
/// own.
static LogicalResult checkParameter(Operation *op, SymbolTableCollection &symbols, FlatSymbolRefAttr name, Type type,
                                    bool computes) {
  auto parameter = symbols.lookupNearestSymbolFrom<ParameterOp>(op, name);
  if (!parameter)
    return op->emitOpError() << "names " << name << ", which is no parameter of the module";
  RankedTensorType declared = computes ? parameter.getComputeTensorType() : parameter.getTensorType();
  if (declared != type)
    return op->emitOpError() << "takes " << name << " as " << type << ", but it is declared as " << declared;
  return success();
}

LogicalResult TrackStatisticOp::verify() {
  if (double correction = getCorrection().convertToDouble(); !(correction > 0) || std::isinf(correction))
    return emitOpError() << "corrects the statistic by " << correction << ", which must be finite and above 0";
  return success();
}

LogicalResult TrackStatisticOp::buildAdjoint(OpBuilder &, ArrayRef<Value> resultGradients, ArrayRef<bool> active,
                                             SmallVectorImpl<Value> &gradients) {
  if (active[0])
    gradients[0] = resultGradients[0];
  return success();
}

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto function = (*this)->getParentOfType<FunctionOpInterface>();
  return checkParameter(*this, symbols, getParameterAttr(), getResult().getType(),
                        !function || function.getName() != kUpdateFunction);
}

LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return checkParameter(*this, symbols, getParameterAttr(), getValue().getType(), /*computes=*/false);
}
