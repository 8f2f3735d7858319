//===- KnownViews.cpp - known tensors that are views of smaller ones ------===//
//
// Exporters broadcast a mask over the batch before they compute with it, and what is masked by the order of positions
// depends on the difference of two of them only. So large tensors that repeat few elements are views, and what is
// computed on views element by element is computed on few elements, and is a view again.
//
//===----------------------------------------------------------------------===//

#include "Known.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <iterator>

using namespace mlir;
using namespace windlass;

/// The elements from which on a tensor may be a view. One of integers never is: most are shapes and indices, which are
/// read one by one.
constexpr int64_t kManyElements = 1 << 12;

KnownTensor::KnownTensor(RankedTensorType type, Known source, int64_t offset, Shape strides)
    : type(type), id(nextId()), source(std::move(source)), offset(offset), strides(std::move(strides)) {}

int64_t KnownTensor::findInSource(int64_t index) const {
  int64_t found = offset;
  for (auto [dim, stride] : llvm::reverse(llvm::zip_equal(getShape(), strides))) {
    found += index % dim * stride;
    index /= dim;
  }
  return found;
}

double KnownTensor::getReal(int64_t index) const {
  if (source)
    return source->getReal(findInSource(index));
  return isFloat() ? storage->reals[index] : static_cast<double>(getInteger(index));
}

int64_t KnownTensor::getInteger(int64_t index) const {
  if (source)
    return source->getInteger(findInSource(index));
  return isBoolean() ? storage->booleans[index] : storage->integers[index];
}

template <typename T>
static void copyStrided(const std::vector<T> &in, std::vector<T> &out, llvm::ArrayRef<int64_t> shape, int64_t offset,
                        llvm::ArrayRef<int64_t> strides) {
  int64_t inner = shape.empty() ? 1 : strides.back();
  forEachRow(shape, offset, strides, [&](int64_t to, int64_t from, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      out[to + i] = in[from + i * inner];
  });
}

/// Stores what lies in the stored tensor `input` at an offset and strides.
static Known makeStored(const Known &input, llvm::ArrayRef<int64_t> shape, int64_t offset,
                        llvm::ArrayRef<int64_t> strides) {
  return makeKnown(RankedTensorType::get(shape, input->getElementType()), [&](KnownStorage &out) {
    if (input->isBoolean())
      copyStrided(input->getStorage().booleans, out.booleans, shape, offset, strides);
    else if (input->isFloat())
      copyStrided(input->getStorage().reals, out.reals, shape, offset, strides);
    else
      copyStrided(input->getStorage().integers, out.integers, shape, offset, strides);
  });
}

std::shared_ptr<const KnownStorage> KnownTensor::share() const {
  if (!storage)
    storage = makeStored(source, getShape(), offset, strides)->storage;
  return storage;
}

bool windlass::mayBeView(Type elementType, int64_t elements) {
  return elements >= kManyElements && (elementType.isInteger(1) || isa<FloatType>(elementType));
}

/// Makes a view of a stored tensor; stores it where it may be none.
static Known makeView(const Known &source, llvm::ArrayRef<int64_t> shape, int64_t offset,
                      llvm::ArrayRef<int64_t> strides) {
  auto type = RankedTensorType::get(shape, source->getElementType());
  if (!mayBeView(type.getElementType(), countSaturated(shape)))
    return makeStored(source, shape, offset, strides);
  return std::make_shared<KnownTensor>(type, source, offset, Shape(strides));
}

//===----------------------------------------------------------------------===//
// What tensors of one shape have in common
//===----------------------------------------------------------------------===//

namespace {

/// Where the elements of a tensor are in a stored one.
struct Layout {
  Known stored;
  int64_t offset = 0;
  Shape strides;
};

/// The dims along which any of several tensors of a shape changes; `isDifference` where there are two, and each tensor
/// depends on the second position minus the first one only.
struct Coordinates {
  Shape dims;
  bool isDifference = false;

