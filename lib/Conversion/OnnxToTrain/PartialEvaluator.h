//===- PartialEvaluator.h - primitives over known and live values -*- C++ -*-===//
//
// Every ONNX operator is legalized into these few primitives. A primitive whose operands are all known, within the
// budgets, is computed; otherwise it emits `train` ops, and known operands are brought into the IR in the most compact
// form that they have.
//
//===----------------------------------------------------------------------===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_PARTIALEVALUATOR_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_PARTIALEVALUATOR_H

#include "Known.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/Support/WorkBudget.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

#include <deque>
#include <map>
#include <string>

namespace windlass {

/// The state of one ONNX value while the graph is walked.
struct Entry {
  enum class Kind {
    /// The value of a producer that cannot be legalized; all values that depend on it are skipped.
    poisoned,
    /// An optional input that is left out.
    absent,
    tensor,
    sequence,
    /// Random numbers, of which the graph may make choices by a constant rate.
    random
  };
  /// What is known of random numbers: they are uniform between `value` and 1 + `value`, or booleans that hold at the
  /// rate `value`.
  struct Draw {
    enum class Stage { uniform, chosen } stage = Stage::uniform;
    double value = 0;
  };
  Kind kind = Kind::poisoned;
  mlir::RankedTensorType type;
  Known known;
  mlir::Value value;
  std::shared_ptr<std::vector<Entry>> sequence;
  Draw draw;

  static Entry absent() {
    Entry entry;
    entry.kind = Kind::absent;
    return entry;
  }
  static Entry random(mlir::RankedTensorType type, Draw draw) {
    Entry entry;
    entry.kind = Kind::random;
    entry.type = type;
    entry.draw = draw;
    return entry;
  }
  static Entry of(Known known) {
    Entry entry;
    entry.kind = Kind::tensor;
    entry.type = known->type;
    entry.known = std::move(known);
    return entry;
  }
  static Entry of(mlir::Value value) {
    Entry entry;
    entry.kind = Kind::tensor;
    entry.type = mlir::cast<mlir::RankedTensorType>(value.getType());
    entry.value = value;
    return entry;
  }
  bool isTensor() const { return kind == Kind::tensor; }
  llvm::ArrayRef<int64_t> getShape() const { return type.getShape(); }
  int64_t getRank() const { return type.getRank(); }
  mlir::Type getElementType() const { return type.getElementType(); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(getElementType()); }
  bool isBoolean() const { return getElementType().isInteger(1); }
};

/// Whether the entry is known and has elements, all of which are `value`.
bool isAll(const Entry &entry, double value);

struct EvaluationBudgets {
  /// The most elements of one known tensor.
  int64_t tensorElements = int64_t(64) << 20;
  /// The most elements of all computed known tensors; each tensor counts `tensorOverhead` more.
  int64_t totalElements = int64_t(256) << 20;
  /// The cost of a tensor besides its elements, in elements.
  int64_t tensorOverhead = 256;
  /// The most elements of a constant that has no compact form.
  int64_t constantElements = int64_t(64) << 10;
};

class PartialEvaluator {
public:
  PartialEvaluator(mlir::OpBuilder &builder, const EvaluationBudgets &budgets)
      : builder(builder), budgets(budgets), work(budgets.totalElements) {}

  /// Sets the location of the ops that are emitted from now on.
  void setLocation(mlir::Location location) { loc = location; }

