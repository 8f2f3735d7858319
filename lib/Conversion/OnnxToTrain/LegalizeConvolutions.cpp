//===- LegalizeConvolutions.cpp - convolutions and pooling ----------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerConvolutions() {
  handle("Conv", &Legalizer::legalizeConv);
  handle("ConvTranspose", &Legalizer::legalizeConvTranspose);
  handle("MaxPool", &Legalizer::legalizePool);
  handle("AveragePool", &Legalizer::legalizePool);
  handle("GlobalAveragePool", &Legalizer::legalizeGlobalAveragePool);
  handle("GlobalMaxPool", &Legalizer::legalizeGlobalMaxPool);
}

std::pair<int64_t, int64_t> Legalizer::padToSame(int64_t size, int64_t window, int64_t stride, int64_t dilation,
                                                 bool isUpper) {
  int64_t span = dilation * (window - 1) + 1, count = (size + stride - 1) / stride;
  int64_t pads = std::max<int64_t>((count - 1) * stride + span - size, 0);
  return isUpper ? std::pair(pads / 2, pads - pads / 2) : std::pair(pads - pads / 2, pads / 2);
}

FailureOr<Legalizer::WindowLists> Legalizer::readLists(NodeContext &node, llvm::ArrayRef<int64_t> window) {
  size_t spatial = node.inputs[0].getRank() - 2;
  WindowLists lists{Shape(window), Shape(spatial, 1), Shape(spatial, 1), Shape(2 * spatial, 0), {}};
  for (auto [name, list] :
       {std::pair("strides", &lists.strides), {"dilations", &lists.dilations}, {"pads", &lists.pads}})
    if (auto given = node.getInts(name))
      list->assign(given->begin(), given->end());
  llvm::StringRef padding = node.getString("auto_pad", "NOTSET");
  if (padding != "NOTSET") {
    if (padding != "VALID" && padding != "SAME_UPPER" && padding != "SAME_LOWER")
      return invalid(node, "has an auto_pad that is none of NOTSET, VALID, SAME_UPPER and SAME_LOWER");
    lists.pads.assign(2 * spatial, 0);
  }
  return lists;
}

FailureOr<Legalizer::WindowLists> Legalizer::readWindows(NodeContext &node, const Entry &image,
                                                         llvm::ArrayRef<int64_t> window, bool pools) {
  FailureOr<WindowLists> given = readLists(node, window);
  if (failed(given))
    return failure();
  WindowLists &lists = *given;
  llvm::StringRef padding = node.getString("auto_pad", "NOTSET");
  size_t spatial = image.getRank() - 2;
  auto isInRange = [](int64_t value) { return value >= 1 && value < train::Windows::kBound; };
  if (padding.starts_with("SAME") && lists.strides.size() == spatial && lists.dilations.size() == spatial &&
      lists.window.size() == spatial)
    for (size_t i = 0; i < spatial; ++i)
      if (isInRange(lists.window[i]) && isInRange(lists.strides[i]) && isInRange(lists.dilations[i]) &&
          isInRange(image.getShape()[i + 2]))
        std::tie(lists.pads[i], lists.pads[i + spatial]) = padToSame(
            image.getShape()[i + 2], lists.window[i], lists.strides[i], lists.dilations[i], padding == "SAME_UPPER");
  if (failed(checkWindows(node, image, lists, pools)))
    return failure();
  return lists;
}

LogicalResult Legalizer::checkWindows(NodeContext &node, const Entry &image, WindowLists &lists, bool pools) {
  auto emit = [&] { return emitError(node.op.getLoc()) << node.op.getOpType() << " "; };
  auto spatial = lists.getWindows().inferSpatial(emit, image.getShape());
  if (failed(spatial) || (pools && failed(lists.getWindows().checkInside(emit, image.getShape())))) {
    isInvalid = true;
    return failure();
  }
  lists.spatial = *spatial;
  return success();
}

/// Whether kernels tile the image: the embedding of vision transformers.
static bool isTiling(const train::Windows &windows, int64_t groups) {
  auto isAll = [](llvm::ArrayRef<int64_t> list, int64_t value) {
    return llvm::all_of(list, [&](int64_t each) { return each == value; });
  };
  return groups == 1 && windows.strides == windows.window && isAll(windows.dilations, 1) && isAll(windows.pads, 0);
}

