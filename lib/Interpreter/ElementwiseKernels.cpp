// Element-wise operators: loops over the scalar functions that host and device code use too.
#include "KernelCall.h"

#include "windlass/Dialect/Train/IR/TrainEnums.h"
#include "windlass/rt/scalar.h"

#include <limits>
#include <type_traits>

using namespace windlass::interpreter;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using llvm::StringRef;

namespace {

/// Integers wrap, so that no input makes the interpreter undefined.
template <class T> T wrap(std::make_unsigned_t<T> value) { return static_cast<T>(value); }

#define WINDLASS_SCALAR(NAME, FUNCTION)                                                                                \
  struct NAME {                                                                                                        \
    template <class... T> static auto apply(T... x) { return windlass::scalar::FUNCTION(x...); }                       \
  };
WINDLASS_SCALAR(Pow, pow)
WINDLASS_SCALAR(Max, max)
WINDLASS_SCALAR(Min, min)
WINDLASS_SCALAR(LogicalAnd, logical_and)
WINDLASS_SCALAR(LogicalOr, logical_or)
WINDLASS_SCALAR(LogicalNot, logical_not)
WINDLASS_SCALAR(IsNan, is_nan)
WINDLASS_SCALAR(Equal, equal)
WINDLASS_SCALAR(NotEqual, not_equal)
WINDLASS_SCALAR(Less, less)
WINDLASS_SCALAR(LessEqual, less_equal)
WINDLASS_SCALAR(Greater, greater)
WINDLASS_SCALAR(GreaterEqual, greater_equal)
#define WINDLASS_REAL_FUNCTION(Class, name, ...) WINDLASS_SCALAR(Class, name)
#include "windlass/Dialect/Train/IR/RealFunctions.def"
#define WINDLASS_ACTIVATION(Class, name, ...) WINDLASS_SCALAR(Class##Grad, name##_grad)
#include "windlass/Dialect/Train/IR/RealFunctions.def"
#undef WINDLASS_SCALAR

#define WINDLASS_WRAPPING(NAME, FUNCTION, OPERATOR)                                                                    \
  struct NAME {                                                                                                        \
    template <class T> static T apply(T a, T b) {                                                                      \
      if constexpr (std::is_integral_v<T>)                                                                             \
        return wrap<T>(std::make_unsigned_t<T>(a) OPERATOR std::make_unsigned_t<T>(b));                                \
      else                                                                                                             \
        return windlass::scalar::FUNCTION(a, b);                                                                       \
    }                                                                                                                  \
  };
WINDLASS_WRAPPING(Add, add, +)
WINDLASS_WRAPPING(Sub, sub, -)
WINDLASS_WRAPPING(Mul, mul, *)
#undef WINDLASS_WRAPPING

struct Div {
  template <class T> static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return b == 0 ? T(0) : b == -1 ? Sub::apply(T(0), a) : a / b;
    else
      return windlass::scalar::div(a, b);
  }
};
struct Neg {
  template <class T> static T apply(T a) {
    if constexpr (std::is_integral_v<T>)
      return Sub::apply(T(0), a);
    else
      return windlass::scalar::neg(a);
  }
};
struct Abs {
  template <class T> static T apply(T a) {
    if constexpr (std::is_integral_v<T>)
      return a < 0 ? Neg::apply(a) : a;
    else
      return windlass::scalar::abs(a);
  }
};

/// The element types that a function has.
enum class Domain { Floats, Numbers, Booleans, All };

template <class T> constexpr bool isIn(Domain domain) {
  bool boolean = std::is_same_v<T, bool>;
  switch (domain) {
  case Domain::Floats:
    return std::is_floating_point_v<T>;
  case Domain::Numbers:
    return !boolean;
  case Domain::Booleans:
    return boolean;
  case Domain::All:
    return true;
  }
  return false;
}

template <class R> bool requireResult(KernelCall &call) {
  return call.require(call.results[0].getKind() == kKindOf<R>, "the result has another element type than the function");
}

template <class Function, size_t arity, Domain domain> void apply(KernelCall &call) {
  if (!call.requireCounts(arity, 1))
    return;
  Tensor &result = call.results.front();
  ElementKind kind = call.inputs.front().getKind();
  for (const Tensor &input : call.inputs)
    if (!call.requireShape(input, result.getShape(), "an operand") ||
        !call.require(input.getKind() == kind, "operands differ in their element type"))
      return;
  dispatch(kind, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (isIn<T>(domain)) {
      ArrayRef<T> a = call.inputs[0].values<T>();
      if constexpr (arity == 1) {
        using R = decltype(Function::apply(T()));
        if (requireResult<R>(call))
          for (auto [out, x] : llvm::zip_equal(result.mutableValues<R>(), a))
            out = Function::apply(x);
      } else {
        using R = decltype(Function::apply(T(), T()));
        ArrayRef<T> b = call.inputs[1].values<T>();
        if (requireResult<R>(call))
          for (auto [out, x, y] : llvm::zip_equal(result.mutableValues<R>(), a, b))
            out = Function::apply(x, y);
      }
    } else {
      call.require(false, "is not defined for " + nameOf(kind));
    }
  });
}

