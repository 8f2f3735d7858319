// Reads and adds at places given by integer tensors.
#include "TableParts.h"

#include <cstring>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::SmallVector;
using llvm::Twine;

SmallVector<int64_t> windlass::interpreter::indicesOf(KernelCall &call, const Tensor &tensor, int64_t size,
                                                      bool negative) {
  SmallVector<int64_t> indices;
  if (!call.require(tensor.getKind() == ElementKind::i64 || tensor.getKind() == ElementKind::i32,
                    "indices must be integers"))
    return indices;
  const Tensor wide = tensor.cast(ElementKind::i64);
  for (int64_t index : wide.values<int64_t>()) {
    int64_t place = negative && index < 0 ? index + size : index;
    if (!call.require(place >= 0 && place < size,
                      "index " + Twine(index) + " lies outside the " + Twine(size) + " rows"))
      return indices;
    indices.push_back(place);
  }
  return indices;
}

SmallVector<int64_t> windlass::interpreter::placesOfIds(KernelCall &call, const Tensor &ids, const Tensor &first,
                                                        int64_t rows, int64_t allRows) {
  SmallVector<int64_t> starts = indicesOf(call, first, allRows, false), places = indicesOf(call, ids, allRows, false);
  if (!call.require(!starts.empty() && rows % static_cast<int64_t>(starts.size()) == 0,
                    "the table has other rows than its parts"))
    return places;
  int64_t length = rows / static_cast<int64_t>(starts.size());
  for (int64_t &place : places) {
    const int64_t *part =
        llvm::find_if(starts, [&](int64_t start) { return place >= start && place < start + length; });
    place = part == starts.end() ? kNoPlace : (part - starts.begin()) * length + place - *part;
  }
  return places;
}

namespace {

/// A gather as (outer, place, inner): input [outer, size, inner], output [outer, indices, inner].
struct Places {
  int64_t outer = 1, size = 1, inner = 1;
  SmallVector<int64_t> indices;
};

/// Checks that `whole` is `picked` with the dim `axis` in place of the indices' dims; a table of parts has `first`.
std::optional<Places> places(KernelCall &call, const Tensor &whole, const Tensor &indices, const Tensor &picked,
                             int64_t axis, bool negative, const Tensor *first) {
  if (!call.require(axis >= 0 && axis < whole.getRank(), "axis lies outside the operand"))
    return std::nullopt;
  SmallVector<int64_t> shape(whole.getShape().take_front(axis));
  shape.append(indices.getShape().begin(), indices.getShape().end());
  shape.append(whole.getShape().begin() + axis + 1, whole.getShape().end());
  if (!call.requireShape(picked, shape, "the gathered tensor") ||
      !call.require(whole.getKind() == picked.getKind(), "operand and result differ in their element type"))
    return std::nullopt;
  Places result;
  result.outer = elementsOf(whole.getShape().take_front(axis));
  result.size = whole.getShape()[axis];
  result.inner = elementsOf(whole.getShape().drop_front(axis + 1));
  result.indices = first ? placesOfIds(call, indices, *first, result.size, call.integer("all_rows"))
                         : indicesOf(call, indices, result.size, negative);
  if (call.isBad())
    return std::nullopt;
  return result;
}

void pick(KernelCall &call, const Tensor &indices, int64_t axis, bool negative, const Tensor *first = nullptr) {
  std::optional<Places> at = places(call, call.inputs[0], indices, call.results[0], axis, negative, first);
  if (!at)
    return;
  int64_t bytes = at->inner * bytesOf(call.inputs[0].getKind());
  const std::byte *in = call.inputs[0].data();
  std::byte *out = call.results[0].mutableData();
  for (int64_t outer = 0; outer < at->outer; ++outer)
    for (int64_t index : at->indices) {
      if (index == kNoPlace)
        std::memset(out, 0, bytes);
      else
        std::memcpy(out, in + (outer * at->size + index) * bytes, bytes);
      out += bytes;
    }
}

void addAt(KernelCall &call, const Tensor &indices, const Tensor &gradient, int64_t axis, bool negative,
           const Tensor *first = nullptr) {
  ElementKind kind = call.floats();
  std::optional<Places> at = places(call, call.results[0], indices, gradient, axis, negative, first);
  if (!at || call.isBad())
    return;
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    const T *in = gradient.values<T>().data();
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    SmallVector<double> sums(out.size(), 0);
    for (int64_t outer = 0; outer < at->outer; ++outer)
      for (int64_t index : at->indices) {
        for (int64_t i = 0; i < at->inner && index != kNoPlace; ++i)
          sums[(outer * at->size + index) * at->inner + i] += in[i];
        in += at->inner;
      }
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<T>(sums[i]);
  });
}