  Shape getSizes(llvm::ArrayRef<int64_t> shape) const {
    if (isDifference)
      return {shape[dims[0]] + shape[dims[1]] - 1};
    Shape sizes;
    for (int64_t dim : dims)
      sizes.push_back(shape[dim]);
    return sizes;
  }
};

} // namespace

static bool isView(const Known &tensor) { return tensor->getSource() != nullptr; }

/// Returns the layout of a tensor that is broadcast to `shape`.
static Layout getLayout(const Known &tensor, llvm::ArrayRef<int64_t> shape) {
  Layout result{tensor, 0, Shape(shape.size(), 0)};
  Shape own(getStrides(tensor->getShape()));
  if (isView(tensor)) {
    result.stored = tensor->getSource();
    result.offset = tensor->getViewOffset();
    own = Shape(tensor->getViewStrides());
  }
  size_t lead = shape.size() - own.size();
  for (auto [i, dim] : llvm::enumerate(tensor->getShape()))
    if (dim != 1)
      result.strides[lead + i] = own[i];
  return result;
}

static llvm::SmallVector<Layout> getLayouts(llvm::ArrayRef<Known> operands, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<Layout> layouts;
  for (const Known &operand : operands)
    layouts.push_back(getLayout(operand, shape));
  return layouts;
}

static Coordinates findCoordinates(llvm::ArrayRef<Layout> layouts, size_t rank) {
  Coordinates result;
  for (size_t dim = 0; dim < rank; ++dim)
    if (llvm::any_of(layouts, [&](const Layout &each) { return each.strides[dim] != 0; }))
      result.dims.push_back(static_cast<int64_t>(dim));
  result.isDifference = result.dims.size() == 2 && llvm::all_of(layouts, [&](const Layout &each) {
                          return each.strides[result.dims[0]] == -each.strides[result.dims[1]];
                        });
  return result;
}

/// Stores the elements of a tensor of `shape`, one for each place of the coordinates.
static Known storeDistinct(const Layout &layout, const Coordinates &coordinates, llvm::ArrayRef<int64_t> shape) {
  Shape strides;
  int64_t offset = layout.offset;
  if (coordinates.isDifference) {
    strides = {layout.strides[coordinates.dims[1]]};
    offset -= strides[0] * (shape[coordinates.dims[0]] - 1);
  } else {
    for (int64_t dim : coordinates.dims)
      strides.push_back(layout.strides[dim]);
  }
  return makeStored(layout.stored, coordinates.getSizes(shape), offset, strides);
}

/// Returns the tensor of `shape` of which `distinct` has the elements.
static Known viewDistinct(const Known &distinct, const Coordinates &coordinates, llvm::ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 0);
  if (coordinates.isDifference) {
    strides[coordinates.dims[0]] = -1;
    strides[coordinates.dims[1]] = 1;
    return makeView(distinct, shape, shape[coordinates.dims[0]] - 1, strides);
  }
  auto own = getStrides(distinct->getShape());
  for (auto [dim, stride] : llvm::zip_equal(coordinates.dims, own))
    strides[dim] = stride;
  return makeView(distinct, shape, 0, strides);
}

Known windlass::computeEach(llvm::ArrayRef<Known> operands, llvm::ArrayRef<int64_t> shape,
                            llvm::function_ref<Known(llvm::ArrayRef<Known>, llvm::ArrayRef<int64_t>)> compute) {
  if (llvm::none_of(operands, isView))
    return compute(operands, shape);
  llvm::SmallVector<Layout> layouts = getLayouts(operands, shape);
  Coordinates coordinates = findCoordinates(layouts, shape.size());
  llvm::SmallVector<Known> distinct;
  for (const Layout &layout : layouts)
    distinct.push_back(storeDistinct(layout, coordinates, shape));
  return viewDistinct(compute(distinct, coordinates.getSizes(shape)), coordinates, shape);
}

int64_t windlass::countComputed(llvm::ArrayRef<Known> operands, llvm::ArrayRef<int64_t> shape) {
  if (llvm::none_of(operands, isView))
    return countSaturated(shape);
  return countSaturated(findCoordinates(getLayouts(operands, shape), shape.size()).getSizes(shape));
}

