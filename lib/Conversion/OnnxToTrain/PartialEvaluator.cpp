//===- PartialEvaluator.cpp - primitives over known and live values -------===//

#include "PartialEvaluator.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

/// Returns how many elements are stored for a view of `entry` of `count` elements.
static int64_t countStored(const Entry &entry, int64_t count) {
  return mayBeView(entry.getElementType(), count) ? 0 : count;
}

/// The same where the elements may be moved.
static int64_t countMoved(const Entry &entry, int64_t count) {
  bool isView = entry.known && entry.known->getSource();
  return isView ? countStored(entry, count) + entry.known->getSource()->getSize() : count;
}

Entry PartialEvaluator::poison(const llvm::Twine &why) {
  reason = why.str();
  return {};
}

bool PartialEvaluator::mayEvaluate(int64_t elements) {
  return elements <= budgets.tensorElements && work.spend(elements + budgets.tensorOverhead);
}

bool PartialEvaluator::isUsable(Type elementType) {
  if (elementType.isF32() || elementType.isF64() || elementType.isBF16() || elementType.isF16() ||
      elementType.isSignlessInteger(64) || elementType.isSignlessInteger(32) || elementType.isSignlessInteger(1))
    return true;
  std::string text;
  llvm::raw_string_ostream(text) << "computes on elements of type " << elementType;
  reason = text;
  return false;
}

Entry PartialEvaluator::evaluate(llvm::StringRef key, llvm::ArrayRef<int64_t> parameters,
                                 llvm::ArrayRef<Entry> operands, int64_t elements,
                                 llvm::function_ref<Known()> compute) {
  for (const Entry &operand : operands)
    if (operand.known && operand.known->getSource())
      elements += operand.known->getSize(); // it is stored then
  return lookUp(key, parameters, operands, elements, compute);
}

Entry PartialEvaluator::evaluateEach(llvm::StringRef key, llvm::ArrayRef<int64_t> parameters,
                                     llvm::ArrayRef<Entry> operands, llvm::ArrayRef<int64_t> shape,
                                     llvm::function_ref<Known()> compute) {
  llvm::SmallVector<Known> tensors;
  for (const Entry &operand : operands) {
    if (!operand.known)
      return {};
    tensors.push_back(operand.known);
  }
  bool isBand = key == "compare" && areRanges(*tensors[0], *tensors[1]);
  int64_t elements = isBand ? shape[shape.size() - 2] + shape.back() : countComputed(tensors, shape);
  return lookUp(key, parameters, operands, elements, compute);
}

Entry PartialEvaluator::lookUp(llvm::StringRef key, llvm::ArrayRef<int64_t> parameters, llvm::ArrayRef<Entry> operands,
                               int64_t elements, llvm::function_ref<Known()> compute) {
  for (const Entry &operand : operands)
    if (!operand.known)
      return {};
  std::vector<int64_t> ids(parameters.begin(), parameters.end());
  for (const Entry &operand : operands)
    ids.push_back(operand.known->id);
  auto found = memo.find({key.str(), ids});
  if (found != memo.end())
    return Entry::of(found->second);
  if (!mayEvaluate(elements))
    return {};
  Known result = compute();
  auto at = memo.emplace(std::pair(key.str(), std::move(ids)), result).first;
  order.emplace_back(at, elements);
  memoElements += elements;
  while (memoElements > budgets.tensorElements && order.size() > 1) {
    memoElements -= order.front().second;
    memo.erase(order.front().first);
    order.pop_front();
  }
  return Entry::of(std::move(result));
}

Entry PartialEvaluator::scalar(double value, Type elementType) {
  return Entry::of(makeKnownSplat(RankedTensorType::get({}, elementType), roundReal(value, elementType)));
}

bool windlass::isAll(const Entry &entry, double value) {
  return entry.known && entry.known->getSize() > 0 && entry.known->isSplat() && entry.known->getReal(0) == value;
}

