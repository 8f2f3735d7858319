//===- MissedAttention.h - why a softmax became no attention ----*- C++ -*-===//

#ifndef WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDATTENTION_H
#define WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDATTENTION_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include <string>

namespace windlass {

/// Returns why `train-recognize-attention` did not make an attention of a softmax between two products of activations:
/// the first thing that does not match, as the end of a sentence about the softmax. Empty where it is not between two.
std::string explainMissedAttention(train::SoftmaxOp op);

} // namespace windlass

#endif // WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDATTENTION_H
