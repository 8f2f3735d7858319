// The optimizers that `@update` may be built for.
#ifndef WINDLASS_DIALECT_TRAIN_IR_OPTIMIZERS_H
#define WINDLASS_DIALECT_TRAIN_IR_OPTIMIZERS_H

#include "windlass/Dialect/Train/IR/TrainEnums.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <utility>

namespace mlir {
class Operation;
} // namespace mlir

namespace windlass::train {

/// One optimizer. Its step takes the weight, the state, the gradient, the hyperparameters and the factor on the
/// gradient, and returns the new weight, or a direction, and the new state.
struct Optimizer {
  /// As flags, plans and programs name it.
  llvm::StringRef name;
  /// The operator that computes its step; empty where the step is several operators.
  llvm::StringRef step;
  /// What the step keeps for each weight, in PyTorch's words where it has the optimizer.
  llvm::ArrayRef<llvm::StringRef> states;
  llvm::ArrayRef<Hyperparameter> hyperparameters;
  /// Whether the step has an attribute `coupled`.
  bool isCoupled = false;
  /// Whether its step returns a direction. The weight descends along it by the learning rate, times the norm of the
  /// weight over that of the direction where the weight decays, as LAMB is used.
  bool givesDirection = false;
  /// Whether matrices take Muon's step instead, but for those whose rows stand for words.
  bool orthogonalizes = false;
  /// Whether weights take Adafactor's step, whose state is that of `AdafactorStep`.
  bool factorsMoments = false;
};

/// Returns all optimizers; the first is the default.
llvm::ArrayRef<Optimizer> getOptimizers();
/// Returns the optimizer of that name; null where there is none.
const Optimizer *findOptimizer(llvm::StringRef name);

/// The largest factor that a parameter's learning rate or weight decay may have.
constexpr double kMostScale = 1e6;

/// Takes GLOB=X apart, X above 0 and at most `kMostScale`; nothing where the text is something else.
std::optional<std::pair<llvm::StringRef, double>> parseScale(llvm::StringRef text);

/// Whether the operator is the step of an optimizer, or of a moving average of weights.
bool isOptimizerStep(mlir::Operation *op);

/// The most elements of parameters that one command updates together. Its work then takes long compared with a launch,
/// and a measurement of it needs little memory.
constexpr int64_t kMostJoinedElements = int64_t(1) << 22;

} // namespace windlass::train

#endif
