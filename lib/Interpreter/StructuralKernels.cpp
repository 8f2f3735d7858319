// Operators that make or move values.
#include "KernelCall.h"

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::SmallVector;

namespace {

bool haveOneKind(KernelCall &call) {
  for (const Tensor &input : call.inputs)
    for (const Tensor &result : call.results)
      if (!call.require(input.getKind() == result.getKind(), "operands and results differ in their element type"))
        return false;
  return true;
}

void iota(KernelCall &call) {
  int64_t dim = call.integer("dim");
  double start = call.number("start"), step = call.number("step");
  if (call.isBad() || !call.requireCounts(0, 1))
    return;
  Tensor &result = call.results[0];
  if (!call.require(dim >= 0 && dim < result.getRank(), "dim lies outside the result"))
    return;
  int64_t size = result.getShape()[dim];
  int64_t inner = elementsOf(result.getShape().drop_front(dim + 1));
  for (int64_t i = 0; i < result.getElements(); ++i)
    result.set(i, start + step * static_cast<double>(i / inner % size));
}

void broadcast(KernelCall &call) {
  SmallVector<int64_t> dims = call.integers("dims");
  if (call.isBad() || !call.requireCounts(1, 1) || !haveOneKind(call))
    return;
  const Tensor &input = call.inputs[0];
  Tensor &result = call.results[0];
  if (!call.require(static_cast<int64_t>(dims.size()) == input.getRank(), "needs one dim per operand dim"))
    return;
  int64_t bytes = bytesOf(input.getKind());
  SmallVector<int64_t, 4> inputStrides = denseStrides(input.getShape(), bytes), strides(result.getRank(), 0);
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (!call.require(dim >= 0 && dim < result.getRank() && result.getShape()[dim] == input.getShape()[i],
                      "an operand dim has another size than its result dim"))
      return;
    strides[dim] = inputStrides[i];
  }
  copyElements(result.mutableData(), denseStrides(result.getShape(), bytes), input.data(), strides, result.getShape(),
               bytes);
}

void reshape(KernelCall &call) {
  if (!call.requireCounts(1, 1) || !haveOneKind(call))
    return;
  if (call.require(call.inputs[0].getElements() == call.results[0].getElements(), "must keep the number of elements"))
    call.results[0] = call.inputs[0].reshaped(SmallVector<int64_t>(call.results[0].getShape()));
}

/// Takes the statistic of the batch: differentiation removes the operator, so where there is one, the model trains.
void trackStatistic(KernelCall &call) {
  if (call.requireCounts(2, 1) && haveOneKind(call))
    call.results[0] = call.inputs[0];
}

void transpose(KernelCall &call) {
  SmallVector<int64_t> permutation = call.integers("permutation");
  if (call.isBad() || !call.requireCounts(1, 1) || !haveOneKind(call))
    return;
  const Tensor &input = call.inputs[0];
  Tensor &result = call.results[0];
  if (!call.require(static_cast<int64_t>(permutation.size()) == input.getRank() && input.getRank() == result.getRank(),
                    "needs one dim per operand dim"))
    return;
  int64_t bytes = bytesOf(input.getKind());
  SmallVector<int64_t, 4> inputStrides = denseStrides(input.getShape(), bytes), strides(result.getRank());
  for (auto [i, dim] : llvm::enumerate(permutation)) {
    if (!call.require(dim >= 0 && dim < input.getRank() && result.getShape()[i] == input.getShape()[dim],
                      "the result's shape is not the permuted one"))
      return;
    strides[i] = inputStrides[dim];
  }
  copyElements(result.mutableData(), denseStrides(result.getShape(), bytes), input.data(), strides, result.getShape(),
               bytes);
}

