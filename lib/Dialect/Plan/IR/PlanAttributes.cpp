// Arithmetic on meshes and layouts.
#include "windlass/Dialect/Plan/IR/PlanOps.h"

using namespace mlir;
using namespace windlass::plan;

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

LayoutAttr LayoutAttr::withUnreduced(llvm::ArrayRef<UnreducedAttr> unreduced) const {
  return get(getContext(), getDims(), getFlat(), unreduced, getMemory());
}

LayoutAttr LayoutAttr::withFlat(llvm::ArrayRef<StringAttr> flat) const {
  return get(getContext(), getDims(), flat, getUnreduced(), getMemory());
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
