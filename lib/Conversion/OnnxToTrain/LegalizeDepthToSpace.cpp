//===- LegalizeDepthToSpace.cpp - blocks of an image as channels ----------===//

#include "Legalizer.h"

using namespace mlir;
using namespace windlass;

LogicalResult Legalizer::legalizeDepthToSpace(NodeContext &node) {
  if (failed(expectTensors(node, 1)))
    return failure();
  const Entry &x = node.inputs[0];
  bool isDepthToSpace = node.op.getOpType() == "DepthToSpace";
  int64_t block = node.getInt("blocksize", 0);
  if (x.getRank() != 4 || x.type.getNumElements() < 1 || block < 1 || block >= train::Windows::kBound)
    return invalid(node, "needs an image [batch, channels, rows, columns] with elements, and a blocksize");
  int64_t batch = x.getShape()[0], channels = x.getShape()[1], rows = x.getShape()[2], columns = x.getShape()[3];
  if (isDepthToSpace ? channels % (block * block) != 0 : rows % block != 0 || columns % block != 0)
    return invalid(node, "has an image that does not consist of blocks");
  Shape apart, order, whole;
  if (isDepthToSpace) {
    int64_t left = channels / (block * block);
    // A channel's number has the place in the block first, or with CRD last.
    llvm::StringRef mode = node.getString("mode", "DCR");
    if (mode != "DCR" && mode != "CRD")
      return invalid(node, "has a mode that is neither DCR nor CRD");
    bool isFirst = mode == "DCR";
    apart = isFirst ? Shape{batch, block, block, left, rows, columns} : Shape{batch, left, block, block, rows, columns};
    order = isFirst ? Shape{0, 3, 4, 1, 5, 2} : Shape{0, 1, 4, 2, 5, 3};
    whole = {batch, left, rows * block, columns * block};
  } else {
    apart = {batch, channels, rows / block, block, columns / block, block};
    order = {0, 3, 5, 1, 2, 4};
    whole = {batch, channels * block * block, rows / block, columns / block};
  }
  Entry moved = eval.transpose(eval.reshape(x, apart), order);
  return give(node, eval.reshape(moved, whole));
}
