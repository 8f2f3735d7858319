// Helpers that the operator families share: checks, factors and costs of common shapes, small builders.
#ifndef WINDLASS_LIB_DIALECT_TRAIN_IR_OPSUPPORT_H
#define WINDLASS_LIB_DIALECT_TRAIN_IR_OPSUPPORT_H

#include "windlass/Dialect/Train/IR/TrainOps.h"

namespace windlass::train {

/// Starts a diagnostic at the checked operator, or at the place where it is being built.
using Emit = llvm::function_ref<mlir::InFlightDiagnostic()>;
using Types = llvm::SmallVector<mlir::Type, 3>;
using Shape = llvm::SmallVector<int64_t>;

inline mlir::RankedTensorType typeOf(mlir::Value value) { return llvm::cast<mlir::RankedTensorType>(value.getType()); }
inline mlir::RankedTensorType makeType(llvm::ArrayRef<int64_t> shape, mlir::Type element) {
  return mlir::RankedTensorType::get(shape, element);
}

/// Returns the element type in which sums over many elements and statistics of rows are kept: f32 for narrower floats.
inline mlir::Type getWideType(mlir::Type element) {
  return llvm::isa<mlir::FloatType>(element) && element.getIntOrFloatBitWidth() < 32
             ? mlir::Float32Type::get(element.getContext())
             : element;
}

/// Returns a list as text, such as "[2, 3]".
std::string toText(llvm::ArrayRef<int64_t> values);

/// Fails unless 0 <= axis < rank.
mlir::LogicalResult checkAxis(Emit emit, int64_t axis, int64_t rank, llvm::StringRef name = "axis");
/// Fails unless `dims` are distinct dims of a tensor of that rank.
mlir::LogicalResult checkDistinctDims(Emit emit, llvm::ArrayRef<int64_t> dims, int64_t rank, llvm::StringRef name);
/// Fails unless `value` has the given shape and element type.
mlir::LogicalResult checkType(Emit emit, mlir::Value value, mlir::RankedTensorType expected, llvm::StringRef name);

/// Fails unless `rows` rows, or experts, are a whole table or as many equal parts of `allRows` as `first` has elements.
mlir::LogicalResult checkTableParts(Emit emit, int64_t rows, mlir::Value first, std::optional<uint64_t> allRows);

/// Implements the two halves of an inferred op by one function `infer(Adaptor, Emit) -> FailureOr<Types>`: type
/// inference, and a verifier that says what is wrong with operands and attributes.
template <class Op, class Infer>
mlir::LogicalResult inferTypes(Infer infer, mlir::MLIRContext *context, std::optional<mlir::Location> location,
                               mlir::ValueRange operands, mlir::DictionaryAttr attributes,
                               mlir::OpaqueProperties properties, mlir::RegionRange regions,
                               llvm::SmallVectorImpl<mlir::Type> &types) {
  typename Op::Adaptor adaptor(operands, attributes, properties, regions);
  mlir::Location place = location.value_or(mlir::UnknownLoc::get(context));
  mlir::FailureOr<Types> result =
      infer(adaptor, [&] { return mlir::emitError(place) << "'" << Op::getOperationName() << "' op "; });
  if (failed(result))
    return mlir::failure();
  types.append(result->begin(), result->end());
  return mlir::success();
}

template <class Op, class Infer> mlir::LogicalResult verifyTypes(Op op, Infer infer) {
  return infer(typename Op::Adaptor(op->getOperands(), op), [&] { return op.emitOpError(); });
}

#define WINDLASS_INFERRED_OP(Op, infer)                                                                                \
  LogicalResult Op::inferReturnTypes(MLIRContext *context, std::optional<Location> location, ValueRange operands,      \
                                     DictionaryAttr attributes, OpaqueProperties properties, RegionRange regions,      \
                                     SmallVectorImpl<Type> &types) {                                                   \
    return inferTypes<Op>(infer, context, location, operands, attributes, properties, regions, types);                 \
  }                                                                                                                    \
  LogicalResult Op::verify() { return verifyTypes(*this, infer); }

/// Appends factors "d0", "d1", ... of `type`'s dims to `factors`; returns the dims' factors.
ValueFactors addDims(OpFactors &factors, mlir::RankedTensorType type, llvm::StringRef prefix = "d",
                     FactorKind kind = FactorKind::Parallel);
/// Returns the factors of an operator whose operands and results have the same dims; scalars have none.
OpFactors getElementwiseFactors(mlir::Operation *op);
/// Returns the cost of reading the operands, writing the results, and `flopsPerElement` per result element.
OpCost getTrafficCost(mlir::Operation *op, double flopsPerElement = 0);
double getBytes(mlir::Type type);
/// Returns `preferred`, or Index where no operand or result is of a float type.
PrecisionClass getClass(mlir::Operation *op, PrecisionClass preferred);

/// Returns a constant of `type` (a tensor type) whose elements are all `value`.
mlir::Value makeSplat(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, double value);
/// Builds operators of one result, one after another, at one place.
struct Maker {
  template <class Op, class... Arguments> mlir::Value make(Arguments &&...arguments) const {
    return Op::create(builder, loc, std::forward<Arguments>(arguments)...)->getResult(0);
  }
  mlir::Value splat(mlir::Type type, double value) const { return makeSplat(builder, loc, type, value); }
  /// Returns `value` broadcast to `shape`; its dims become dims `dims` of the result.
  mlir::Value spread(mlir::Value value, llvm::ArrayRef<int64_t> dims, llvm::ArrayRef<int64_t> shape) const {
    return make<BroadcastOp>(makeType(shape, typeOf(value).getElementType()), value,
                             builder.getDenseI64ArrayAttr(dims));
  }
  mlir::Value reduce(ReductionKind kind, mlir::Value value, llvm::ArrayRef<int64_t> dims) const {
    return make<ReduceOp>(kind, value, builder.getDenseI64ArrayAttr(dims));
  }
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape) const {
    return make<ReshapeOp>(makeType(shape, typeOf(value).getElementType()), value);
  }
  mlir::Value cast(mlir::Value value, mlir::Type element) const {
    return typeOf(value).getElementType() == element ? value : make<CastOp>(typeOf(value).clone(element), value);
  }
  /// Returns the value in the type in which sums and statistics are computed.
  mlir::Value widen(mlir::Value value) const { return cast(value, getWideType(typeOf(value).getElementType())); }
  mlir::Value compare(Predicate predicate, mlir::Value lhs, mlir::Value rhs) const {
    return make<CompareOp>(makeType(typeOf(lhs).getShape(), builder.getI1Type()), predicate, lhs, rhs);
  }
  /// Returns the first row of each of `parts` equal parts of `rows` rows.
  mlir::Value firstOfParts(int64_t rows, int64_t parts) const {
    return make<IotaOp>(makeType({parts}, builder.getI64Type()), 0, llvm::APFloat(0.0),
                        llvm::APFloat(static_cast<double>(rows / parts)));
  }

  mlir::OpBuilder &builder;
  mlir::Location loc;
};

/// The logarithms of sums of exponentials, combined along a dim: the weight of each relative to the greatest, the sum
/// of weights, and the logarithm of the whole sum. Where all are -inf, weights and sum are 0 and the logarithm is -inf.
struct JoinedLogs {
  JoinedLogs(const Maker &maker, mlir::Value logs, int64_t dim);
  mlir::Value weights, sum, log;
};

/// Returns 0, 1, ... `count` - 1.
inline Shape countDims(int64_t count) { return llvm::to_vector(llvm::seq<int64_t>(0, count)); }

/// Returns a transpose, or the value itself where the permutation does nothing.
mlir::Value makeTranspose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                          llvm::ArrayRef<int64_t> permutation);

} // namespace windlass::train

#endif