Entry Legalizer::convolvePatches(const Entry &image, const Entry &kernel) {
  int64_t rank = image.getRank(), spatial = rank - 2;
  llvm::ArrayRef<int64_t> window = kernel.getShape().drop_front(2);
  // [n, c, y·h, x·w] -> [n, c, y, h, x, w] -> [n, y, x, c, h, w] · [o, c, h, w] -> [n, y, x, o] -> [n, o, y, x].
  Shape starts(rank, 0), used(image.getShape()), apart(image.getShape().take_front(2)), order{0}, contract,
      kernelContract, back{0, spatial + 1};
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t count = image.getShape()[2 + i] / window[i];
    used[2 + i] = count * window[i];
    apart.append({count, window[i]});
    order.push_back(2 + 2 * i);
    back.push_back(1 + i);
  }
  order.push_back(1);
  for (int64_t i = 0; i < spatial; ++i)
    order.push_back(3 + 2 * i);
  for (int64_t i = 0; i < spatial + 1; ++i) {
    contract.push_back(1 + spatial + i);
    kernelContract.push_back(1 + i);
  }
  Entry result = eval.slice(image, starts, used, Shape(rank, 1));
  if (result.isTensor())
    result = eval.reshape(result, apart);
  if (result.isTensor())
    result = eval.transpose(result, order);
  if (result.isTensor())
    result = matmul(result, kernel, {}, {}, contract, kernelContract);
  return result.isTensor() ? eval.transpose(result, back) : result;
}

LogicalResult Legalizer::checkImageAndKernels(NodeContext &node) {
  if (failed(expectTensors(node, 2)))
    return failure();
  const Entry &x = node.inputs[0], &kernel = node.inputs[1];
  if (x.getRank() < 3 || kernel.getRank() != x.getRank() || !x.isFloat() ||
      kernel.getElementType() != x.getElementType())
    return invalid(node, "needs an image and kernels of the same rank");
  llvm::ArrayRef<int64_t> window = kernel.getShape().drop_front(2);
  if (auto given = node.getInts("kernel_shape"); given && *given != window)
    return invalid(node, "has a kernel_shape that is not that of its kernels");
  return success();
}

LogicalResult Legalizer::checkBias(NodeContext &node, int64_t channels) {
  // PyTorch's exporter gives convolutions without a bias one of zeros. In three dimensions it has a wrong shape.
  if (node.has(2) && node.inputs[2].isFloat() && isAll(node.inputs[2], 0))
    node.inputs[2] = Entry::absent();
  if (node.has(2) &&
      (!node.inputs[2].isTensor() || node.inputs[2].getRank() != 1 || node.inputs[2].getShape()[0] != channels ||
       node.inputs[2].getElementType() != node.inputs[0].getElementType()))
    return invalid(node, "has a bias that does not fit its kernels");
  return success();
}

Entry Legalizer::addBias(NodeContext &node, const Entry &result) {
  if (!result.isTensor() || !node.has(2))
    return result;
  Shape spread(result.getRank() - 1, 1);
  spread[0] = result.getShape()[1];
  return eval.binary(BinaryKind::add, result, eval.reshape(node.inputs[2], spread));
}

LogicalResult Legalizer::legalizeConv(NodeContext &node) {
  if (failed(checkImageAndKernels(node)))
    return failure();
  const Entry &x = node.inputs[0], &kernel = node.inputs[1];
  llvm::ArrayRef<int64_t> window = kernel.getShape().drop_front(2);
  int64_t groups = node.getInt("group", 1), channels = x.getShape()[1], outs = kernel.getShape()[0];
  if (groups < 1 || channels < 1 || outs < 1 || x.getShape()[0] < 1 || channels % groups != 0 || outs % groups != 0 ||
      kernel.getShape()[1] != channels / groups)
    return invalid(node, "has " + llvm::Twine(outs) + " kernels of " + llvm::Twine(kernel.getShape()[1]) +
                             " channels for an image of " + llvm::Twine(channels) + " in " + llvm::Twine(groups) +
                             " groups");
  if (x.getRank() > 5)
    return unsupported("has more than three spatial dims");
  FailureOr<WindowLists> lists = readWindows(node, x, window, /*pools=*/false);
  if (failed(lists) || failed(checkBias(node, outs)))
    return failure();
  Shape shape{x.getShape()[0], outs};
  llvm::append_range(shape, lists->spatial);
  if (failed(checkCount(node, shape)))
    return failure();
  Entry result;
  if (isTiling(lists->getWindows(), groups)) {
    result = convolvePatches(x, kernel);
  } else if (Value image = eval.materialize(x), weight = image ? eval.materialize(kernel) : Value(); weight) {
    result = Entry::of(train::ConvolutionOp::create(builder, eval.getLocation(), image, weight, lists->strides,
                                                    lists->dilations, lists->pads)
                           .getResult());
  }
  return give(node, addBias(node, result));
}

