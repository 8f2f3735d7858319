// The mark of operators that compute in f32 where the values of a step are narrower.
#ifndef WINDLASS_DIALECT_TRAIN_IR_FULLPRECISION_H
#define WINDLASS_DIALECT_TRAIN_IR_FULLPRECISION_H

namespace windlass::train {

/// UnitAttr on an operator of the forward pass: it and its adjoint compute in f32, and operators without the mark read
/// its result as a narrow value. `train-lower-precision` takes it away.
constexpr char kFullPrecisionAttr[] = "train.full_precision";

} // namespace windlass::train

#endif