  // All of these return a poisoned entry, and set the reason, when they cannot be done. Shapes must have been checked
  // by the caller, who knows the operator's name for things.
  Entry unary(UnaryKind kind, const Entry &input);
  Entry binary(BinaryKind kind, const Entry &lhs, const Entry &rhs);
  Entry compare(CompareKind kind, const Entry &lhs, const Entry &rhs);
  Entry select(const Entry &condition, const Entry &lhs, const Entry &rhs);
  Entry cast(const Entry &input, mlir::Type elementType);
  Entry reshape(const Entry &input, llvm::ArrayRef<int64_t> shape);
  Entry transpose(const Entry &input, llvm::ArrayRef<int64_t> permutation);
  Entry broadcast(const Entry &input, llvm::ArrayRef<int64_t> shape);
  Entry slice(const Entry &input, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
              llvm::ArrayRef<int64_t> steps);
  /// Returns `size` elements along `dim`, from `start` on.
  Entry sliceDim(const Entry &input, int64_t dim, int64_t start, int64_t size);
  Entry concat(llvm::ArrayRef<Entry> inputs, int64_t axis);
  Entry pad(const Entry &input, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high, double value);
  /// Gathers along `axis`. Known indices must be in [0, size); live ones may be negative.
  Entry gather(const Entry &input, const Entry &indices, int64_t axis);
  /// Reduces `dims`, which vanish.
  Entry reduce(ReduceKind kind, const Entry &input, llvm::ArrayRef<int64_t> dims);

  /// Returns `value` as a scalar of `elementType`.
  Entry scalar(double value, mlir::Type elementType);
  Entry known(Known tensor) { return Entry::of(std::move(tensor)); }
  /// Whether a known tensor of `elements` elements may be computed; counts them.
  bool mayEvaluate(int64_t elements);

  /// Returns the entry as a value of the function; null, with the reason set, when it cannot be one.
  mlir::Value materialize(const Entry &entry);
  /// Returns the entry's value broadcast to `shape`.
  mlir::Value materialize(const Entry &entry, llvm::ArrayRef<int64_t> shape);

  /// Returns why the last poisoned entry is one.
  std::string takeReason() { return std::move(reason); }
  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLocation() { return *loc; }

private:
  /// Returns the result of a primitive over known operands, looked up or computed; `elements` is what it stores.
  Entry evaluate(llvm::StringRef key, llvm::ArrayRef<int64_t> parameters, llvm::ArrayRef<Entry> operands,
                 int64_t elements, llvm::function_ref<Known()> compute);
  /// The same for one that works element by element and gives a tensor of `shape`.
  Entry evaluateEach(llvm::StringRef key, llvm::ArrayRef<int64_t> parameters, llvm::ArrayRef<Entry> operands,
                     llvm::ArrayRef<int64_t> shape, llvm::function_ref<Known()> compute);
  Entry lookUp(llvm::StringRef key, llvm::ArrayRef<int64_t> parameters, llvm::ArrayRef<Entry> operands,
               int64_t elements, llvm::function_ref<Known()> compute);
  Entry poison(const llvm::Twine &why);
  bool isUsable(mlir::Type elementType);
  mlir::Value spread(const Known &tensor, llvm::ArrayRef<int64_t> shape);
  mlir::Value emitCompact(const Known &tensor);
  mlir::Value emitBand(const Known &mask);
  mlir::Value emitDiagonals(const Known &matrix);
  mlir::Value emitByDifference(const Known &list, llvm::ArrayRef<int64_t> shape);
  mlir::Value emitSplat(mlir::RankedTensorType type, const KnownTensor &tensor);

  mlir::OpBuilder &builder;
  const EvaluationBudgets &budgets;
  std::optional<mlir::Location> loc;
  std::string reason;
  WorkBudget work;

  /// The results by primitive, parameters and operand ids. They are kept because exporters repeat a mask's chain in
  /// every layer; the oldest go when all together exceed the tensor budget.
  std::map<std::pair<std::string, std::vector<int64_t>>, Known> memo;
  std::deque<std::pair<std::map<std::pair<std::string, std::vector<int64_t>>, Known>::iterator, int64_t>> order;
  int64_t memoElements = 0;
  /// The known tensors that are in the IR already, by id: their values without constant dims, and broadcast to a type.
  struct Reduced {
    mlir::Value value;
    Shape dims;
  };
  std::map<int64_t, Reduced> emitted;
  llvm::DenseMap<std::pair<int64_t, mlir::Type>, mlir::Value> emittedAs;
};

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_PARTIALEVALUATOR_H
