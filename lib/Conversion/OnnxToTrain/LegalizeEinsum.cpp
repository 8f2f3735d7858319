//===- LegalizeEinsum.cpp - sums of products over named dims --------------===//
//
// The operands are multiplied from left to right: two of them by a matmul where a dim is summed, by a broadcast product
// where none is. Dims that one operand alone has and nothing else needs are summed before.
//
//===----------------------------------------------------------------------===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace windlass;

namespace {

/// The name of a dim: a letter of the equation, or for a dim of an ellipsis a negative number, the last one being -1.
using Label = int64_t;
using Labels = Shape;

/// A tensor whose dims are named.
struct Term {
  Entry value;
  Labels labels;

  int64_t find(Label label) const { return llvm::find(labels, label) - labels.begin(); }
  bool has(Label label) const { return llvm::is_contained(labels, label); }
};

/// Primitives on terms.
struct TermMaker {
  using Dims = llvm::ArrayRef<int64_t>;
  PartialEvaluator &eval;
  /// Legalizer::matmul.
  llvm::function_ref<Entry(const Entry &, const Entry &, Dims, Dims, Dims, Dims)> matmul;

  /// Returns the term with the dims of `labels`, all of which it has, in this order, and sums over all others.
  Term sumTo(const Term &term, llvm::ArrayRef<Label> labels) const {
    Labels left;
    Shape dims, order;
    for (auto [dim, label] : llvm::enumerate(term.labels)) {
      if (llvm::is_contained(labels, label))
        left.push_back(label);
      else
        dims.push_back(static_cast<int64_t>(dim));
    }
    Term sum{eval.reduce(ReduceKind::sum, term.value, dims), left};
    for (Label label : labels)
      order.push_back(sum.find(label));
    return {eval.transpose(sum.value, order), Labels(labels)};
  }

  /// Returns the diagonal of a term that has the label twice, along these two dims.
  Term takeDiagonal(const Term &term, Label label) const {
    int64_t rank = term.value.getRank(), size = term.value.getShape()[term.find(label)];
    Shape order, shape{size * size}, starts(rank - 1, 0), steps(rank - 1, 1);
    Labels labels{label};
    for (int64_t dim = 0; dim < rank && order.size() < 2; ++dim)
      if (term.labels[dim] == label)
        order.push_back(dim);
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (llvm::is_contained(llvm::ArrayRef(order).take_front(2), dim))
        continue;
      order.push_back(dim);
      shape.push_back(term.value.getShape()[dim]);
      labels.push_back(term.labels[dim]);
    }
    // The two dims become one, in which the elements of the diagonal are size + 1 apart.
    Shape sizes(shape);
    sizes[0] = size;
    steps[0] = size + 1;
    Entry rows = eval.reshape(eval.transpose(term.value, order), shape);
    return {eval.slice(rows, starts, sizes, steps), labels};
  }

  /// Returns the term without the dims of one element that have more in `other`, along which it is broadcast.
  Term dropBroadcast(const Term &term, const Term &other) const {
    Labels labels;
    Shape shape;
    for (auto [label, size] : llvm::zip_equal(term.labels, term.value.getShape()))
      if (size != 1 || !other.has(label) || other.value.getShape()[other.find(label)] == 1) {
        labels.push_back(label);
        shape.push_back(size);
      }
    return {eval.reshape(term.value, shape), labels};
  }

  /// Returns the product of elements, with the dims of `labels`; each operand's dims are among them.
  Term multiply(const Term &lhs, const Term &rhs, llvm::ArrayRef<Label> labels) const {
    auto spread = [&](const Term &term) {
      Labels own;
      Shape shape;
      for (Label label : labels) {
        shape.push_back(term.has(label) ? term.value.getShape()[term.find(label)] : 1);
        if (term.has(label))
          own.push_back(label);
      }
      return eval.reshape(sumTo(term, own).value, shape);
    };
    return {eval.binary(BinaryKind::mul, spread(lhs), spread(rhs)), Labels(labels)};
  }

