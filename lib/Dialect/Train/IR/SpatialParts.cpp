#include "SpatialParts.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace windlass::train;

/// The dim of the rows in [parts, batch, channels, rows, spatial..].
static constexpr int64_t kRows = 3;

std::optional<Halo> windlass::train::findHalo(const Windows &windows, int64_t from, int64_t to) {
  int64_t stride = windows.strides[0], before = windows.pads[0], behind = windows.pads[windows.window.size()],
          span = windows.dilations[0] * (windows.window[0] - 1) + 1;
  // Where a window ends before the next one begins, the last one could begin in the pads.
  if (from != to * stride || before >= span || (before == 0 && behind > 0 && span <= stride))
    return std::nullopt;
  return Halo{before, std::max<int64_t>(0, span - before - stride)};
}

void windlass::train::addSpatialDims(OpFactors &factors, ValueFactors &input, RankedTensorType inputType,
                                     ValueFactors &result, RankedTensorType resultType, std::optional<Halo> halo,
                                     FactorKind kind) {
  int64_t first = 2;
  if (halo) {
    int64_t to = resultType.getDimSize(2), stride = inputType.getDimSize(2) / to;
    unsigned space = factors.add("space", to, kind);
    factors.factors[space].halo = static_cast<double>(halo->before + halo->behind) / static_cast<double>(stride);
    factors.factors[space].leastPart = std::max<int64_t>(1, llvm::divideCeil(halo->before + halo->behind, stride));
    input.push_back({space});
    if (stride > 1)
      input.back().push_back(factors.add("stride", stride, FactorKind::Replicated));
    result.push_back({space});
    ++first;
  }
  auto addWhole = [&](ValueFactors &dims, RankedTensorType type, StringRef prefix) {
    for (int64_t dim = first; dim < type.getRank(); ++dim)
      dims.push_back({factors.add((prefix + Twine(dim - 2)).str(), type.getDimSize(dim), FactorKind::Replicated)});
  };
  addWhole(input, inputType, "from");
  addWhole(result, resultType, "to");
}

SpatialParts::SpatialParts(const Maker &maker, int64_t parts, const Windows &windows, RankedTensorType input,
                           RankedTensorType result)
    : maker(maker), parts(parts), halo(*findHalo(windows, input.getDimSize(2), result.getDimSize(2))),
      pads(windows.pads) {
  pads[0] = pads[windows.window.size()] = 0;
}

Value SpatialParts::toParts(Value value) const {
  Shape shape(typeOf(value).getShape());
  shape[2] /= parts;
  shape.insert(shape.begin() + 2, parts);
  Shape order = countDims(static_cast<int64_t>(shape.size()));
  std::rotate(order.begin(), order.begin() + 2, order.begin() + 3);
  return makeTranspose(maker.builder, maker.loc, maker.reshape(value, shape), order);
}

Value SpatialParts::fromParts(Value value) const {
  Shape shape(typeOf(value).getShape().drop_front());
  shape[2] *= parts;
  Shape order = countDims(typeOf(value).getRank());
  std::rotate(order.begin(), order.begin() + 1, order.begin() + 3);
  return maker.reshape(makeTranspose(maker.builder, maker.loc, value, order), shape);
}

Value SpatialParts::toSamples(Value value) const {
  Shape shape(typeOf(value).getShape().drop_front());
  shape[0] *= parts;
  return maker.reshape(value, shape);
}

Value SpatialParts::fromSamples(Value value) const {
  Shape shape(typeOf(value).getShape());
  shape[0] /= parts;
  shape.insert(shape.begin(), parts);
  return maker.reshape(value, shape);
}

/// Returns elements [first, first + count) along a dim.
static Value take(const Maker &maker, Value value, int64_t dim, int64_t first, int64_t count) {
  Shape starts(typeOf(value).getRank(), 0), sizes(typeOf(value).getShape());
  starts[dim] = first;
  sizes[dim] = count;
  return maker.make<SliceOp>(value, starts, sizes);
}

Value SpatialParts::takeRows(Value value, int64_t first, int64_t count) const {
  return take(maker, value, kRows, first, count);
}

/// Returns for each part the value of the one before it, or with `isBehind` of the one behind it; `fill` where there is
/// none.
static Value takeNeighbours(const Maker &maker, Value value, bool isBehind, double fill) {
  Shape low(typeOf(value).getRank(), 0), high(low);
  (isBehind ? high : low)[0] = 1;
  Value others = take(maker, value, 0, isBehind ? 1 : 0, typeOf(value).getDimSize(0) - 1);
  return maker.make<PadOp>(others, low, high, APFloat(fill));
}

Value SpatialParts::cutWithHalo(Value input, double fill) const {
  Value whole = toParts(input);
  int64_t rows = typeOf(whole).getDimSize(kRows);
  SmallVector<Value> blocks{whole};
  if (halo.before > 0)
    blocks.insert(blocks.begin(),
                  takeNeighbours(maker, takeRows(whole, rows - halo.before, halo.before), /*isBehind=*/false, fill));
  if (halo.behind > 0)
    blocks.push_back(takeNeighbours(maker, takeRows(whole, 0, halo.behind), /*isBehind=*/true, fill));
  return toSamples(blocks.size() == 1 ? whole : maker.make<ConcatOp>(blocks, kRows));
}

Shape SpatialParts::getSizesWithHalo(ArrayRef<int64_t> sizes) const {
  Shape result(sizes);
  result[0] *= parts;
  result[2] = result[2] / parts + halo.before + halo.behind;
  return result;
}

/// Adds to each part of `mine` that of `other` before it, or with `isBehind` the one behind it.
static Value addNeighbours(const Maker &maker, Value mine, Value other, bool isBehind) {
  int64_t parts = typeOf(mine).getDimSize(0);
  Value alone = take(maker, mine, 0, isBehind ? parts - 1 : 0, 1);
  Value sum = maker.make<AddOp>(take(maker, mine, 0, isBehind ? 0 : 1, parts - 1),
                                take(maker, other, 0, isBehind ? 1 : 0, parts - 1));
  return maker.make<ConcatOp>(isBehind ? ValueRange{sum, alone} : ValueRange{alone, sum}, 0);
}

// Nothing here makes a value larger, so that sums which are incomplete over an axis remain so: layout inference
// completes a sum before an operator whose result is larger than what it reads.
Value SpatialParts::joinWithHalo(Value samples) const {
  Value all = fromSamples(samples);
  int64_t rows = typeOf(all).getDimSize(kRows) - halo.before - halo.behind, inner = rows - halo.before - halo.behind;
  SmallVector<Value> blocks;
  // The first rows are also those behind the part before, and the last rows those before the part behind.
  if (halo.behind > 0)
    blocks.push_back(addNeighbours(maker, takeRows(all, halo.before, halo.behind),
                                   takeRows(all, halo.before + rows, halo.behind), /*isBehind=*/false));
  if (inner > 0)
    blocks.push_back(takeRows(all, halo.before + halo.behind, inner));
  if (halo.before > 0)
    blocks.push_back(
        addNeighbours(maker, takeRows(all, rows, halo.before), takeRows(all, 0, halo.before), /*isBehind=*/true));
  return fromParts(blocks.size() == 1 ? blocks.front() : maker.make<ConcatOp>(blocks, kRows));
}
