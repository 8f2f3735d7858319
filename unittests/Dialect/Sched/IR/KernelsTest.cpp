#include "windlass/Dialect/Sched/IR/Kernels.h"

#include "gmock/gmock.h"

using namespace windlass::sched;
using testing::ElementsAre;

namespace {

TEST(KernelTable, RowsStandWhereTheirKindsDo) {
  for (const KernelRow &row : getKernelTable()) {
    EXPECT_EQ(&getRow(row.kind), &row);
    EXPECT_EQ(symbolizeKernelKind(row.name), row.kind);
    EXPECT_EQ(stringifyKernelKind(row.kind), row.name);
  }
  EXPECT_FALSE(symbolizeKernelKind("paint"));
}

/// An operand or result that a cell names by its number is in every launch that the row allows, except operands that
/// may be absent.
TEST(KernelTable, CellsNameOperandsThatThereAre) {
  for (const KernelRow &row : getKernelTable()) {
    SCOPED_TRACE(row.name.str());
    unsigned operands = row.hasTerms() ? 1 + row.operands.most : row.operands.most;
    for (InPlace::Pair pair : row.inPlace.getPairs()) {
      EXPECT_LT(pair.operand, operands);
      EXPECT_LT(pair.result, row.results.least);
    }
    if (row.indices.kind != IndexLimit::Kind::unlimited)
      EXPECT_LT(row.indices.number, row.indices.isResult ? row.results.least : row.operands.least);
    if (row.flops.kind == KernelFlops::Kind::attention)
      EXPECT_LT(row.flops.query + 1, row.operands.least);
    if (row.isProduct())
      EXPECT_GE(row.operands.least, 2u);
    EXPECT_EQ(row.flops.kind == KernelFlops::Kind::updates, row.hasParameters());
  }
}

/// Names of measured times lead to a kernel that has its own.
TEST(KernelTable, KeysAndFamiliesAreTheirOwn) {
  for (const KernelRow &row : getKernelTable()) {
    EXPECT_EQ(getRow(row.key).key, row.key) << row.name.str();
    EXPECT_EQ(getRow(row.family).family, row.family) << row.name.str();
    EXPECT_EQ(getRow(row.key).family, row.family) << row.name.str();
  }
}

/// The results that may have the place of each operand.
std::vector<std::vector<size_t>> getShared(KernelKind kind, KernelArity arity) {
  EXPECT_TRUE(getRow(kind).takes(arity));
  std::vector<std::vector<size_t>> shared(arity.operands);
  for (size_t in = 0; in < arity.operands; ++in)
    for (size_t out = 0; out < arity.results; ++out)
      if (getRow(kind).mayWriteOver(arity, in, out))
        shared[in].push_back(out);
  return shared;
}

TEST(KernelRow, TermsSharePlacesWithSumAndNorm) {
  using testing::IsEmpty;
  EXPECT_THAT(getShared(KernelKind::add_layer_norm, {4, 4, 2}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1), IsEmpty(), IsEmpty()));
  EXPECT_THAT(getShared(KernelKind::add_layer_norm, {4, 4, 3}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(0, 1), ElementsAre(0, 1), IsEmpty()));
  EXPECT_FALSE(getRow(KernelKind::add_rms_norm).takes({4, 3, 2})) << "there is no bias";
  EXPECT_FALSE(getRow(KernelKind::add_rms_norm).takes({2, 3, 3})) << "fewer operands than terms";
}

TEST(KernelRow, ParametersShareWithTheirOwnResultsOnly) {
  using testing::IsEmpty;
  // Two parameters with weight, moments and gradient, and a rounded weight each; eight scalars.
  KernelArity arity = {16, 8, 0};
  std::vector<std::vector<size_t>> shared = getShared(KernelKind::adamw, arity);
  shared.resize(9);
  EXPECT_THAT(shared, ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2), IsEmpty(), ElementsAre(4),
                                  ElementsAre(5), ElementsAre(6), IsEmpty(), IsEmpty()));
  const KernelRow &row = getRow(KernelKind::adamw);
  EXPECT_EQ(row.getReplaced(arity, 1), 1u);
  EXPECT_EQ(row.getReplaced(arity, 3), std::nullopt);
  EXPECT_EQ(row.getReplaced(arity, 6), 6u);
  EXPECT_EQ(row.countParameters(arity), 2u);
  EXPECT_FALSE(row.takes({8, 3, 0})) << "no parameter";
  EXPECT_FALSE(row.takes({15, 6, 0})) << "half a parameter";
  EXPECT_FALSE(row.takes({16, 7, 0})) << "other results of each";
  EXPECT_FALSE(row.takes({4 * 65 + 8, 3 * 65, 0})) << "more than a command takes";
}

TEST(KernelRow, ASumOfSquaresTakesSeveralOperands) {
  const KernelRow &row = getRow(KernelKind::square_sum);
  size_t most = row.operands.most;
  EXPECT_TRUE(row.takes({1, 1, 0}));
  EXPECT_TRUE(row.takes({most, 1, 0}));
  EXPECT_FALSE(row.takes({most + 1, 1, 0})) << "more than a command takes";
  EXPECT_FALSE(row.takes({2, 2, 0})) << "a sum for each";
}

TEST(KernelRow, ACopyOntoItselfIsNoCommand) {
  const KernelRow &row = getRow(KernelKind::copy);
  EXPECT_TRUE(row.mayShare({1, 1, 0}, 0, 0));
  EXPECT_FALSE(row.mayWriteOver({1, 1, 0}, 0, 0));
}

TEST(KernelRow, SumsOfNormsAreFound) {
  EXPECT_EQ(getKernelOfSum(KernelKind::layer_norm), KernelKind::add_layer_norm);
  EXPECT_EQ(getKernelOfSum(KernelKind::rms_norm), KernelKind::add_rms_norm);
  EXPECT_EQ(getKernelOfSum(KernelKind::softmax), std::nullopt);
}

} // namespace