Entry PartialEvaluator::unary(UnaryKind kind, const Entry &input) {
  if (!input.isTensor())
    return {};
  if (Entry done = evaluateEach("unary", {int64_t(kind)}, input, input.getShape(),
                                [&] { return knownUnary(kind, input.known); });
      done.isTensor())
    return done;
  if (!isUsable(input.getElementType()))
    return {};
  // Signs of integers are those of floats, which round none of them to zero.
  if (kind == UnaryKind::sign && !input.isFloat())
    return cast(unary(kind, cast(input, builder.getF32Type())), input.getElementType());
  Value x = materialize(input);
  if (!x)
    return {};
  Type type = input.type;
  auto boolean = RankedTensorType::get(input.getShape(), builder.getI1Type());
  switch (kind) {
  case UnaryKind::neg:
    return Entry::of(train::NegOp::create(builder, *loc, type, x).getResult());
  case UnaryKind::abs:
    return Entry::of(train::AbsOp::create(builder, *loc, type, x).getResult());
#define WINDLASS_REAL_FUNCTION(Class, name, ...)                                                                       \
  case UnaryKind::name:                                                                                                \
    return Entry::of(train::Class##Op::create(builder, *loc, type, x).getResult());
#include "windlass/Dialect/Train/IR/RealFunctions.def"
  case UnaryKind::logicalNot:
    return Entry::of(train::NotOp::create(builder, *loc, type, x).getResult());
  case UnaryKind::isNan:
    return Entry::of(train::IsNanOp::create(builder, *loc, boolean, x).getResult());
  }
  llvm_unreachable("unknown operator");
}

/// Whether `entry`, the right operand or the left one, changes nothing: x + 0, x * 1, x / 1, true and x. Exporters
/// leave such elements in.
static bool isNeutral(BinaryKind kind, const Entry &entry, bool isRight) {
  switch (kind) {
  case BinaryKind::add:
    return isAll(entry, 0);
  case BinaryKind::sub:
    return isRight && isAll(entry, 0);
  case BinaryKind::mul:
    return isAll(entry, 1);
  case BinaryKind::div:
  case BinaryKind::pow:
    return isRight && isAll(entry, 1);
  case BinaryKind::bitAnd:
    return entry.isBoolean() && isAll(entry, 1);
  case BinaryKind::bitOr:
    return entry.isBoolean() && isAll(entry, 0);
  default:
    return false;
  }
}

/// Returns the `train` operator of `kind` on values of one type; null where there is none on elements of that type.
static Value createBinary(OpBuilder &builder, Location loc, BinaryKind kind, Value a, Value b) {
  auto type = cast<RankedTensorType>(a.getType());
  bool isBoolean = type.getElementType().isInteger(1);
  auto create = [&](auto op, bool isDefined) -> Value {
    return isDefined ? decltype(op)::create(builder, loc, type, a, b).getResult() : Value();
  };
  switch (kind) {
  case BinaryKind::add:
    return create(train::AddOp(), !isBoolean);
  case BinaryKind::sub:
    return create(train::SubOp(), !isBoolean);
  case BinaryKind::mul:
    return create(train::MulOp(), !isBoolean);
  case BinaryKind::div:
    return create(train::DivOp(), !isBoolean);
  case BinaryKind::pow:
    return create(train::PowOp(), isa<FloatType>(type.getElementType()));
  case BinaryKind::max:
    return create(train::MaxOp(), true);
  case BinaryKind::min:
    return create(train::MinOp(), true);
  case BinaryKind::bitAnd:
    return create(train::AndOp(), isBoolean);
  case BinaryKind::bitOr:
    return create(train::OrOp(), isBoolean);
  default:
    return {};
  }
}

Entry PartialEvaluator::binary(BinaryKind kind, const Entry &lhs, const Entry &rhs) {
  if (!lhs.isTensor() || !rhs.isTensor())
    return {};
  FailureOr<Shape> shape = broadcastShapes(lhs.getShape(), rhs.getShape());
  if (failed(shape))
    return poison("has operands whose shapes do not broadcast");
  if (lhs.getElementType() != rhs.getElementType())
    return poison("has operands of different element types");
  if (Entry done = evaluateEach("binary", {int64_t(kind)}, {lhs, rhs}, *shape,
                                [&] { return knownBinary(kind, lhs.known, rhs.known, *shape); });
      done.isTensor())
    return done;
  if (isNeutral(kind, rhs, true) && lhs.getShape() == llvm::ArrayRef<int64_t>(*shape))
    return lhs;
  if (isNeutral(kind, lhs, false) && rhs.getShape() == llvm::ArrayRef<int64_t>(*shape))
    return rhs;
  if (!isUsable(lhs.getElementType()))
    return {};
  if (kind == BinaryKind::pow && lhs.isFloat() && isAll(rhs, 2)) {
    Value x = materialize(lhs, *shape);
    return x ? Entry::of(train::MulOp::create(builder, *loc, x.getType(), x, x).getResult()) : Entry();
  }
  if (kind == BinaryKind::pow && lhs.isFloat() && isAll(rhs, 0.5))
    return unary(UnaryKind::sqrt, broadcast(lhs, *shape));
  Value a = materialize(lhs, *shape), b = a ? materialize(rhs, *shape) : Value();
  if (!b)
    return {};
  if (Value result = createBinary(builder, *loc, kind, a, b))
    return Entry::of(result);
  return poison("is computed on values that depend on an input");
}

Entry PartialEvaluator::compare(CompareKind kind, const Entry &lhs, const Entry &rhs) {
  if (!lhs.isTensor() || !rhs.isTensor())
    return {};
  FailureOr<Shape> shape = broadcastShapes(lhs.getShape(), rhs.getShape());
  if (failed(shape))
    return poison("has operands whose shapes do not broadcast");
  if (lhs.getElementType() != rhs.getElementType())
    return poison("has operands of different element types");
  if (Entry done = evaluateEach("compare", {int64_t(kind)}, {lhs, rhs}, *shape,
                                [&] { return knownCompare(kind, lhs.known, rhs.known, *shape); });
      done.isTensor())
    return done;
  if (!isUsable(lhs.getElementType()))
    return {};
  Value a = materialize(lhs, *shape), b = a ? materialize(rhs, *shape) : Value();
  if (!b)
    return {};
  static const train::Predicate predicates[] = {train::Predicate::equal,   train::Predicate::not_equal,
                                                train::Predicate::less,    train::Predicate::less_equal,
                                                train::Predicate::greater, train::Predicate::greater_equal};
  auto type = RankedTensorType::get(*shape, builder.getI1Type());
  return Entry::of(train::CompareOp::create(builder, *loc, type, predicates[int(kind)], a, b).getResult());
}

Entry PartialEvaluator::select(const Entry &condition, const Entry &lhs, const Entry &rhs) {
  if (!condition.isTensor() || !lhs.isTensor() || !rhs.isTensor())
    return {};
  FailureOr<Shape> branches = broadcastShapes(lhs.getShape(), rhs.getShape());
  FailureOr<Shape> shape =
      failed(branches) ? FailureOr<Shape>(failure()) : broadcastShapes(condition.getShape(), *branches);
  if (failed(shape))
    return poison("has operands whose shapes do not broadcast");
  if (lhs.getElementType() != rhs.getElementType() || !condition.isBoolean())
    return poison("has operands of different element types");
  if (Entry done = evaluateEach("select", {}, {condition, lhs, rhs}, *shape,
                                [&] { return knownSelect(condition.known, lhs.known, rhs.known, *shape); });
      done.isTensor())
    return done;
  if (isAll(condition, 1) || isAll(condition, 0))
    return broadcast(isAll(condition, 1) ? lhs : rhs, *shape);
  if (!isUsable(lhs.getElementType()))
    return {};
  Value c = materialize(condition, *shape), a = c ? materialize(lhs, *shape) : Value(),
        b = a ? materialize(rhs, *shape) : Value();
  if (!b)
    return {};
  return Entry::of(train::SelectOp::create(builder, *loc, a.getType(), c, a, b).getResult());
}

Entry PartialEvaluator::cast(const Entry &input, Type elementType) {
  if (!input.isTensor())
    return {};
  if (input.getElementType() == elementType)
    return input;
  int64_t code = static_cast<int64_t>(reinterpret_cast<intptr_t>(elementType.getAsOpaquePointer()));
  if (Entry done =
          evaluateEach("cast", {code}, input, input.getShape(), [&] { return knownCast(input.known, elementType); });
      done.isTensor())
    return done;
  if (!isUsable(input.getElementType()) || !isUsable(elementType))
    return {};
  Value x = materialize(input);
  if (!x)
    return {};
  return Entry::of(
      train::CastOp::create(builder, *loc, RankedTensorType::get(input.getShape(), elementType), x).getResult());
}

Entry PartialEvaluator::reshape(const Entry &input, llvm::ArrayRef<int64_t> shape) {
  if (!input.isTensor())
    return {};
  if (input.getShape() == shape)
    return input;
  // The result shares the values, so nothing is counted but what was not stored.
  bool isStored = input.known && (!input.known->getSource() || keepsView(*input.known, shape));
  if (Entry done = lookUp("reshape", shape, input, isStored ? 0 : countSaturated(shape),
                          [&] { return knownReshape(input.known, shape); });
      done.isTensor())
    return done;
  if (!isUsable(input.getElementType()))
    return {};
  return Entry::of(
      train::ReshapeOp::create(builder, *loc, RankedTensorType::get(shape, input.getElementType()), materialize(input))
          .getResult());
}

Entry PartialEvaluator::transpose(const Entry &input, llvm::ArrayRef<int64_t> permutation) {
  if (!input.isTensor())
    return {};
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, input.getRank())))
    return input;
  if (Entry done = lookUp("transpose", permutation, input, countMoved(input, countSaturated(input.getShape())),
                          [&] { return knownTranspose(input.known, permutation); });
      done.isTensor())
    return done;
  if (!isUsable(input.getElementType()))
    return {};
  Value x = materialize(input);
  if (!x)
    return {};
  Shape shape;
  for (int64_t dim : permutation)
    shape.push_back(input.getShape()[dim]);
  return Entry::of(
      train::TransposeOp::create(builder, *loc, RankedTensorType::get(shape, input.getElementType()), x, permutation)
          .getResult());
}