  /// Returns the product of two terms, summed over all dims but those of `kept`.
  Term contract(const Term &left, const Term &right, llvm::ArrayRef<Label> kept) const {
    auto isKept = [&](Label label) { return llvm::is_contained(kept, label); };
    Term lhs = dropBroadcast(left, right), rhs = dropBroadcast(right, left);
    // What only one of them has is summed before.
    auto sumOwn = [&](const Term &term, const Term &other) {
      Labels labels;
      llvm::copy_if(term.labels, std::back_inserter(labels),
                    [&](Label label) { return isKept(label) || other.has(label); });
      return labels.size() == term.labels.size() ? term : sumTo(term, labels);
    };
    lhs = sumOwn(lhs, rhs);
    rhs = sumOwn(rhs, lhs);
    if (!lhs.value.isTensor() || !rhs.value.isTensor())
      return {};
    Labels batch, free;
    Shape lhsBatch, rhsBatch, lhsSummed, rhsSummed;
    for (Label label : lhs.labels) {
      if (!rhs.has(label)) {
        free.push_back(label);
        continue;
      }
      (isKept(label) ? lhsBatch : lhsSummed).push_back(lhs.find(label));
      (isKept(label) ? rhsBatch : rhsSummed).push_back(rhs.find(label));
      if (isKept(label))
        batch.push_back(label);
    }
    llvm::copy_if(rhs.labels, std::back_inserter(free), [&](Label label) { return !lhs.has(label); });
    Labels labels(batch);
    llvm::append_range(labels, free);
    if (lhsSummed.empty())
      return multiply(lhs, rhs, labels);
    return {matmul(lhs.value, rhs.value, lhsBatch, rhsBatch, lhsSummed, rhsSummed), labels};
  }
};

/// The parts of an equation: one list of labels for each operand, and the result's.
struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

/// Stands for an ellipsis until the ranks are known.
constexpr Label kEllipsis = 0;

} // namespace

/// Reads the labels of one operand, or fails.
static FailureOr<Labels> readLabels(llvm::StringRef text) {
  Labels labels;
  for (; !text.empty(); text = text.drop_front()) {
    if (text.consume_front("...")) {
      if (llvm::is_contained(labels, kEllipsis))
        return failure();
      labels.push_back(kEllipsis);
      if (text.empty())
        break;
    }
    if (!llvm::isAlpha(text.front()))
      return failure();
    labels.push_back(text.front());
  }
  return labels;
}

/// Replaces the ellipsis by `count` numbered labels.
static void expandEllipsis(Labels &labels, int64_t count) {
  auto *at = llvm::find(labels, kEllipsis);
  if (at == labels.end())
    return;
  at = labels.erase(at);
  Labels numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(i - count);
  labels.insert(at, numbers.begin(), numbers.end());
}

/// Returns the result's labels where an equation has no arrow: the dims of ellipses, then each letter that is there
/// once, in order.
static Labels inferResult(llvm::ArrayRef<Labels> operands, int64_t ellipsis) {
  llvm::SmallVector<int64_t> counts(128, 0);
  for (const Labels &labels : operands)
    for (Label label : labels)
      if (label > 0)
        ++counts[label];
  Labels result{kEllipsis};
  expandEllipsis(result, ellipsis);
  for (Label label = 0; label < 128; ++label)
    if (counts[label] == 1)
      result.push_back(label);
  return result;
}