LogicalResult Legalizer::extendPads(NodeContext &node, const Entry &image, WindowLists &lists, bool countsPads) {
  for (size_t i = 0, spatial = lists.window.size(); i < spatial; ++i) {
    int64_t size = image.getShape()[i + 2], low = lists.pads[i], stride = lists.strides[i];
    int64_t room = size + low + lists.pads[i + spatial] - lists.dilations[i] * (lists.window[i] - 1) - 1;
    int64_t last = (room + stride - 1) / stride * stride;
    if (last <= room || last >= size + low)
      continue;
    if (countsPads)
      return unsupported("has ceil_mode and count_include_pad, with windows that reach beyond the pads");
    lists.pads[i + spatial] += last - room;
  }
  return checkWindows(node, image, lists, /*pools=*/true);
}

LogicalResult Legalizer::legalizePool(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  auto window = node.getInts("kernel_shape");
  if (!x.isFloat())
    return unsupported("is applied to integers");
  if (x.getRank() < 3 || x.type.getNumElements() < 1 || !window)
    return invalid(node, "needs an image with elements and a kernel_shape");
  if (x.getRank() > 5)
    return unsupported("has more than three spatial dims");
  bool isMax = node.op.getOpType() == "MaxPool";
  if (leadsToLoss(node, 1))
    return unsupported("gives indices that the loss reads");
  FailureOr<WindowLists> lists = readWindows(node, x, *window, /*pools=*/true);
  if (failed(lists))
    return failure();
  bool countsPads = !isMax && node.getInt("count_include_pad", 0) != 0;
  if (node.getInt("ceil_mode", 0) != 0 && failed(extendPads(node, x, *lists, countsPads)))
    return failure();
  Shape shape(x.getShape().take_front(2));
  llvm::append_range(shape, lists->spatial);
  if (failed(checkCount(node, shape)))
    return failure();
  Value image = eval.materialize(x);
  if (!image)
    return unsupported(eval.takeReason());
  if (isMax)
    return give(node, Entry::of(train::MaxPoolOp::create(builder, eval.getLocation(), image, lists->window,
                                                         lists->strides, lists->dilations, lists->pads)
                                    .getResult()));
  return give(node, Entry::of(train::AveragePoolOp::create(builder, eval.getLocation(), image, lists->window,
                                                           lists->strides, lists->dilations, lists->pads, countsPads)
                                  .getResult()));
}

LogicalResult Legalizer::legalizeGlobalAveragePool(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  if (x.getRank() < 3 || !x.isFloat() || x.type.getNumElements() < 1)
    return invalid(node, "needs an image of floats");
  return give(node, meanKept(x, llvm::to_vector(llvm::seq<int64_t>(2, x.getRank()))));
}

LogicalResult Legalizer::legalizeGlobalMaxPool(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  if (x.getRank() < 3 || !x.isFloat() || x.type.getNumElements() < 1)
    return invalid(node, "needs an image of floats");
  if (x.getRank() > 5)
    return unsupported("has more than three spatial dims");
  FailureOr<WindowLists> lists = readWindows(node, x, x.getShape().drop_front(2), /*pools=*/true);
  Value image = succeeded(lists) ? eval.materialize(x) : Value();
  if (!image)
    return failed(lists) ? failure() : unsupported(eval.takeReason());
  return give(node, Entry::of(train::MaxPoolOp::create(builder, eval.getLocation(), image, lists->window,
                                                       lists->strides, lists->dilations, lists->pads)
                                  .getResult()));
}