Entry PartialEvaluator::broadcast(const Entry &input, llvm::ArrayRef<int64_t> shape) {
  if (!input.isTensor())
    return {};
  if (input.getShape() == shape)
    return input;
  if (Entry done = lookUp("broadcast", shape, input, countStored(input, countSaturated(shape)),
                          [&] { return knownBroadcast(input.known, shape); });
      done.isTensor())
    return done;
  if (!isUsable(input.getElementType()))
    return {};
  Value value = materialize(input, shape);
  return value ? Entry::of(value) : Entry();
}

Entry PartialEvaluator::slice(const Entry &input, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                              llvm::ArrayRef<int64_t> steps) {
  if (!input.isTensor())
    return {};
  bool isUnit = llvm::all_of(steps, [](int64_t step) { return step == 1; });
  if (isUnit && input.getShape() == sizes)
    return input;
  Shape parameters(starts);
  llvm::append_range(parameters, sizes);
  llvm::append_range(parameters, steps);
  if (Entry done = lookUp("slice", parameters, input, countMoved(input, countSaturated(sizes)),
                          [&] { return knownSlice(input.known, starts, sizes, steps); });
      done.isTensor())
    return done;
  if (!isUsable(input.getElementType()))
    return {};
  if (!isUnit) {
    // Dims with another step are gathered, the others sliced.
    Entry result = input;
    for (int64_t dim = 0; dim < input.getRank() && result.isTensor(); ++dim) {
      if (steps[dim] == 1)
        continue;
      Shape indices;
      for (int64_t i = 0; i < sizes[dim]; ++i)
        indices.push_back(starts[dim] + i * steps[dim]);
      result = gather(result, Entry::of(makeKnownIntegers(builder.getContext(), indices)), dim);
    }
    if (!result.isTensor())
      return result;
    Shape newStarts(starts), ones(steps.size(), 1);
    for (auto [start, step] : llvm::zip_equal(newStarts, steps))
      if (step != 1)
        start = 0;
    return slice(result, newStarts, sizes, ones);
  }
  // A tensor without elements is known; what is done with it is mostly to join others.
  if (llvm::is_contained(sizes, 0))
    return Entry::of(makeKnown(RankedTensorType::get(sizes, input.getElementType()), [](KnownStorage &) {}));
  Value x = materialize(input);
  if (!x)
    return {};
  return Entry::of(
      train::SliceOp::create(builder, *loc, RankedTensorType::get(sizes, input.getElementType()), x, starts, sizes)
          .getResult());
}