void embedding(KernelCall &call) {
  bool hasParts = call.inputs.size() == 3;
  if (call.requireCounts(hasParts ? 3 : 2, 1))
    pick(call, call.inputs[1], 0, false, hasParts ? &call.inputs[2] : nullptr);
}

void embeddingGrad(KernelCall &call) {
  bool hasParts = call.inputs.size() == 3;
  if (call.requireCounts(hasParts ? 3 : 2, 1))
    addAt(call, call.inputs[0], call.inputs[1], 0, false, hasParts ? &call.inputs[2] : nullptr);
}

void gather(KernelCall &call) {
  int64_t axis = call.integer("axis");
  if (!call.isBad() && call.requireCounts(2, 1))
    pick(call, call.inputs[1], axis, true);
}

void scatterAdd(KernelCall &call) {
  int64_t axis = call.integer("axis");
  if (!call.isBad() && call.requireCounts(2, 1))
    addAt(call, call.inputs[0], call.inputs[1], axis, true);
}

/// Checks that `whole` and `parts` agree except on the axis, and calls f(element of whole, element of parts) for each
/// index.
template <class F>
void forElements(KernelCall &call, const Tensor &whole, const Tensor &indices, const Tensor &parts, int64_t axis, F f) {
  if (!call.require(axis >= 0 && axis < whole.getRank() && parts.getRank() == whole.getRank(),
                    "axis lies outside the operand"))
    return;
  SmallVector<int64_t> shape(whole.getShape());
  shape[axis] = parts.getShape()[axis];
  if (!call.requireShape(parts, shape, "the gathered tensor") || !call.requireShape(indices, shape, "indices") ||
      !call.require(whole.getKind() == parts.getKind(), "operand and result differ in their element type"))
    return;
  SmallVector<int64_t> places = indicesOf(call, indices, whole.getShape()[axis], true);
  if (call.isBad())
    return;
  int64_t inner = elementsOf(whole.getShape().drop_front(axis + 1)), size = whole.getShape()[axis];
  for (auto [i, place] : llvm::enumerate(places)) {
    int64_t outer = int64_t(i) / (shape[axis] * inner);
    f((outer * size + place) * inner + int64_t(i) % inner, int64_t(i));
  }
}

void gatherElements(KernelCall &call) {
  int64_t axis = call.integer("axis");
  if (call.isBad() || !call.requireCounts(2, 1))
    return;
  const Tensor &input = call.inputs[0];
  Tensor &result = call.results[0];
  int64_t bytes = bytesOf(input.getKind());
  forElements(call, input, call.inputs[1], result, axis, [&](int64_t from, int64_t to) {
    std::memcpy(result.mutableData() + to * bytes, input.data() + from * bytes, bytes);
  });
}

void scatterElementsAdd(KernelCall &call) {
  int64_t axis = call.integer("axis");
  if (call.isBad() || !call.requireCounts(2, 1))
    return;
  const Tensor &gradient = call.inputs[1];
  Tensor &result = call.results[0];
  dispatchFloat(call.floats(), [&](auto zero) {
    using T = decltype(zero);
    SmallVector<double> sums(result.getElements(), 0);
    forElements(call, result, call.inputs[0], gradient, axis,
                [&](int64_t to, int64_t from) { sums[to] += gradient.values<T>()[from]; });
    if (!call.isBad())
      llvm::transform(sums, result.mutableValues<T>().begin(), [](double sum) { return static_cast<T>(sum); });
  });
}

} // namespace

void windlass::interpreter::addIndexingKernels(KernelTable &table) {
  table["train.embedding"] = embedding;
  table["train.embedding_grad"] = embeddingGrad;
  table["train.gather"] = gather;
  table["train.scatter_add"] = scatterAdd;
  table["train.gather_elements"] = gatherElements;
  table["train.scatter_elements_add"] = scatterElementsAdd;
}
