//===- LegalizeResize.cpp - Resize, one axis after another ----------------===//
//
// Each element of the result has a place along the axis, between two elements of the tensor. It is the nearest of them,
// or a sum of its neighbours with weights that depend on its distance from them.
//
//===----------------------------------------------------------------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace windlass;

void Legalizer::registerResizing() { handle("Resize", &Legalizer::legalizeResize); }

struct Legalizer::ResizedAxis {
  int64_t dim, size;
  /// The elements of the result, and how many times as many these are by the node's scale.
  int64_t count = 0;
  double scale = 1;
  /// The region of the axis that is resized, where 1 is its last element.
  double start = 0, end = 1;
  /// The place of each element of the result.
  std::vector<double> places = {};
};

/// Returns the reals of an operand of `count` elements; fails, with the reason, where they are not known.
static FailureOr<std::vector<double>> readReals(const Entry &entry, size_t count, std::string &reason) {
  if (!entry.isTensor() || !entry.isFloat() || entry.type.getNumElements() != static_cast<int64_t>(count)) {
    reason = "has scales or a region that are not one number for each axis";
    return failure();
  }
  if (!entry.known) {
    reason = "has scales or a region that depend on an input or a parameter";
    return failure();
  }
  return entry.known->getStorage().reals;
}

LogicalResult Legalizer::readScales(NodeContext &node, llvm::MutableArrayRef<ResizedAxis> axes) {
  bool hasSizes = node.has(3) && !(node.input(3).isTensor() && node.input(3).type.getNumElements() == 0);
  if (!hasSizes) {
    std::string reason;
    FailureOr<std::vector<double>> scales = readReals(node.input(2), axes.size(), reason);
    if (failed(scales))
      return unsupported(reason);
    for (auto [axis, scale] : llvm::zip_equal(axes, *scales)) {
      double count = std::floor(scale * static_cast<double>(axis.size));
      if (!(scale > 0) || !(count < static_cast<double>(train::Windows::kBound)))
        return invalid(node, "has a scale that is not above 0, or gives too many elements");
      axis.scale = scale;
      axis.count = static_cast<int64_t>(count);
    }
    return success();
  }
  FailureOr<Shape> sizes = readIntegers(node, 3, "sizes");
  if (failed(sizes))
    return failure();
  if (sizes->size() != axes.size() ||
      llvm::any_of(*sizes, [](int64_t size) { return size < 1 || size >= train::Windows::kBound; }))
    return invalid(node, "has sizes that are not one positive number for each axis");
  llvm::StringRef policy = node.getString("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return invalid(node, "has a keep_aspect_ratio_policy that is none of stretch, not_larger and not_smaller");
  std::optional<double> common;
  for (auto [axis, size] : llvm::zip_equal(axes, *sizes)) {
    axis.count = size;
    axis.scale = static_cast<double>(size) / static_cast<double>(axis.size);
    common = !common                  ? axis.scale
             : policy == "not_larger" ? std::min(*common, axis.scale)
                                      : std::max(*common, axis.scale);
  }
  for (ResizedAxis &axis : axes)
    if (policy != "stretch") {
      axis.scale = *common;
      axis.count = static_cast<int64_t>(std::floor(axis.scale * static_cast<double>(axis.size) + 0.5));
    }
  return success();
}

/// Returns the place of element `i` of the result; nothing where there is no such mode.
static std::optional<double> findPlace(llvm::StringRef mode, double i, double size, double count, double scale,
                                       double start, double end) {
  // The length by the scale, which need not be whole.
  double length = scale * size, centered = (i + 0.5) / scale - 0.5;
  if (mode == "half_pixel" || (mode == "pytorch_half_pixel" && length != 1))
    return centered;
  if (mode == "pytorch_half_pixel")
    return 0.0;
  if (mode == "half_pixel_symmetric")
    return size / 2 * (1 - count / length) + centered;
  if (mode == "align_corners")
    return length == 1 ? 0 : i * (size - 1) / (length - 1);
  if (mode == "asymmetric")
    return i / scale;
  if (mode == "tf_crop_and_resize")
    return length == 1 ? (start + end) / 2 * (size - 1) : (start + i * (end - start) / (length - 1)) * (size - 1);
  return std::nullopt;
}

FailureOr<std::vector<Legalizer::ResizedAxis>> Legalizer::readResizedAxes(NodeContext &node) {
  const Entry &x = node.inputs[0];
  FailureOr<Shape> dims = readAxes(node, node.inputs.size(), x.getRank());
  if (failed(dims))
    return failure();
  if (!node.getInts("axes"))
    llvm::append_range(*dims, llvm::seq<int64_t>(0, x.getRank()));
  std::vector<ResizedAxis> axes;
  for (int64_t dim : *dims)
    axes.push_back({dim, x.getShape()[dim]});
  if (failed(readScales(node, axes)))
    return failure();
  llvm::StringRef mode = node.getString("coordinate_transformation_mode", "half_pixel");
  if (mode == "tf_crop_and_resize") {
    std::string reason;
    FailureOr<std::vector<double>> region = readReals(node.input(1), 2 * axes.size(), reason);
    if (failed(region))
      return unsupported(reason);
    for (size_t i = 0; i < axes.size(); ++i)
      std::tie(axes[i].start, axes[i].end) = std::pair((*region)[i], (*region)[i + axes.size()]);
  }
  for (ResizedAxis &axis : axes) {
    if (axis.count < 1)
      return unsupported("gives a tensor without elements");
    if (!eval.mayEvaluate(axis.count))
      return unsupported("gives too many elements along an axis");
    for (int64_t i = 0; i < axis.count; ++i) {
      auto place = findPlace(mode, double(i), double(axis.size), double(axis.count), axis.scale, axis.start, axis.end);
      if (!place)
        return unsupported("has coordinate_transformation_mode '" + mode.take_front(40) + "'");
      if (!(std::abs(*place) < static_cast<double>(train::Windows::kBound)))
        return invalid(node, "has scales or a region whose places are out of range");
      axis.places.push_back(*place);
    }
  }
  return axes;
}

FailureOr<Entry> Legalizer::takeNearest(NodeContext &node, const Entry &x, const ResizedAxis &axis) {
  llvm::StringRef mode = node.getString("nearest_mode", "round_prefer_floor");
  Shape elements;
  for (double place : axis.places) {
    double element = mode == "round_prefer_floor"  ? std::ceil(place - 0.5)
                     : mode == "round_prefer_ceil" ? std::floor(place + 0.5)
                     : mode == "floor"             ? std::floor(place)
                                                   : std::ceil(place);
    elements.push_back(std::clamp<int64_t>(static_cast<int64_t>(element), 0, axis.size - 1));
  }
  if (mode != "round_prefer_floor" && mode != "round_prefer_ceil" && mode != "floor" && mode != "ceil")
    return unsupported("has nearest_mode '" + mode.take_front(40) + "'");
  // Where each element is taken equally often, one after the other, it is repeated, the gradient of which is a sum.
  int64_t times = axis.count / axis.size;
  bool isRepeated = axis.count % axis.size == 0 && times > 1;
  for (int64_t i = 0; i < axis.count && isRepeated; ++i)
    isRepeated = elements[i] == i / times;
  if (!isRepeated)
    return eval.gather(x, Entry::of(makeKnownIntegers(builder.getContext(), elements)), axis.dim);
  Shape apart(x.getShape()), whole(x.getShape());
  apart.insert(apart.begin() + axis.dim + 1, 1);
  Shape spread(apart);
  spread[axis.dim + 1] = times;
  whole[axis.dim] = axis.count;
  return eval.reshape(eval.broadcast(eval.reshape(x, apart), spread), whole);
}

/// Returns the weight of an element at `distance`, which is 0 from `reach`, 1 or 2, on.
/// (The cubic one: Keys, Cubic convolution interpolation for digital image processing, 1981.)
static double weigh(double distance, bool isCubic, double a) {
  double t = std::abs(distance);
  if (!isCubic)
    return std::max(1 - t, 0.0);
  if (t <= 1)
    return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

FailureOr<Entry> Legalizer::interpolate(NodeContext &node, const Entry &x, const ResizedAxis &axis) {
  constexpr int64_t kMostNeighbours = 64;
  bool isCubic = node.getString("mode", "nearest") == "cubic", excludes = node.getInt("exclude_outside", 0) != 0;
  // An antialiasing filter reaches as much further as the axis shrinks.
  double squeeze = node.getInt("antialias", 0) != 0 ? std::min(axis.scale, 1.0) : 1,
         reach = (isCubic ? 2 : 1) / squeeze;
  double a = node.getFloat("cubic_coeff_a", -0.75);
  if (!(2 * reach <= kMostNeighbours))
    return unsupported("shrinks an axis so much that more than 64 elements become one");
  auto neighbours = static_cast<int64_t>(std::ceil(2 * reach));
  if (!eval.mayEvaluate(neighbours * axis.count))
    return unsupported("gives too many elements along an axis");
  std::vector<Shape> elements(neighbours);
  std::vector<std::vector<double>> weights(neighbours);
  for (double place : axis.places) {
    auto first = static_cast<int64_t>(std::floor(place - reach)) + 1;
    double sum = 0;
    for (int64_t i = 0; i < neighbours; ++i) {
      int64_t element = first + i, inside = std::clamp<int64_t>(element, 0, axis.size - 1);
      double weight = weigh((static_cast<double>(element) - place) * squeeze, isCubic, a);
      elements[i].push_back(inside);
      weights[i].push_back(excludes && element != inside ? 0 : weight);
      sum += weights[i].back();
    }
    for (int64_t i = 0; i < neighbours && sum != 0; ++i)
      weights[i].back() /= sum;
  }
  Shape spread(x.getRank() - axis.dim, 1);
  spread[0] = axis.count;
  return inFullPrecision([&] {
    std::optional<Entry> total;
    for (int64_t i = 0; i < neighbours; ++i) {
      if (llvm::all_of(weights[i], [](double each) { return each == 0; }))
        continue;
      Known factors = makeKnown(RankedTensorType::get(spread, x.getElementType()), [&](KnownStorage &out) {
        for (auto [to, from] : llvm::zip_equal(out.reals, weights[i]))
          to = roundReal(from, x.getElementType());
      });
      Entry part = eval.gather(x, Entry::of(makeKnownIntegers(builder.getContext(), elements[i])), axis.dim);
      part = eval.binary(BinaryKind::mul, part, Entry::of(factors));
      total = total ? eval.binary(BinaryKind::add, *total, part) : part;
    }
    return total.value_or(Entry());
  });
}

LogicalResult Legalizer::legalizeResize(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  Entry result = node.inputs[0];
  llvm::StringRef mode = node.getString("mode", "nearest");
  if (node.version() < 11)
    return unsupported("is of an opset below 11");
  if (mode != "nearest" && mode != "linear" && mode != "cubic")
    return unsupported("has mode '" + mode.take_front(40) + "'");
  if (mode != "nearest" && !result.isFloat())
    return unsupported("interpolates integers");
  if (result.type.getNumElements() == 0)
    return invalid(node, "needs a tensor with elements");
  FailureOr<std::vector<ResizedAxis>> axes = readResizedAxes(node);
  if (failed(axes))
    return failure();
  // What some axes are resized to exists together with others that are not yet.
  Shape largest(result.getShape());
  for (const ResizedAxis &axis : *axes)
    largest[axis.dim] = std::max(axis.size, axis.count);
  if (failed(checkCount(node, largest)))
    return failure();
  bool isCropped = node.getString("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  for (const ResizedAxis &axis : *axes) {
    bool isSame = axis.count == axis.size;
    for (int64_t i = 0; i < axis.count && isSame; ++i)
      isSame = axis.places[i] == static_cast<double>(i);
    if (isSame)
      continue;
    FailureOr<Entry> resized = mode == "nearest" ? takeNearest(node, result, axis) : interpolate(node, result, axis);
    if (failed(resized) || !resized->isTensor())
      return failed(resized) ? failure() : give(node, *resized);
    result = *resized;
    if (!isCropped)
      continue;
    Shape spread(result.getRank() - axis.dim, 1);
    spread[0] = axis.count;
    Known isOutside = makeKnown(RankedTensorType::get(spread, builder.getI1Type()), [&](KnownStorage &out) {
      for (auto [to, place] : llvm::zip_equal(out.booleans, axis.places))
        to = place < 0 || place > static_cast<double>(axis.size - 1);
    });
    Entry outside = eval.scalar(node.getFloat("extrapolation_value", 0), result.getElementType());
    result = eval.select(Entry::of(isOutside), outside, result);
  }
  return give(node, result);
}