Entry PartialEvaluator::sliceDim(const Entry &input, int64_t dim, int64_t start, int64_t size) {
  if (!input.isTensor())
    return {};
  Shape starts(input.getRank(), 0), sizes(input.getShape());
  starts[dim] = start;
  sizes[dim] = size;
  return slice(input, starts, sizes, Shape(input.getRank(), 1));
}

Entry PartialEvaluator::concat(llvm::ArrayRef<Entry> inputs, int64_t axis) {
  if (inputs.size() == 1)
    return inputs[0];
  Shape shape(inputs[0].getShape());
  shape[axis] = 0;
  for (const Entry &input : inputs)
    shape[axis] += input.getShape()[axis];
  auto compute = [&] {
    llvm::SmallVector<Known> tensors;
    for (const Entry &input : inputs)
      tensors.push_back(input.known);
    return knownConcat(tensors, axis);
  };
  if (Entry done = evaluate("concat", {axis}, inputs, countSaturated(shape), compute); done.isTensor())
    return done;
  if (!isUsable(inputs[0].getElementType()))
    return {};
  llvm::SmallVector<Value> values;
  for (const Entry &input : inputs) {
    if (input.getShape()[axis] == 0)
      continue;
    values.push_back(materialize(input));
    if (!values.back())
      return {};
  }
  if (values.size() == 1)
    return Entry::of(values[0]);
  auto type = RankedTensorType::get(shape, inputs[0].getElementType());
  return Entry::of(train::ConcatOp::create(builder, *loc, type, values, axis).getResult());
}

