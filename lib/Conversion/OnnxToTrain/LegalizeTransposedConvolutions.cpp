//===- LegalizeTransposedConvolutions.cpp - ConvTranspose -----------------===//
//
// A transposed convolution is the gradient of a convolution's input: its image stands for the gradient of the
// convolution's result, and its own result has the sizes of the convolution's input.
//
//===----------------------------------------------------------------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

/// Whether `value` can be the size of a window or image, or a distance: then sums of products of two do not overflow.
static bool isInRange(int64_t value) { return value >= 0 && value < train::Windows::kBound; }

FailureOr<Legalizer::TransposedLists> Legalizer::readTransposedLists(NodeContext &node, const Entry &image,
                                                                     llvm::ArrayRef<int64_t> window) {
  FailureOr<WindowLists> given = readLists(node, window);
  if (failed(given))
    return failure();
  TransposedLists lists{*given, Shape(window.size(), 0)};
  Shape output(window.size(), 0), extra(window.size(), 0);
  bool isSame = node.getString("auto_pad", "NOTSET").starts_with("SAME"), hasSizes = false;
  for (auto [name, list] : {std::pair("output_shape", &output), {"output_padding", &extra}})
    if (auto attribute = node.getInts(name)) {
      list->assign(attribute->begin(), attribute->end());
      hasSizes |= list == &output;
    }
  if (lists.strides.size() != window.size() || lists.dilations.size() != window.size() ||
      lists.pads.size() != 2 * window.size() || output.size() != window.size() || extra.size() != window.size())
    return invalid(node, "has lists of another length than its kernels have spatial dims");
  for (size_t i = 0, spatial = window.size(); i < spatial; ++i) {
    int64_t size = image.getShape()[i + 2], stride = lists.strides[i], dilation = lists.dilations[i];
    int64_t &low = lists.pads[i], &high = lists.pads[i + spatial];
    if (!llvm::all_of(llvm::ArrayRef<int64_t>{size, window[i], stride, dilation, low, high, extra[i], output[i]},
                      isInRange) ||
        std::min({size, window[i], stride, dilation}) < 1)
      return invalid(node, "has a number out of range among its sizes, strides, dilations, pads and output paddings");
    // The elements that all windows cover.
    int64_t covered = stride * (size - 1) + dilation * (window[i] - 1) + 1, result = output[i];
    if (isSame || hasSizes) {
      result = hasSizes ? result : size * stride;
      int64_t pads = std::max<int64_t>(covered + extra[i] - result, 0);
      low = node.getString("auto_pad", "NOTSET") == "SAME_UPPER" ? pads / 2 : pads - pads / 2;
    } else {
      result = covered + extra[i] - low - high;
    }
    if (result < 1 || !isInRange(result))
      return invalid(node, "gives " + llvm::Twine(result) + " elements along spatial dim " + llvm::Twine(i));
    // Pads behind the image make the convolution of the result have `size` windows. Elements behind the last of these
    // windows, beyond those that strides pass over, are zeros.
    high = std::max<int64_t>(covered - low - result, 0);
    lists.zeros[i] = std::max<int64_t>(result - (covered - low + stride - 1), 0);
    if (low >= covered + stride - 1 || !isInRange(high))
      return invalid(node, "has more pads than elements along spatial dim " + llvm::Twine(i));
    lists.spatial.push_back(result - lists.zeros[i]);
  }
  return lists;
}

LogicalResult Legalizer::legalizeConvTranspose(NodeContext &node) {
  if (failed(checkImageAndKernels(node)))
    return failure();
  const Entry &x = node.inputs[0], &kernel = node.inputs[1];
  llvm::ArrayRef<int64_t> window = kernel.getShape().drop_front(2);
  int64_t groups = node.getInt("group", 1), channels = x.getShape()[1], perGroup = kernel.getShape()[1];
  if (groups < 1 || channels < 1 || perGroup < 1 || x.getShape()[0] < 1 || channels % groups != 0 ||
      kernel.getShape()[0] != channels || perGroup >= train::Windows::kBound / groups)
    return invalid(node, "has kernels for " + llvm::Twine(kernel.getShape()[0]) + " channels, and an image of " +
                             llvm::Twine(channels) + " in " + llvm::Twine(groups) + " groups");
  if (x.getRank() > 5)
    return unsupported("has more than three spatial dims");
  FailureOr<TransposedLists> lists = readTransposedLists(node, x, window);
  if (failed(lists) || failed(checkBias(node, groups * perGroup)))
    return failure();
  Shape sizes{x.getShape()[0], groups * perGroup}, low(x.getRank(), 0), high(x.getRank(), 0);
  llvm::append_range(sizes, lists->spatial);
  llvm::copy(lists->zeros, high.begin() + 2);
  Shape whole(sizes);
  for (auto [size, zeros] : llvm::zip_equal(whole, high))
    size += zeros;
  if (failed(checkCount(node, whole)))
    return failure();
  Value image = eval.materialize(x), weight = image ? eval.materialize(kernel) : Value();
  if (!weight)
    return unsupported(eval.takeReason());
  Entry result = Entry::of(train::ConvolutionDataGradOp::create(builder, eval.getLocation(), image, weight, sizes,
                                                                lists->strides, lists->dilations, lists->pads)
                               .getResult());
  return give(node, addBias(node, eval.pad(result, low, high, 0)));
}