std::optional<Diagonals> windlass::findDiagonals(const KnownTensor &tensor) {
  Shape dims;
  for (auto [dim, stride] : llvm::enumerate(tensor.getViewStrides()))
    if (stride != 0)
      dims.push_back(static_cast<int64_t>(dim));
  if (dims.size() != 2 || tensor.getViewStrides()[dims[0]] != -1 || tensor.getViewStrides()[dims[1]] != 1)
    return std::nullopt;
  return Diagonals{tensor.getSource(), dims[0], dims[1]};
}

Known windlass::makeBand(MLIRContext *context, int64_t rows, int64_t columns,
                         llvm::function_ref<bool(int64_t)> isInside) {
  if (rows == 0 || columns == 0)
    return makeKnown(RankedTensorType::get({rows, columns}, IntegerType::get(context, 1)), [](KnownStorage &) {});
  auto type = RankedTensorType::get({rows + columns - 1}, IntegerType::get(context, 1));
  Known list = makeKnown(type, [&](KnownStorage &out) {
    for (int64_t k = 0; k < rows + columns - 1; ++k)
      out.booleans[k] = isInside(k - (rows - 1));
  });
  return viewDistinct(list, {{0, 1}, true}, {rows, columns});
}

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

Known windlass::knownBroadcast(const Known &input, llvm::ArrayRef<int64_t> shape) {
  if (input->getShape() == shape)
    return input;
  Layout layout = getLayout(input, shape);
  return makeView(layout.stored, shape, layout.offset, layout.strides);
}

static Shape dropUnits(llvm::ArrayRef<int64_t> shape) {
  Shape result;
  llvm::copy_if(shape, std::back_inserter(result), [](int64_t dim) { return dim != 1; });
  return result;
}

bool windlass::keepsView(const KnownTensor &input, llvm::ArrayRef<int64_t> shape) {
  return input.getSource() && dropUnits(input.getShape()) == dropUnits(shape);
}

Known windlass::knownReshape(const Known &input, llvm::ArrayRef<int64_t> shape) {
  if (!keepsView(*input, shape))
    return std::make_shared<KnownTensor>(RankedTensorType::get(shape, input->getElementType()), input->share());
  Shape strides, own;
  for (auto [dim, stride] : llvm::zip_equal(input->getShape(), input->getViewStrides()))
    if (dim != 1)
      own.push_back(stride);
  const int64_t *next = own.begin();
  for (int64_t dim : shape)
    strides.push_back(dim == 1 ? 0 : *next++);
  return makeView(input->getSource(), shape, input->getViewOffset(), strides);
}

Known windlass::knownTranspose(const Known &input, llvm::ArrayRef<int64_t> permutation) {
  Layout layout = getLayout(input, input->getShape());
  Shape shape, strides;
  for (int64_t dim : permutation) {
    shape.push_back(input->getShape()[dim]);
    strides.push_back(layout.strides[dim]);
  }
  if (!isView(input))
    return makeStored(layout.stored, shape, layout.offset, strides);
  layout.strides = strides;
  Coordinates coordinates = findCoordinates(layout, shape.size());
  return viewDistinct(storeDistinct(layout, coordinates, shape), coordinates, shape);
}

Known windlass::knownSlice(const Known &input, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                           llvm::ArrayRef<int64_t> steps) {
  Layout layout = getLayout(input, input->getShape());
  for (auto [stride, start, step] : llvm::zip_equal(layout.strides, starts, steps)) {
    layout.offset += stride * start;
    stride *= step;
  }
  if (!isView(input))
    return makeStored(layout.stored, sizes, layout.offset, layout.strides);
  // All elements of the source are seen.
  for (auto [stride, size] : llvm::zip_equal(layout.strides, sizes))
    if (size == 1)
      stride = 0;
  Coordinates coordinates = findCoordinates(layout, sizes.size());
  return viewDistinct(storeDistinct(layout, coordinates, sizes), coordinates, sizes);
}