Entry PartialEvaluator::pad(const Entry &input, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
                            double value) {
  if (!input.isTensor())
    return {};
  Shape shape(input.getShape());
  for (auto [dim, before, after] : llvm::zip_equal(shape, low, high))
    dim += before + after;
  if (input.getShape() == llvm::ArrayRef<int64_t>(shape))
    return input;
  if (input.known && mayEvaluate(countSaturated(shape)))
    return Entry::of(knownPad(input.known, low, high, value));
  if (!isUsable(input.getElementType()))
    return {};
  Value x = materialize(input);
  if (!x)
    return {};
  return Entry::of(train::PadOp::create(builder, *loc, RankedTensorType::get(shape, input.getElementType()), x, low,
                                        high, llvm::APFloat(value))
                       .getResult());
}

Entry PartialEvaluator::gather(const Entry &input, const Entry &indices, int64_t axis) {
  if (!input.isTensor() || !indices.isTensor())
    return {};
  Shape shape(input.getShape().take_front(axis));
  llvm::append_range(shape, indices.getShape());
  llvm::append_range(shape, input.getShape().drop_front(axis + 1));
  if (Entry done = evaluate("gather", {axis}, {input, indices}, countSaturated(shape),
                            [&] { return knownGather(input.known, indices.known, axis); });
      done.isTensor())
    return done;
  if (!isUsable(input.getElementType()))
    return {};
  // Consecutive indices make a slice, such as positions or one part of a tensor.
  if (indices.known && indices.known->getSize() > 0) {
    const std::vector<int64_t> &list = indices.known->getStorage().integers;
    bool isRun = true;
    for (size_t i = 1; i < list.size() && isRun; ++i)
      isRun = list[i] == list[0] + static_cast<int64_t>(i);
    if (isRun) {
      Shape starts(input.getRank(), 0), sizes(input.getShape()), ones(input.getRank(), 1);
      starts[axis] = list[0];
      sizes[axis] = static_cast<int64_t>(list.size());
      return reshape(slice(input, starts, sizes, ones), shape);
    }
  }
  Value x = materialize(input), at = x ? materialize(indices) : Value();
  if (!at)
    return {};
  auto type = RankedTensorType::get(shape, input.getElementType());
  if (axis == 0 && input.getRank() == 2 && input.isFloat())
    return Entry::of(train::EmbeddingOp::create(builder, *loc, type, x, at, Value(), IntegerAttr()).getResult());
  return Entry::of(train::GatherOp::create(builder, *loc, type, x, at, axis).getResult());
}

Entry PartialEvaluator::reduce(ReduceKind kind, const Entry &input, llvm::ArrayRef<int64_t> dims) {
  if (!input.isTensor())
    return {};
  if (dims.empty())
    return input;
  if (input.isBoolean())
    return poison("reduces booleans");
  Shape parameters(dims);
  parameters.push_back(int64_t(kind));
  if (Entry done = evaluate("reduce", parameters, input, countSaturated(input.getShape()),
                            [&] { return knownReduce(kind, input.known, dims); });
      done.isTensor())
    return done;
  if (!isUsable(input.getElementType()))
    return {};
  Value x = materialize(input);
  if (!x)
    return {};
  Shape shape;
  for (int64_t i = 0; i < input.getRank(); ++i)
    if (!llvm::is_contained(dims, i))
      shape.push_back(input.getShape()[i]);
  static const train::ReductionKind kinds[] = {train::ReductionKind::sum, train::ReductionKind::max,
                                               train::ReductionKind::min};
  auto type = RankedTensorType::get(shape, input.getElementType());
  return Entry::of(train::ReduceOp::create(builder, *loc, type, kinds[int(kind)], x, dims).getResult());
}