/// Copies the box of `sizes` at `fromStarts` of `from` to `toStarts` of `to`; returns false where it exceeds one of
/// them.
bool copyBox(Tensor &to, ArrayRef<int64_t> toStarts, const Tensor &from, ArrayRef<int64_t> fromStarts,
             ArrayRef<int64_t> sizes) {
  int64_t rank = to.getRank();
  if (from.getRank() != rank || static_cast<int64_t>(toStarts.size()) != rank ||
      static_cast<int64_t>(fromStarts.size()) != rank || static_cast<int64_t>(sizes.size()) != rank)
    return false;
  int64_t bytes = bytesOf(to.getKind());
  SmallVector<int64_t, 4> toStrides = denseStrides(to.getShape(), bytes);
  SmallVector<int64_t, 4> fromStrides = denseStrides(from.getShape(), bytes);
  int64_t toOffset = 0, fromOffset = 0;
  for (int64_t i = 0; i < rank; ++i) {
    if (toStarts[i] < 0 || toStarts[i] > to.getShape()[i] - sizes[i] || fromStarts[i] < 0 ||
        fromStarts[i] > from.getShape()[i] - sizes[i])
      return false;
    toOffset += toStarts[i] * toStrides[i];
    fromOffset += fromStarts[i] * fromStrides[i];
  }
  copyElements(to.mutableData() + toOffset, toStrides, from.data() + fromOffset, fromStrides, sizes, bytes);
  return true;
}

void slice(KernelCall &call) {
  SmallVector<int64_t> starts = call.integers("starts");
  if (call.isBad() || !call.requireCounts(1, 1) || !haveOneKind(call))
    return;
  // The result's own shape: on a rank's part the attribute's sizes are larger.
  Tensor &result = call.results[0];
  SmallVector<int64_t> sizes(result.getShape()), zeros(sizes.size(), 0);
  call.require(copyBox(result, zeros, call.inputs[0], starts, sizes), "the box leaves the operand");
}

void pad(KernelCall &call) {
  SmallVector<int64_t> low = call.integers("low");
  double value = call.number("value");
  if (call.isBad() || !call.requireCounts(1, 1) || !haveOneKind(call))
    return;
  Tensor &result = call.results[0];
  result = Tensor::filled(result.getKind(), SmallVector<int64_t>(result.getShape()), value);
  SmallVector<int64_t> zeros(call.inputs[0].getRank(), 0);
  call.require(copyBox(result, low, call.inputs[0], zeros, call.inputs[0].getShape()),
               "the operand does not fit into the result");
}

void concat(KernelCall &call) {
  int64_t axis = call.integer("axis");
  if (call.isBad() || !call.require(call.results.size() == 1, "needs one result") || !haveOneKind(call))
    return;
  Tensor &result = call.results[0];
  if (!call.require(axis >= 0 && axis < result.getRank(), "axis lies outside the result"))
    return;
  SmallVector<int64_t> starts(result.getRank(), 0), zeros(result.getRank(), 0);
  for (const Tensor &input : call.inputs) {
    if (!call.require(copyBox(result, starts, input, zeros, input.getShape()), "the operands do not fit the result"))
      return;
    starts[axis] += input.getShape()[axis];
  }
  call.require(starts[axis] == result.getShape()[axis], "the operands do not fill the result");
}

void split(KernelCall &call) {
  int64_t axis = call.integer("axis");
  if (call.isBad() || !call.require(call.inputs.size() == 1, "needs one operand") || !haveOneKind(call))
    return;
  const Tensor &input = call.inputs[0];
  if (!call.require(axis >= 0 && axis < input.getRank(), "axis lies outside the operand"))
    return;
  SmallVector<int64_t> starts(input.getRank(), 0), zeros(input.getRank(), 0);
  for (Tensor &result : call.results) {
    if (!call.require(copyBox(result, zeros, input, starts, SmallVector<int64_t>(result.getShape())),
                      "the results do not fit the operand"))
      return;
    starts[axis] += result.getShape()[axis];
  }
}

} // namespace

void windlass::interpreter::addStructuralKernels(KernelTable &table) {
  // `evaluate` answers constants itself; the entry makes it known.
  table["train.constant"] = [](KernelCall &) {};
  table["train.iota"] = iota;
  table["train.broadcast"] = broadcast;
  table["train.reshape"] = reshape;
  table["train.track_statistic"] = trackStatistic;
  table["train.transpose"] = transpose;
  table["train.slice"] = slice;
  table["train.pad"] = pad;
  table["train.concat"] = concat;
  table["train.split"] = split;
}