/// Reads an equation for operands of the given ranks; fails where it is none, or does not fit them.
static FailureOr<Equation> readEquation(llvm::StringRef given, llvm::ArrayRef<int64_t> ranks) {
  std::string text = given.str();
  llvm::erase(text, ' ');
  auto [left, right] = llvm::StringRef(text).split("->");
  llvm::SmallVector<llvm::StringRef> parts;
  left.split(parts, ',');
  if (parts.size() != ranks.size())
    return failure();
  Equation equation;
  int64_t ellipsis = 0;
  for (auto [part, rank] : llvm::zip_equal(parts, ranks)) {
    FailureOr<Labels> labels = readLabels(part);
    if (failed(labels))
      return failure();
    bool hasEllipsis = llvm::is_contained(*labels, kEllipsis);
    int64_t rest = rank - int64_t(labels->size()) + (hasEllipsis ? 1 : 0);
    if (rest < 0 || (rest > 0 && !hasEllipsis))
      return failure();
    expandEllipsis(*labels, rest);
    ellipsis = std::max(ellipsis, rest);
    equation.operands.push_back(*labels);
  }
  if (!llvm::StringRef(text).contains("->")) {
    equation.result = inferResult(equation.operands, ellipsis);
    return equation;
  }
  FailureOr<Labels> labels = readLabels(right);
  if (failed(labels))
    return failure();
  expandEllipsis(*labels, ellipsis);
  equation.result = *labels;
  for (Label label : equation.result)
    if (llvm::count(equation.result, label) > 1 ||
        llvm::none_of(equation.operands, [&](const Labels &own) { return llvm::is_contained(own, label); }))
      return failure();
  return equation;
}

void Legalizer::registerEinsum() { handle("Einsum", &Legalizer::legalizeEinsum); }

/// Returns the size of each label, or failure where dims disagree on it. A dim of one element fits any of another
/// operand.
static FailureOr<llvm::DenseMap<Label, int64_t>> collectSizes(llvm::ArrayRef<Term> terms) {
  llvm::DenseMap<Label, int64_t> sizes;
  for (const Term &term : terms)
    for (auto [label, size] : llvm::zip_equal(term.labels, term.value.getShape())) {
      if (term.value.getShape()[term.find(label)] != size)
        return failure();
      int64_t &known = sizes.try_emplace(label, size).first->second;
      if (known != size && known != 1 && size != 1)
        return failure();
      known = std::max(known, size);
    }
  return sizes;
}

LogicalResult Legalizer::legalizeEinsum(NodeContext &node) {
  if (node.inputs.empty())
    return invalid(node, "has no operands");
  if (failed(expectTensors(node, node.inputs.size())))
    return failure();
  Shape ranks;
  for (const Entry &input : node.inputs) {
    if (input.getElementType() != node.inputs[0].getElementType())
      return invalid(node, "has operands of different element types");
    if (!input.isFloat())
      return unsupported("is applied to integers");
    if (input.type.getNumElements() < 1)
      return unsupported("has an operand without elements");
    ranks.push_back(input.getRank());
  }
  std::string text = "has the equation '" + node.getString("equation", "").take_front(60).str() + "', ";
  FailureOr<Equation> equation = readEquation(node.getString("equation", ""), ranks);
  if (failed(equation))
    return invalid(node, text + "which does not fit the ranks of its operands");
  std::vector<Term> terms;
  for (auto [input, labels] : llvm::zip_equal(node.inputs, equation->operands))
    terms.push_back({input, labels});
  auto sizes = collectSizes(terms);
  if (failed(sizes))
    return invalid(node, text + "in which one letter stands for dims of two sizes");
  auto multiplyMatrices = [&](auto &&...arguments) { return matmul(arguments...); };
  TermMaker maker{eval, multiplyMatrices};
  for (Term &term : terms)
    for (Label label : Labels(term.labels))
      while (term.value.isTensor() && llvm::count(term.labels, label) > 1)
        term = maker.takeDiagonal(term, label);
  Term result = terms[0];
  for (size_t i = 1; i < terms.size() && result.value.isTensor(); ++i) {
    if (!terms[i].value.isTensor())
      return give(node, terms[i].value);
    // What the result or a later operand has is kept.
    Labels kept(equation->result);
    for (const Term &later : llvm::ArrayRef(terms).drop_front(i + 1))
      llvm::append_range(kept, later.labels);
    Shape shape;
    for (const auto &[label, size] : *sizes)
      if ((result.has(label) || terms[i].has(label)) && llvm::is_contained(kept, label))
        shape.push_back(size);
    if (failed(checkCount(node, shape)))
      return failure();
    result = maker.contract(result, terms[i], kept);
  }
  return give(node, result.value.isTensor() ? maker.sumTo(result, equation->result).value : result.value);
}
