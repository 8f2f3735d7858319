#include "windlass/Dialect/Train/IR/Windows.h"

#include "OpSupport.h"

using namespace mlir;
using namespace windlass::train;

FailureOr<Shape> Windows::inferSpatial(Emit emit, ArrayRef<int64_t> input) const {
  if (input.size() < 3 || input.size() > 5)
    return emit() << "has an operand of sizes " << toText(input)
                  << "; it takes batch, channels and one to three spatial dims";
  size_t spatial = input.size() - 2;
  if (window.size() != spatial || strides.size() != spatial || dilations.size() != spatial ||
      pads.size() != 2 * spatial)
    return emit() << "has window " << toText(window) << ", strides " << toText(strides) << ", dilations "
                  << toText(dilations) << " and pads " << toText(pads) << " for " << spatial
                  << " spatial dims; each needs one entry per dim, and pads need two";
  Shape result;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t low = pads[i], high = pads[i + spatial], size = input[i + 2];
    if (llvm::any_of(ArrayRef<int64_t>{window[i], strides[i], dilations[i]},
                     [](int64_t value) { return value < 1 || value >= kBound; }) ||
        llvm::any_of(ArrayRef<int64_t>{low, high}, [](int64_t value) { return value < 0 || value >= kBound; }) ||
        size < 1 || size >= kBound)
      return emit() << "has along spatial dim " << i << " of " << size << " elements a window of " << window[i]
                    << " with stride " << strides[i] << ", dilation " << dilations[i] << " and pads " << low << " and "
                    << high << "; pads are at least 0, the others at least 1, and all below 2^31";
    int64_t span = dilations[i] * (window[i] - 1) + 1;
    if (size + low + high < span)
      return emit() << "has along spatial dim " << i << " a window that spans " << span << " elements, but only "
                    << size + low + high << " with the pads";
    result.push_back((size + low + high - span) / strides[i] + 1);
  }
  return result;
}

LogicalResult Windows::checkInside(Emit emit, ArrayRef<int64_t> input) const {
  for (size_t i = 0; i < window.size(); ++i) {
    int64_t size = input[i + 2], low = pads[i], span = dilations[i] * (window[i] - 1) + 1;
    int64_t last = (size + low + pads[i + window.size()] - span) / strides[i] * strides[i] - low;
    // A window that begins before the input steps over it only where its steps are longer than the input.
    if (low >= span || last >= size || (low > 0 && dilations[i] > size))
      return emit() << "has along spatial dim " << i << " of " << size << " elements windows that span " << span
                    << " with dilation " << dilations[i] << ", the first from " << -low << " and the last from " << last
                    << "; one may have no element inside";
  }
  return success();
}
