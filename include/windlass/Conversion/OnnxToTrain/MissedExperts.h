//===- MissedExperts.h - why gathered matrices became no experts *- C++ -*-===//

#ifndef WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDEXPERTS_H
#define WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDEXPERTS_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

#include <string>

namespace windlass {

/// Returns why `train-recognize-experts` did not make a layer of experts of a product by matrices that are gathered
/// from a parameter that trains, as the end of a sentence about the product. Empty where it is no such product, or the
/// last one of its layer.
std::string explainMissedExperts(train::GatherOp op);

} // namespace windlass

#endif // WINDLASS_CONVERSION_ONNXTOTRAIN_MISSEDEXPERTS_H
