// Arithmetic on meshes and layouts.
#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace windlass::plan;

LogicalResult AxisAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr name, int64_t size, AxisRole) {
  if (size < 1)
    return emitError() << "axis " << name << " has size " << size << "; an axis has at least one member";
  return success();
}

LogicalResult MeshAttr::verify(function_ref<InFlightDiagnostic()> emitError, llvm::ArrayRef<AxisAttr> axes) {
  llvm::DenseSet<StringAttr> names;
  std::optional<int64_t> ranks = 1;
  for (AxisAttr axis : axes) {
    if (!names.insert(axis.getName()).second)
      return emitError() << "a mesh has axis " << axis.getName() << " twice";
    ranks = llvm::checkedMul(*ranks, axis.getSize());
    if (!ranks)
      return emitError() << "a mesh has 2^63 ranks or more";
  }
  return success();
}

LogicalResult PipelineAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t positions, StringAttr,
                                   llvm::ArrayRef<StringAttr> begins, llvm::ArrayRef<StringAttr>) {
  if (positions < 2)
    return emitError() << "a pipeline has " << positions << " positions; it has at least 2";
  if (static_cast<int64_t>(begins.size()) + 1 < positions)
    return emitError() << "a pipeline of " << positions << " positions has " << begins.size() + 1
                       << " chunks; each position runs at least one";
  return success();
}

LogicalResult FactorLayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t size,
                                       llvm::ArrayRef<StringAttr>) {
  if (size < 0)
    return emitError() << "a factor of a dim has size " << size << "; it is at least 0";
  return success();
}

int64_t MeshAttr::indexOf(llvm::StringRef axis) const {
  for (auto [i, candidate] : llvm::enumerate(getAxes()))
    if (candidate.getName().getValue() == axis)
      return static_cast<int64_t>(i);
  return -1;
}

int64_t MeshAttr::sizeOf(llvm::StringRef axis) const {
  int64_t i = indexOf(axis);
  return i < 0 ? 1 : getAxes()[i].getSize();
}

AxisRole MeshAttr::roleOf(llvm::StringRef axis) const {
  int64_t i = indexOf(axis);
  return i < 0 ? AxisRole::model : getAxes()[i].getRole();
}

llvm::SmallVector<StringAttr> MeshAttr::axesOf(AxisRole role) const {
  llvm::SmallVector<StringAttr> names;
  for (AxisAttr axis : getAxes())
    if (axis.getRole() == role)
      names.push_back(axis.getName());
  return names;
}

int64_t MeshAttr::sizeOf(AxisRole role) const {
  int64_t size = 1;
  for (AxisAttr axis : getAxes())
    if (axis.getRole() == role)
      size *= axis.getSize();
  return size;
}

bool MeshAttr::isDataAxis(llvm::StringRef axis) const {
  AxisRole role = roleOf(axis);
  return role == AxisRole::replica || role == AxisRole::batch;
}

llvm::SmallVector<StringAttr> MeshAttr::getDataAxes() const {
  llvm::SmallVector<StringAttr> names;
  for (AxisAttr axis : getAxes())
    if (isDataAxis(axis.getName()))
      names.push_back(axis.getName());
  return names;
}

int64_t MeshAttr::getRanks() const {
  int64_t ranks = 1;
  for (AxisAttr axis : getAxes())
    ranks *= axis.getSize();
  return ranks;
}

llvm::SmallVector<int64_t> MeshAttr::coordinatesOf(int64_t rank) const {
  llvm::SmallVector<int64_t> coordinates(getAxes().size());
  for (size_t i = coordinates.size(); i-- > 0;) {
    coordinates[i] = rank % getAxes()[i].getSize();
    rank /= getAxes()[i].getSize();
  }
  return coordinates;
}

FactorAxesAttr StrategyAttr::splitOf(llvm::StringRef factor) const {
  for (FactorAxesAttr split : getSplits())
    if (split.getFactor().getValue() == factor)
      return split;
  return nullptr;
}

llvm::ArrayRef<StringAttr> StrategyAttr::axesOf(llvm::StringRef factor) const {
  FactorAxesAttr split = splitOf(factor);
  return split ? split.getAxes() : llvm::ArrayRef<StringAttr>();
}

LayoutAttr LayoutAttr::getWhole(RankedTensorType type) {
  MLIRContext *context = type.getContext();
  llvm::SmallVector<DimLayoutAttr> dims;
  for (int64_t size : type.getShape())
    dims.push_back(DimLayoutAttr::get(context, {FactorLayoutAttr::get(context, size, {})}));
  return get(context, dims, {}, MemoryKind::device);
}

bool LayoutAttr::isWhole() const {
  return getFlat().empty() && getUnreduced().empty() && llvm::all_of(getDims(), [](DimLayoutAttr dim) {
           return llvm::all_of(dim.getFactors(), [](FactorLayoutAttr factor) { return factor.getAxes().empty(); });
         });
}

LogicalResult LayoutAttr::verifyFits(RankedTensorType type, function_ref<InFlightDiagnostic()> emitError) const {
  if (getDims().size() != static_cast<size_t>(type.getRank()))
    return emitError() << "has a layout of " << getDims().size() << " dims but type " << type;
  for (auto [size, dim] : llvm::zip_equal(type.getShape(), getDims())) {
    std::optional<int64_t> product = 1;
    for (FactorLayoutAttr factor : dim.getFactors())
      product = product ? llvm::checkedMul(*product, factor.getSize()) : std::nullopt;
    if (product == size)
      continue;
    std::string text = product ? std::to_string(*product) : "2^63 or more";
    return emitError() << "has a layout whose factors multiply to " << text << " on a dim of size " << size;
  }
  return success();
}

LayoutAttr LayoutAttr::withUnreduced(llvm::ArrayRef<UnreducedAttr> unreduced) const {
  return get(getContext(), getDims(), getFlat(), unreduced, getMemory());
}

LayoutAttr LayoutAttr::withFlat(llvm::ArrayRef<StringAttr> flat) const {
  return get(getContext(), getDims(), flat, getUnreduced(), getMemory());
}

LayoutAttr LayoutAttr::withMemory(MemoryKind memory) const {
  return get(getContext(), getDims(), getFlat(), getUnreduced(), memory);
}

int64_t LayoutAttr::getFlatParts(MeshAttr mesh) const {
  int64_t parts = 1;
  for (StringAttr axis : getFlat())
    parts *= mesh.sizeOf(axis.getValue());
  return parts;
}

RankedTensorType LayoutAttr::getLocalType(RankedTensorType global, MeshAttr mesh) const {
  llvm::SmallVector<int64_t> shape;
  for (auto [size, dim] : llvm::zip_equal(global.getShape(), getDims())) {
    int64_t local = size;
    for (FactorLayoutAttr factor : dim.getFactors())
      for (StringAttr axis : factor.getAxes())
        local /= mesh.sizeOf(axis.getValue());
    shape.push_back(local);
  }
  if (int64_t parts = getFlatParts(mesh); parts > 1) {
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    shape.assign({(elements + parts - 1) / parts});
  }
  return RankedTensorType::get(shape, global.getElementType());
}
