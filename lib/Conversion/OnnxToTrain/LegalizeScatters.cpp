//===- LegalizeScatters.cpp - writes and sums at places given by integers -===//

#include "Legalizer.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace windlass;

void Legalizer::registerScatters() {
  handle("ScatterElements", &Legalizer::legalizeScatterElements);
  handle("ScatterND", &Legalizer::legalizeScatterNd);
}

FailureOr<bool> Legalizer::readScatterAdds(NodeContext &node) {
  llvm::StringRef reduction = node.getString("reduction", "none");
  if (reduction != "none" && reduction != "add")
    return unsupported("has reduction '" + reduction.take_front(40) + "'");
  if (reduction == "add" && !node.inputs[0].isFloat())
    return unsupported("adds to integers");
  return reduction == "add";
}

LogicalResult Legalizer::giveScattered(NodeContext &node, const Entry &data, bool adds,
                                       llvm::function_ref<Entry(const Entry &)> scatter, const Entry &updates) {
  Entry sums = scatter(updates);
  if (!sums.isTensor())
    return give(node, sums);
  Entry result;
  if (adds) {
    result = eval.binary(BinaryKind::add, data, sums);
  } else {
    // Places are named at most once, so that a sum is the update.
    Entry ones = Entry::of(makeKnownSplat(updates.type, 1)), counts = scatter(ones);
    Entry zero = eval.scalar(0, data.getElementType());
    result = eval.select(eval.compare(CompareKind::greater, counts, zero), sums, data);
  }
  return give(node, eval.reshape(result, node.inputs[0].getShape()));
}

LogicalResult Legalizer::scatterRows(NodeContext &node, const Entry &places, const Entry &updates,
                                     llvm::ArrayRef<int64_t> rows) {
  FailureOr<bool> adds = readScatterAdds(node);
  if (failed(adds))
    return failure();
  Entry data = eval.reshape(node.inputs[0], rows);
  int64_t size = rows[0];
  if (!*adds && places.known) {
    // Each row of the result is one of the old rows or, behind these, the last update of it.
    if (!eval.mayEvaluate(size))
      return unsupported("has too many elements");
    Shape from = llvm::to_vector(llvm::seq<int64_t>(0, size));
    for (auto [update, place] : llvm::enumerate(places.known->getStorage().integers))
      from[place] = size + static_cast<int64_t>(update);
    Entry both = data.isTensor() ? eval.concat({data, updates}, 0) : data;
    Entry result =
        both.isTensor() ? eval.gather(both, Entry::of(makeKnownIntegers(builder.getContext(), from)), 0) : both;
    return give(node, eval.reshape(result, node.inputs[0].getShape()));
  }
  if (!data.isFloat())
    return unsupported("writes integers at places that are not constants");
  auto scatter = [&](const Entry &of) {
    Value input = eval.materialize(of), at = input ? eval.materialize(places) : Value();
    return at ? Entry::of(train::ScatterAddOp::create(builder, eval.getLocation(), at, input,
                                                      builder.getI64IntegerAttr(0), builder.getI64IntegerAttr(size))
                              .getResult())
              : Entry();
  };
  return giveScattered(node, data, *adds, scatter, updates);
}

LogicalResult Legalizer::legalizeScatterElements(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  const Entry &x = node.inputs[0], &indices = node.inputs[1], &updates = node.inputs[2];
  FailureOr<int64_t> axis = normalizeAxis(node, node.getInt("axis", 0), x.getRank());
  if (failed(axis) || failed(checkElementIndices(node, *axis)))
    return failure();
  if (updates.getShape() != indices.getShape() || updates.getElementType() != x.getElementType() ||
      indices.type.getNumElements() == 0)
    return invalid(node, "has updates that do not fit its indices and its tensor");
  if (indices.known) {
    FailureOr<Entry> places = flattenElementIndices(node, *axis);
    if (failed(places))
      return failure();
    int64_t count = indices.type.getNumElements();
    return scatterRows(node, eval.reshape(*places, {count}), eval.reshape(updates, {count}), {x.type.getNumElements()});
  }
  FailureOr<bool> adds = readScatterAdds(node);
  if (failed(adds))
    return failure();
  if (!x.isFloat())
    return unsupported("writes integers at places that are not constants");
  // Other dims of the indices may be smaller: nothing is written to elements beyond them.
  Shape low(x.getRank(), 0), high;
  for (auto [i, sizes] : llvm::enumerate(llvm::zip_equal(x.getShape(), indices.getShape())))
    high.push_back(static_cast<int64_t>(i) == *axis ? 0 : std::get<0>(sizes) - std::get<1>(sizes));
  Entry places = eval.cast(indices, builder.getI64Type());
  auto scatter = [&](const Entry &of) {
    Value input = eval.materialize(of), at = input && places.isTensor() ? eval.materialize(places) : Value();
    if (!at)
      return Entry();
    auto sums =
        train::ScatterElementsAddOp::create(builder, eval.getLocation(), at, input, builder.getI64IntegerAttr(*axis),
                                            builder.getI64IntegerAttr(x.getShape()[*axis]));
    return eval.pad(Entry::of(sums.getResult()), low, high, 0);
  };
  return giveScattered(node, x, *adds, scatter, updates);
}

LogicalResult Legalizer::legalizeScatterNd(NodeContext &node) {
  if (failed(expectTensors(node, 3)))
    return failure();
  const Entry &x = node.inputs[0], &indices = node.inputs[1], &updates = node.inputs[2];
  if (failed(checkRowIndices(node, 0)))
    return failure();
  int64_t depth = indices.getShape().back();
  Shape outer(indices.getShape().drop_back()), inner(x.getShape().drop_front(depth)), whole(outer);
  llvm::append_range(whole, inner);
  if (updates.getShape() != llvm::ArrayRef<int64_t>(whole) || updates.getElementType() != x.getElementType() ||
      updates.type.getNumElements() == 0)
    return invalid(node, "has updates that do not fit its indices and its tensor");
  FailureOr<Entry> places = mergeIndices(node, 0);
  if (failed(places) || !places->isTensor())
    return failed(places) ? failure() : give(node, *places);
  Shape rows{llvm::product_of(x.getShape().take_front(depth))}, updated{llvm::product_of(outer)};
  llvm::append_range(rows, inner);
  llvm::append_range(updated, inner);
  return scatterRows(node, eval.reshape(*places, {updated[0]}), eval.reshape(updates, updated), rows);
}
