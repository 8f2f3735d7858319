//===- KnownArithmetic.cpp - element-wise and reducing functions ----------===//

#include "Known.h"

#include "windlass/rt/scalar.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

using namespace mlir;
using namespace windlass;

/// Applies integer arithmetic, which wraps, as in the runtime that these graphs were written for.
static int64_t applyInteger(BinaryKind kind, int64_t a, int64_t b) {
  auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (kind) {
  case BinaryKind::add:
    return static_cast<int64_t>(ua + ub);
  case BinaryKind::sub:
    return static_cast<int64_t>(ua - ub);
  case BinaryKind::mul:
    return static_cast<int64_t>(ua * ub);
  case BinaryKind::div: // Division by zero is 0 here and in train.div; the one overflow wraps.
    return b == 0 ? 0 : b == -1 ? static_cast<int64_t>(0 - ua) : a / b;
  case BinaryKind::mod: {
    if (b == 0 || b == -1)
      return 0;
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  case BinaryKind::pow: {
    if (b < 0)
      return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
    uint64_t result = 1;
    for (; ub != 0; ub >>= 1, ua *= ua)
      if (ub & 1)
        result *= ua;
    return static_cast<int64_t>(result);
  }
  case BinaryKind::max:
    return std::max(a, b);
  case BinaryKind::min:
    return std::min(a, b);
  case BinaryKind::bitAnd:
    return a & b;
  case BinaryKind::bitOr:
    return a | b;
  case BinaryKind::bitXor:
    return a ^ b;
  }
  return 0;
}

static double applyReal(BinaryKind kind, double a, double b) {
  switch (kind) {
  case BinaryKind::add:
    return a + b;
  case BinaryKind::sub:
    return a - b;
  case BinaryKind::mul:
    return a * b;
  case BinaryKind::div:
    return a / b;
  case BinaryKind::mod:
    return std::fmod(a, b);
  case BinaryKind::pow:
    return std::pow(a, b);
  case BinaryKind::max: // NaN wins, as in ONNX.
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
  case BinaryKind::min:
    return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::min(a, b);
  default:
    return 0;
  }
}

template <typename T> static bool applyCompare(CompareKind kind, T a, T b) {
  switch (kind) {
  case CompareKind::equal:
    return a == b;
  case CompareKind::notEqual:
    return a != b;
  case CompareKind::less:
    return a < b;
  case CompareKind::lessEqual:
    return a <= b;
  case CompareKind::greater:
    return a > b;
  case CompareKind::greaterEqual:
    return a >= b;
  }
  return false;
}

static double applyUnary(UnaryKind kind, double x) {
  switch (kind) {
  case UnaryKind::neg:
    return -x;
  case UnaryKind::abs:
    return std::fabs(x);
#define WINDLASS_REAL_FUNCTION(Class, name, ...)                                                                       \
  case UnaryKind::name:                                                                                                \
    return scalar::name(x);
#include "windlass/Dialect/Train/IR/RealFunctions.def"
  case UnaryKind::logicalNot:
  case UnaryKind::isNan:
    return 0;
  }
  return 0;
}

/// Calls `body(out, a, b)` for each element of `shape` with the positions of two broadcast operands.
template <typename Body>
static void zip(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> lhs, llvm::ArrayRef<int64_t> rhs, Body body) {
  auto strides = [&](llvm::ArrayRef<int64_t> from) {
    auto own = getStrides(from);
    Shape result(shape.size(), 0);
    for (size_t i = 0; i < from.size(); ++i)
      result[shape.size() - from.size() + i] = from[i] == 1 ? 0 : own[i];
    return result;
  };
  if (llvm::is_contained(shape, 0))
    return;
  Shape a = strides(lhs), b = strides(rhs), at(shape.size(), 0);
  int64_t rank = static_cast<int64_t>(shape.size());
  if (rank == 0)
    return body(0, 0, 0);
  int64_t out = 0, fromA = 0, fromB = 0, count = shape.back();
  int64_t stepA = a.back(), stepB = b.back();
  while (true) {
    for (int64_t i = 0; i < count; ++i)
      body(out + i, fromA + i * stepA, fromB + i * stepB);
    out += count;
    int64_t dim = rank - 2;
    for (; dim >= 0; --dim) {
      fromA += a[dim];
      fromB += b[dim];
      if (++at[dim] < shape[dim])
        break;
      fromA -= a[dim] * shape[dim];
      fromB -= b[dim] * shape[dim];
      at[dim] = 0;
    }
    if (dim < 0)
      return;
  }
}

static Known computeUnary(UnaryKind kind, const Known &input) {
  Type element = input->getElementType();
  bool givesBoolean = kind == UnaryKind::logicalNot || kind == UnaryKind::isNan;
  auto type = RankedTensorType::get(input->getShape(),
                                    givesBoolean ? Type(IntegerType::get(element.getContext(), 1)) : element);
  return makeKnown(type, [&](KnownStorage &out) {
    const KnownStorage &in = input->getStorage();
    if (kind == UnaryKind::logicalNot) {
      for (auto [to, from] : llvm::zip_equal(out.booleans, in.booleans))
        to = !from;
    } else if (kind == UnaryKind::isNan) {
      for (auto [to, from] : llvm::zip_equal(out.booleans, in.reals))
        to = std::isnan(from);
    } else if (input->isFloat()) {
      for (auto [to, from] : llvm::zip_equal(out.reals, in.reals))
        to = roundReal(applyUnary(kind, from), element);
    } else {
      for (auto [to, from] : llvm::zip_equal(out.integers, in.integers)) {
        auto bits = static_cast<uint64_t>(from);
        int64_t value = from;
        if (kind == UnaryKind::neg || (kind == UnaryKind::abs && from < 0))
          value = static_cast<int64_t>(0 - bits);
        else if (kind == UnaryKind::sign)
          value = (from > 0) - (from < 0);
        to = wrapInteger(value, element);
      }
    }
  });
}

static Known computeBinary(BinaryKind kind, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape) {
  Type element = lhs->getElementType();
  const KnownStorage &a = lhs->getStorage(), &b = rhs->getStorage();
  return makeKnown(RankedTensorType::get(shape, element), [&](KnownStorage &out) {
    auto each = [&](auto body) { zip(shape, lhs->getShape(), rhs->getShape(), body); };
    if (lhs->isBoolean())
      each([&](int64_t i, int64_t x, int64_t y) {
        out.booleans[i] = applyInteger(kind, a.booleans[x], b.booleans[y]) & 1;
      });
    else if (lhs->isFloat())
      each([&](int64_t i, int64_t x, int64_t y) {
        out.reals[i] = roundReal(applyReal(kind, a.reals[x], b.reals[y]), element);
      });
    else
      each([&](int64_t i, int64_t x, int64_t y) {
        out.integers[i] = wrapInteger(applyInteger(kind, a.integers[x], b.integers[y]), element);
      });
  });
}

static Known computeCompare(CompareKind kind, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape) {
  const KnownStorage &a = lhs->getStorage(), &b = rhs->getStorage();
  auto type = RankedTensorType::get(shape, IntegerType::get(lhs->getElementType().getContext(), 1));
  return makeKnown(type, [&](KnownStorage &out) {
    auto each = [&](auto body) { zip(shape, lhs->getShape(), rhs->getShape(), body); };
    if (lhs->isBoolean())
      each(
          [&](int64_t i, int64_t x, int64_t y) { out.booleans[i] = applyCompare(kind, a.booleans[x], b.booleans[y]); });
    else if (lhs->isFloat())
      each([&](int64_t i, int64_t x, int64_t y) { out.booleans[i] = applyCompare(kind, a.reals[x], b.reals[y]); });
    else
      each(
          [&](int64_t i, int64_t x, int64_t y) { out.booleans[i] = applyCompare(kind, a.integers[x], b.integers[y]); });
  });
}

static Known computeSelect(const Known &condition, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape) {
  const KnownStorage &a = lhs->getStorage(), &b = rhs->getStorage();
  // There are three operands: the condition is broadcast first, then the other two are walked with it.
  Known spread = knownBroadcast(condition, shape);
  const std::vector<uint8_t> &choose = spread->getStorage().booleans;
  return makeKnown(RankedTensorType::get(shape, lhs->getElementType()), [&](KnownStorage &out) {
    auto each = [&](auto body) { zip(shape, lhs->getShape(), rhs->getShape(), body); };
    if (lhs->isBoolean())
      each([&](int64_t i, int64_t x, int64_t y) { out.booleans[i] = choose[i] ? a.booleans[x] : b.booleans[y]; });
    else if (lhs->isFloat())
      each([&](int64_t i, int64_t x, int64_t y) { out.reals[i] = choose[i] ? a.reals[x] : b.reals[y]; });
    else
      each([&](int64_t i, int64_t x, int64_t y) { out.integers[i] = choose[i] ? a.integers[x] : b.integers[y]; });
  });
}

static Known computeCast(const Known &input, Type elementType) {
  return makeKnown(RankedTensorType::get(input->getShape(), elementType), [&](KnownStorage &out) {
    for (int64_t i = 0, e = input->getSize(); i < e; ++i) {
      if (elementType.isInteger(1))
        out.booleans[i] = input->isFloat() ? input->getReal(i) != 0 : input->getInteger(i) != 0;
      else if (isa<FloatType>(elementType))
        out.reals[i] = roundReal(input->getReal(i), elementType);
      else if (!input->isFloat())
        out.integers[i] = wrapInteger(input->getInteger(i), elementType);
      else
        out.integers[i] = wrapInteger(toInteger(input->getReal(i)), elementType);
    }
  });
}

//===----------------------------------------------------------------------===//
// Element by element, of views too
//===----------------------------------------------------------------------===//

Known windlass::knownUnary(UnaryKind kind, const Known &input) {
  return computeEach(input, input->getShape(),
                     [&](llvm::ArrayRef<Known> in, llvm::ArrayRef<int64_t>) { return computeUnary(kind, in[0]); });
}

Known windlass::knownBinary(BinaryKind kind, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape) {
  return computeEach({lhs, rhs}, shape, [&](llvm::ArrayRef<Known> in, llvm::ArrayRef<int64_t> sizes) {
    return computeBinary(kind, in[0], in[1], sizes);
  });
}

/// Returns the dim along which a tensor has several elements, counted from the last one, if it is one only.
static std::optional<int64_t> findOnlyDim(const KnownTensor &tensor) {
  std::optional<int64_t> found;
  for (auto [i, dim] : llvm::enumerate(llvm::reverse(tensor.getShape())))
    if (dim != 1) {
      if (found || dim == 0)
        return std::nullopt;
      found = static_cast<int64_t>(i);
    }
  return found;
}

bool windlass::areRanges(const KnownTensor &lhs, const KnownTensor &rhs) {
  std::optional<int64_t> a = findOnlyDim(lhs), b = findOnlyDim(rhs);
  if (!a || !b || std::min(*a, *b) != 0 || std::max(*a, *b) != 1 || !lhs.isInteger() || !rhs.isInteger())
    return false;
  constexpr int64_t most = int64_t(1) << 30; // no difference of such numbers wraps
  int64_t step = lhs.getInteger(1) - lhs.getInteger(0);
  auto isRange = [&](const KnownTensor &tensor) {
    for (auto [i, value] : llvm::enumerate(tensor.getStorage().integers))
      if (value < -most || value > most || value != tensor.getInteger(0) + static_cast<int64_t>(i) * step)
        return false;
    return true;
  };
  return step > -most && step < most && isRange(lhs) && isRange(rhs);
}

Known windlass::knownCompare(CompareKind kind, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape) {
  if (areRanges(*lhs, *rhs)) {
    int64_t step = lhs->getInteger(1) - lhs->getInteger(0);
    bool isRow = findOnlyDim(*lhs) == 0;
    Known band = makeBand(lhs->type.getContext(), shape[shape.size() - 2], shape.back(), [&](int64_t difference) {
      // What lies in a row goes on by the difference while the other one stays.
      int64_t a = lhs->getInteger(0), b = rhs->getInteger(0);
      (isRow ? a : b) += step * difference;
      return applyCompare(kind, a, b);
    });
    return knownReshape(band, shape);
  }
  return computeEach({lhs, rhs}, shape, [&](llvm::ArrayRef<Known> in, llvm::ArrayRef<int64_t> sizes) {
    return computeCompare(kind, in[0], in[1], sizes);
  });
}

Known windlass::knownSelect(const Known &condition, const Known &lhs, const Known &rhs, llvm::ArrayRef<int64_t> shape) {
  return computeEach({condition, lhs, rhs}, shape, [&](llvm::ArrayRef<Known> in, llvm::ArrayRef<int64_t> sizes) {
    return computeSelect(in[0], in[1], in[2], sizes);
  });
}

Known windlass::knownCast(const Known &input, Type elementType) {
  if (input->getElementType() == elementType)
    return input;
  return computeEach(input, input->getShape(), [&](llvm::ArrayRef<Known> in, llvm::ArrayRef<int64_t>) {
    return computeCast(in[0], elementType);
  });
}

//===----------------------------------------------------------------------===//
// Along dims
//===----------------------------------------------------------------------===//

Known windlass::knownReduce(ReduceKind kind, const Known &input, llvm::ArrayRef<int64_t> dims) {
  // The reduced dims are moved behind the others, so that each result is one contiguous row.
  Shape permutation, shape;
  int64_t row = 1;
  for (int64_t i = 0, e = input->type.getRank(); i < e; ++i)
    if (!llvm::is_contained(dims, i)) {
      permutation.push_back(i);
      shape.push_back(input->getShape()[i]);
    }
  for (int64_t dim : dims) {
    permutation.push_back(dim);
    row *= input->getShape()[dim];
  }
  Known rows = knownTranspose(input, permutation);
  Type element = input->getElementType();
  BinaryKind binary = kind == ReduceKind::sum   ? BinaryKind::add
                      : kind == ReduceKind::max ? BinaryKind::max
                                                : BinaryKind::min;
  return makeKnown(RankedTensorType::get(shape, element), [&](KnownStorage &out) {
    int64_t size = 1;
    for (int64_t dim : shape)
      size *= dim;
    for (int64_t i = 0; i < size && row > 0; ++i) {
      if (input->isFloat()) {
        double value = rows->getStorage().reals[i * row];
        for (int64_t j = 1; j < row; ++j)
          value = applyReal(binary, value, rows->getStorage().reals[i * row + j]);
        out.reals[i] = roundReal(value, element);
      } else if (input->isInteger()) {
        int64_t value = rows->getStorage().integers[i * row];
        for (int64_t j = 1; j < row; ++j)
          value = applyInteger(binary, value, rows->getStorage().integers[i * row + j]);
        out.integers[i] = wrapInteger(value, element);
      }
    }
  });
}

Known windlass::knownCumSum(const Known &input, int64_t axis, bool isExclusive, bool isReverse) {
  llvm::ArrayRef<int64_t> shape = input->getShape();
  int64_t length = shape[axis], inner = getStrides(shape)[axis];
  return makeKnown(input->type, [&](KnownStorage &out) {
    auto scan = [&](const auto &from, auto &to, auto zero) {
      for (int64_t base = 0, e = static_cast<int64_t>(from.size()); base < e; ++base) {
        if (base / inner % length != 0)
          continue;
        auto sum = zero;
        for (int64_t i = 0; i < length; ++i) {
          int64_t at = base + (isReverse ? length - 1 - i : i) * inner;
          if (isExclusive)
            to[at] = sum;
          sum = sum + from[at];
          if (!isExclusive)
            to[at] = sum;
        }
      }
    };
    if (input->isFloat())
      scan(input->getStorage().reals, out.reals, 0.0);
    else
      scan(input->getStorage().integers, out.integers, uint64_t(0));
  });
}
