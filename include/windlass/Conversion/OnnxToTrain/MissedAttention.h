//===- MissedAttention.h - why a softmax became no attention ----*- C++ -*-===//

#ifndef WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDATTENTION_H
#define WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDATTENTION_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include <string>

namespace windlass {

/// Returns why a softmax between two products of activations is no attention, as the end of a sentence about it: what
/// does not match that `train-recognize-attention` looks for. Empty where the softmax is not between two products.
std::string explainMissedAttention(train::SoftmaxOp op);

} // namespace windlass

#endif // WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDATTENTION_H
