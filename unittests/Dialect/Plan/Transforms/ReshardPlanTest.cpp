// All reshards between layouts of a tensor [4 x 6, 8]: the plan is executed on plain arrays, one per rank.
#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"

#include "mlir/IR/MLIRContext.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;
using Kind = ReshardStep::Kind;
using Part = std::vector<double>;

namespace {

constexpr int64_t kRows = 24, kColumns = 8, kElements = kRows * kColumns;
constexpr int64_t kFactors[] = {4, 6, 8};

class ReshardPlanTest : public testing::TestWithParam<std::vector<int64_t>> {
protected:
  ReshardPlanTest() {
    context.loadDialect<PlanDialect>();
    SmallVector<AxisAttr> axes;
    for (auto [i, size] : llvm::enumerate(GetParam()))
      axes.push_back(
          AxisAttr::get(&context, StringAttr::get(&context, std::string(1, 'a' + i)), size, AxisRole::model));
    mesh = MeshAttr::get(&context, axes);
  }

  StringAttr axis(size_t i) { return mesh.getAxes()[i].getName(); }

  /// Returns every layout: each axis on one of the three factors (in both orders where two meet), on nothing,
  /// unreduced, or, where `withFlat` holds, on the flattened rest.
  std::vector<LayoutAttr> getLayouts(bool withFlat) {
    std::vector<LayoutAttr> layouts;
    size_t count = mesh.getAxes().size();
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::set<const void *> seen;
    do {
      std::vector<int> places(count, 0); // 0..2: factors, 3: nothing, 4: a sum, 5: a maximum, 6: flat
      for (;;) {
        if (LayoutAttr layout = makeLayout(order, places); layout && seen.insert(layout.getAsOpaquePointer()).second)
          layouts.push_back(layout);
        size_t i = 0;
        while (i < count && ++places[i] == (withFlat ? 7 : 6))
          places[i++] = 0;
        if (i == count)
          break;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    return layouts;
  }

  /// Returns the layout of these places; null where an axis does not divide, or where sums and maxima mix.
  LayoutAttr makeLayout(const std::vector<size_t> &order, const std::vector<int> &places) {
    SmallVector<SmallVector<StringAttr>> axes(3);
    SmallVector<StringAttr> flat;
    SmallVector<UnreducedAttr> unreduced;
    int64_t rest[] = {kFactors[0], kFactors[1], kFactors[2]};
    for (size_t i : order) {
      int64_t size = mesh.getAxes()[i].getSize();
      if (places[i] < 3) {
        if (rest[places[i]] % size)
          return nullptr;
        rest[places[i]] /= size;
        axes[places[i]].push_back(axis(i));
      }
      if (places[i] == 6)
        flat.push_back(axis(i));
    }
    for (size_t i = 0; i < places.size(); ++i)
      if (places[i] == 4 || places[i] == 5)
        unreduced.push_back(UnreducedAttr::get(&context, axis(i),
                                               places[i] == 4 ? train::ReductionKind::sum : train::ReductionKind::max));
    for (UnreducedAttr one : unreduced)
      if (one.getKind() != unreduced.front().getKind())
        return nullptr;
    auto factor = [&](int i) { return FactorLayoutAttr::get(&context, kFactors[i], axes[i]); };
    return LayoutAttr::get(
        &context, {DimLayoutAttr::get(&context, {factor(0), factor(1)}), DimLayoutAttr::get(&context, {factor(2)})},
        flat, unreduced, MemoryKind::device);
  }

  int64_t coordinate(int64_t rank, StringRef name) { return mesh.coordinatesOf(rank)[mesh.indexOf(name)]; }

  /// Returns the indices of the whole tensor that a rank holds, in the order of its memory; -1 for the padding of a
  /// range.
  std::vector<int64_t> indicesOf(LayoutAttr layout, int64_t rank) {
    std::vector<int64_t> held = {0};
    for (DimLayoutAttr dim : layout.getDims())
      for (FactorLayoutAttr factor : dim.getFactors()) {
        int64_t parts = 1, part = 0;
        for (StringAttr name : factor.getAxes()) {
          parts *= mesh.sizeOf(name.getValue());
          part = part * mesh.sizeOf(name.getValue()) + coordinate(rank, name.getValue());
        }
        int64_t local = factor.getSize() / parts;
        std::vector<int64_t> refined;
        for (int64_t index : held)
          for (int64_t i = 0; i < local; ++i)
            refined.push_back(index * factor.getSize() + part * local + i);
        held = refined;
      }
    if (layout.getFlat().empty())
      return held;
    int64_t ranges = 1, range = 0;
    for (StringAttr name : layout.getFlat()) {
      ranges *= mesh.sizeOf(name.getValue());
      range = range * mesh.sizeOf(name.getValue()) + coordinate(rank, name.getValue());
    }
    size_t length = (held.size() + ranges - 1) / ranges;
    held.resize(length * ranges, -1);
    return {held.begin() + range * length, held.begin() + (range + 1) * length};
  }

  static double valueOf(int64_t index) { return 1000 + 7 * index; }

  /// Returns a rank's contribution to an element: exact integers that add up to the value, or whose largest is the
  /// value.
  double contribution(LayoutAttr layout, int64_t rank, int64_t index) {
    if (index < 0)
      return 0;
    int64_t members = 1, member = 0;
    for (UnreducedAttr unreduced : layout.getUnreduced()) {
      members *= mesh.sizeOf(unreduced.getAxis().getValue());
      member = member * mesh.sizeOf(unreduced.getAxis().getValue()) + coordinate(rank, unreduced.getAxis().getValue());
    }
    if (members == 1)
      return valueOf(index);
    if (layout.getUnreduced().front().getKind() == train::ReductionKind::max)
      return index % members == member ? valueOf(index) : valueOf(index) - 1 - member;
    return member == 0 ? valueOf(index) - members * (members - 1) / 2 * (index + 1) : double(member * (index + 1));
  }

  std::vector<SmallVector<int64_t>> getCommunicators(ArrayRef<StringAttr> axes) {
    std::map<std::vector<int64_t>, std::map<std::vector<int64_t>, int64_t>> groups;
    for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
      std::vector<int64_t> own, others;
      for (StringAttr name : axes)
        own.push_back(coordinate(rank, name.getValue()));
      for (AxisAttr one : mesh.getAxes())
        if (!llvm::is_contained(axes, one.getName()))
          others.push_back(coordinate(rank, one.getName().getValue()));
      groups[others][own] = rank;
    }
    std::vector<SmallVector<int64_t>> result;
    for (auto &[others, members] : groups) {
      result.emplace_back();
      for (auto &[own, rank] : members)
        result.back().push_back(rank);
    }
    return result;
  }

  /// Returns block number `block` of `blocks` along `dim`, of an array of that shape.
  static Part cut(const Part &part, ArrayRef<int64_t> shape, int64_t dim, int64_t block, int64_t blocks) {
    int64_t before = 1, after = 1, size = shape[dim] / blocks;
    for (int64_t i = 0; i < dim; ++i)
      before *= shape[i];
    for (size_t i = dim + 1; i < shape.size(); ++i)
      after *= shape[i];
    Part result;
    for (int64_t i = 0; i < before; ++i)
      for (int64_t j = 0; j < size * after; ++j)
        result.push_back(part[(i * shape[dim] + block * size) * after + j]);
    return result;
  }

  /// Returns arrays of that shape joined along `dim`.
  static Part join(const std::vector<Part> &parts, ArrayRef<int64_t> shape, int64_t dim) {
    int64_t before = 1, chunk = 1;
    for (int64_t i = 0; i < dim; ++i)
      before *= shape[i];
    for (size_t i = dim; i < shape.size(); ++i)
      chunk *= shape[i];
    Part result;
    for (int64_t i = 0; i < before; ++i)
      for (const Part &part : parts)
        result.insert(result.end(), part.begin() + i * chunk, part.begin() + (i + 1) * chunk);
    return result;
  }

  void execute(const ReshardStep &step, std::vector<Part> &parts) {
    for (const SmallVector<int64_t> &members : getCommunicators(step.axes)) {
      ASSERT_EQ(int64_t(members.size()), step.members);
      std::vector<Part> before;
      for (int64_t rank : members) {
        before.push_back(parts[rank]);
        ASSERT_EQ(int64_t(parts[rank].size()),
                  std::accumulate(step.shape.begin(), step.shape.end(), int64_t(1), std::multiplies<int64_t>()));
      }
      Part combined = before.front();
      for (size_t m = 1; m < before.size(); ++m)
        for (size_t i = 0; i < combined.size(); ++i)
          combined[i] = step.reduction == train::ReductionKind::max ? std::max(combined[i], before[m][i])
                                                                    : combined[i] + before[m][i];
      for (size_t m = 0; m < members.size(); ++m) {
        Part &part = parts[members[m]];
        switch (step.kind) {
        case Kind::AllReduce:
          part = combined;
          break;
        case Kind::ReduceScatter:
          part = cut(combined, step.shape, step.cut, m, members.size());
          break;
        case Kind::Slice:
          part = cut(before[m], step.shape, step.cut, m, members.size());
          break;
        case Kind::AllGather:
          part = join(before, step.shape, step.join);
          break;
        case Kind::AllToAll: {
          std::vector<Part> pieces;
          for (const Part &sender : before)
            pieces.push_back(cut(sender, step.shape, step.cut, m, members.size()));
          SmallVector<int64_t> shape(step.shape.begin(), step.shape.end());
          shape[step.cut] /= step.members;
          part = join(pieces, shape, step.join);
          break;
        }
        case Kind::Permute:
          parts[members[step.destinations[m]]] = before[m];
          break;
        case Kind::Pad:
        case Kind::Trim:
          part.resize(step.elements, 0);
          break;
        }
      }
    }
  }

  /// Returns the elements that a rank sends when everything is reduced and gathered and then cut.
  double getNaiveCost(LayoutAttr from, LayoutAttr to) {
    int64_t local = indicesOf(from, 0).size(), members = 1;
    for (UnreducedAttr unreduced : from.getUnreduced())
      if (!llvm::is_contained(to.getUnreduced(), unreduced))
        members *= mesh.sizeOf(unreduced.getAxis().getValue());
    // Ranges are gathered with their padding.
    int64_t dims = indicesOf(from.withFlat({}), 0).size(), gathered = local * from.getFlatParts(mesh);
    return 2.0 * (members - 1) / members * local + (gathered - local) + (kElements - dims);
  }

  /// Plans a reshard, executes it, and compares values and bytes. Returns whether it was possible.
  bool move(LayoutAttr from, LayoutAttr to) {
    bool isPossible = llvm::all_of(
        to.getUnreduced(), [&](UnreducedAttr unreduced) { return llvm::is_contained(from.getUnreduced(), unreduced); });
    llvm::Expected<ReshardPlan> plan = planReshard({kRows, kColumns}, from, to, mesh);
    EXPECT_EQ(bool(plan), isPossible);
    if (!plan) {
      llvm::consumeError(plan.takeError());
      return false;
    }
    std::vector<Part> parts(mesh.getRanks());
    for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
      for (int64_t index : indicesOf(from, rank))
        parts[rank].push_back(contribution(from, rank, index));
    for (const ReshardStep &step : plan->steps) {
      ++used[step.kind];
      execute(step, parts);
      if (HasFatalFailure())
        return true;
    }
    std::string text;
    llvm::raw_string_ostream(text) << from << " to " << to;
    EXPECT_LE(plan->sentElements, getNaiveCost(from, to) + 1e-9) << text;
    check(to, parts, text);
    return true;
  }

  /// Checks values: parts that are still partial add up over the axes that are left.
  void check(LayoutAttr to, const std::vector<Part> &parts, const std::string &text) {
    SmallVector<StringAttr> left;
    for (UnreducedAttr unreduced : to.getUnreduced())
      left.push_back(unreduced.getAxis());
    bool isMax = !left.empty() && to.getUnreduced().front().getKind() == train::ReductionKind::max;
    for (const SmallVector<int64_t> &members : getCommunicators(left)) {
      std::vector<int64_t> indices = indicesOf(to, members.front());
      for (size_t i = 0; i < indices.size(); ++i) {
        double whole = isMax ? -1e300 : 0;
        for (int64_t rank : members) {
          ASSERT_EQ(parts[rank].size(), indices.size()) << text;
          whole = isMax ? std::max(whole, parts[rank][i]) : whole + parts[rank][i];
        }
        ASSERT_EQ(whole, indices[i] < 0 ? 0 : valueOf(indices[i])) << text;
      }
    }
  }

  void printCounts(size_t layouts, int64_t pairs, int64_t refused) {
    std::string counts;
    for (auto [kind, name] : {std::pair(Kind::AllReduce, "all-reduce"),
                              {Kind::ReduceScatter, "reduce-scatter"},
                              {Kind::AllGather, "all-gather"},
                              {Kind::AllToAll, "all-to-all"},
                              {Kind::Slice, "slice"},
                              {Kind::Permute, "permute"},
                              {Kind::Pad, "pad"},
                              {Kind::Trim, "trim"}})
      counts += std::string(" ") + name + " " + std::to_string(used[kind]);
    std::cout << layouts << " layouts, " << pairs << " pairs, " << refused << " refused;" << counts << "\n";
  }

  MLIRContext context;
  MeshAttr mesh;
  std::map<Kind, int64_t> used;
};

TEST_P(ReshardPlanTest, MovesEveryLayoutToEveryOther) {
  std::vector<LayoutAttr> layouts = getLayouts(/*withFlat=*/false);
  int64_t pairs = 0, refused = 0;
  for (LayoutAttr from : layouts)
    for (LayoutAttr to : layouts) {
      ++(move(from, to) ? pairs : refused);
      ASSERT_FALSE(HasFailure());
    }
  EXPECT_GT(pairs, 0);
  printCounts(layouts.size(), pairs, refused);
}

/// Reshards between ranges of the flattened part and all layouts. Most ranges are padded.
using FlatReshardTest = ReshardPlanTest;

TEST_P(FlatReshardTest, MovesRangesToAndFromEveryLayout) {
  std::vector<LayoutAttr> layouts = getLayouts(/*withFlat=*/true);
  int64_t pairs = 0, refused = 0;
  for (LayoutAttr from : layouts)
    for (LayoutAttr to : layouts) {
      if (from.getFlat().empty() && to.getFlat().empty())
        continue;
      ++(move(from, to) ? pairs : refused);
      ASSERT_FALSE(HasFailure());
    }
  EXPECT_GT(used[Kind::ReduceScatter], 0);
  EXPECT_GT(used[Kind::AllGather], 0);
  printCounts(layouts.size(), pairs, refused);
}

TEST_P(FlatReshardTest, ScattersAndGathersOnce) {
  SmallVector<StringAttr> all;
  SmallVector<UnreducedAttr> sums;
  for (size_t i = 0; i < mesh.getAxes().size(); ++i) {
    all.push_back(axis(i));
    sums.push_back(UnreducedAttr::get(&context, axis(i), train::ReductionKind::sum));
  }
  LayoutAttr whole = makeLayout({}, std::vector<int>(all.size(), 3)), flat = whole.withFlat(all);
  auto kindsOf = [&](LayoutAttr from, LayoutAttr to) {
    llvm::Expected<ReshardPlan> plan = planReshard({kRows, kColumns}, from, to, mesh);
    EXPECT_TRUE(bool(plan));
    std::vector<Kind> kinds;
    for (const ReshardStep &step : plan->steps)
      if (step.kind != Kind::Pad && step.kind != Kind::Trim)
        kinds.push_back(step.kind);
    double padded = indicesOf(flat, 0).size() * mesh.getRanks();
    EXPECT_DOUBLE_EQ(plan->sentElements, padded * (mesh.getRanks() - 1) / mesh.getRanks());
    return kinds;
  };
  EXPECT_EQ(kindsOf(whole.withUnreduced(sums), flat), std::vector<Kind>{Kind::ReduceScatter});
  EXPECT_EQ(kindsOf(flat, whole), std::vector<Kind>{Kind::AllGather});
}

/// Reshards of more axes than are searched, with all kinds of moves, take bounded time and give the right values.
using ManyAxesTest = ReshardPlanTest;

TEST_P(ManyAxesTest, AreGatheredAndSliced) {
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  std::reverse(order.begin(), order.end());
  LayoutAttr from = makeLayout({0, 1, 2, 3, 4}, {0, 1, 2, 2, 4}), to = makeLayout(order, {2, 0, 0, 3, 2});
  ASSERT_TRUE(from && to);
  llvm::Expected<ReshardPlan> plan = planReshard({kRows, kColumns}, from, to, mesh);
  ASSERT_TRUE(bool(plan));
  std::vector<Part> parts(mesh.getRanks());
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank)
    for (int64_t index : indicesOf(from, rank))
      parts[rank].push_back(contribution(from, rank, index));
  for (const ReshardStep &step : plan->steps)
    execute(step, parts);
  for (int64_t rank = 0; rank < mesh.getRanks(); ++rank) {
    std::vector<int64_t> indices = indicesOf(to, rank);
    ASSERT_EQ(parts[rank].size(), indices.size());
    for (size_t i = 0; i < indices.size(); ++i)
      ASSERT_EQ(parts[rank][i], valueOf(indices[i]));
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, ManyAxesTest, testing::Values(std::vector<int64_t>{2, 2, 2, 2, 2}));

INSTANTIATE_TEST_SUITE_P(Meshes, FlatReshardTest,
                         testing::Values(std::vector<int64_t>{5}, std::vector<int64_t>{8}, std::vector<int64_t>{2, 5},
                                         std::vector<int64_t>{3, 3}, std::vector<int64_t>{2, 3, 5}));

INSTANTIATE_TEST_SUITE_P(Meshes, ReshardPlanTest,
                         testing::Values(std::vector<int64_t>{2}, std::vector<int64_t>{3}, std::vector<int64_t>{4},
                                         std::vector<int64_t>{6}, std::vector<int64_t>{8}, std::vector<int64_t>{2, 2},
                                         std::vector<int64_t>{2, 3}, std::vector<int64_t>{3, 2},
                                         std::vector<int64_t>{2, 4}, std::vector<int64_t>{4, 2},
                                         std::vector<int64_t>{2, 2, 2}));

} // namespace