void compare(KernelCall &call) {
  int64_t predicate = call.integer("predicate");
  if (call.isBad())
    return;
  switch (static_cast<windlass::train::Predicate>(predicate)) {
  case windlass::train::Predicate::equal:
    return apply<Equal, 2, Domain::All>(call);
  case windlass::train::Predicate::not_equal:
    return apply<NotEqual, 2, Domain::All>(call);
  case windlass::train::Predicate::less:
    return apply<Less, 2, Domain::All>(call);
  case windlass::train::Predicate::less_equal:
    return apply<LessEqual, 2, Domain::All>(call);
  case windlass::train::Predicate::greater:
    return apply<Greater, 2, Domain::All>(call);
  case windlass::train::Predicate::greater_equal:
    return apply<GreaterEqual, 2, Domain::All>(call);
  }
  call.require(false, "knows no such predicate");
}

void select(KernelCall &call) {
  if (!call.requireCounts(3, 1))
    return;
  Tensor &result = call.results.front();
  for (const Tensor &input : call.inputs)
    if (!call.requireShape(input, result.getShape(), "an operand"))
      return;
  if (!call.require(call.inputs[0].getKind() == ElementKind::boolean && call.inputs[1].getKind() == result.getKind() &&
                        call.inputs[2].getKind() == result.getKind(),
                    "operands differ in their element type"))
    return;
  ArrayRef<bool> condition = call.inputs[0].values<bool>();
  dispatch(result.getKind(), [&](auto zero) {
    using T = decltype(zero);
    ArrayRef<T> lhs = call.inputs[1].values<T>(), rhs = call.inputs[2].values<T>();
    MutableArrayRef<T> out = result.mutableValues<T>();
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = windlass::scalar::select(condition[i], lhs[i], rhs[i]);
  });
}

void cast(KernelCall &call) {
  if (call.requireCounts(1, 1) && call.requireShape(call.inputs[0], call.results[0].getShape(), "the operand"))
    call.results[0] = call.inputs[0].cast(call.results[0].getKind());
}

void accumulate(KernelCall &call) {
  if (!call.require(!call.inputs.empty() && call.results.size() == 1, "needs an operand and one result"))
    return;
  ElementKind kind = call.floats();
  for (const Tensor &input : call.inputs)
    if (!call.requireShape(input, call.results[0].getShape(), "an operand") ||
        !call.require(input.getKind() == kind, "operands differ in their element type"))
      return;
  call.results[0] = call.inputs[0];
  dispatchFloat(kind, [&](auto zero) {
    using T = decltype(zero);
    MutableArrayRef<T> out = call.results[0].mutableValues<T>();
    for (const Tensor &input : call.inputs.drop_front())
      for (auto [sum, value] : llvm::zip_equal(out, input.values<T>()))
        sum = windlass::scalar::add(sum, value);
  });
}

} // namespace

void windlass::interpreter::addElementwiseKernels(KernelTable &table) {
  table["train.add"] = apply<Add, 2, Domain::Numbers>;
  table["train.sub"] = apply<Sub, 2, Domain::Numbers>;
  table["train.mul"] = apply<Mul, 2, Domain::Numbers>;
  table["train.div"] = apply<Div, 2, Domain::Numbers>;
  table["train.pow"] = apply<Pow, 2, Domain::Floats>;
  table["train.max"] = apply<Max, 2, Domain::Numbers>;
  table["train.min"] = apply<Min, 2, Domain::Numbers>;
  table["train.and"] = apply<LogicalAnd, 2, Domain::Booleans>;
  table["train.or"] = apply<LogicalOr, 2, Domain::Booleans>;
  table["train.not"] = apply<LogicalNot, 1, Domain::Booleans>;
  table["train.neg"] = apply<Neg, 1, Domain::Numbers>;
  table["train.abs"] = apply<Abs, 1, Domain::Numbers>;
  table["train.is_nan"] = apply<IsNan, 1, Domain::Floats>;
#define WINDLASS_REAL_FUNCTION(Class, name, ...) table["train." #name] = apply<Class, 1, Domain::Floats>;
#include "windlass/Dialect/Train/IR/RealFunctions.def"
#define WINDLASS_ACTIVATION(Class, name, ...) table["train." #name "_grad"] = apply<Class##Grad, 2, Domain::Floats>;
#include "windlass/Dialect/Train/IR/RealFunctions.def"
  table["train.compare"] = compare;
  table["train.select"] = select;
  table["train.cast"] = cast;
  table["train.accumulate"] = accumulate;
}
