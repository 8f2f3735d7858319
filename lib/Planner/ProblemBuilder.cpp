#include "ProblemBuilder.h"

#include "StepCosts.h"

#include "windlass/Support/RunTasks.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

void ProblemBuilder::begin(int32_t rows, int64_t loads) {
  problem = {};
  wantedTables.clear();
  carriedEdges.clear();
  memoryRows = std::max(rows, 1);
  for (const Memory &memory : setting.memories)
    problem.capacity.insert(problem.capacity.end(), memoryRows, memory.budgetBytes);
  setting.windows.addTo(problem);
  // The sum of all loads stays within what rows may hold.
  mostLoad = (int64_t(1) << 58) / std::max<int64_t>(loads, 1);
}

int32_t ProblemBuilder::addNode(std::vector<int64_t> costs) {
  problem.nodes.push_back({std::move(costs), {}});
  return countNodes() - 1;
}

void ProblemBuilder::addCost(int32_t node, size_t label, int64_t cost) {
  int64_t &own = problem.nodes[node].costs[label];
  own = search::addCosts(own, cost);
}

void ProblemBuilder::addCosts(int32_t node, const std::vector<int64_t> &costs) {
  for (auto [label, cost] : llvm::enumerate(costs))
    addCost(node, label, cost);
}

void ProblemBuilder::addLoad(int32_t node, int32_t stream, std::vector<int64_t> load) {
  if (llvm::all_of(load, [](int64_t each) { return each == 0; }))
    return;
  for (int64_t &each : load)
    each = std::min(each, mostLoad);
  auto streams = static_cast<int32_t>(problem.capacity.size()), row = streams + stream;
  std::vector<search::Piece> &pieces = problem.nodes[node].pieces;
  if (!pieces.empty() && pieces.back().begin >= streams && pieces.back().end == row && pieces.back().usage == load)
    ++pieces.back().end;
  else
    pieces.push_back({row, row + 1, std::move(load)});
}

void ProblemBuilder::addBackwardWork(int32_t node, const std::vector<Work> &works) {
  std::optional<int32_t> before = setting.windows.find(WindowKind::backward, StreamKind::compute),
                         last = setting.windows.find(WindowKind::lastBackward, StreamKind::compute);
  int64_t stepsBefore = setting.accumulationSteps - 1, exposed = (before ? 0 : stepsBefore) + (last ? 0 : 1);
  std::vector<int64_t> loadBefore, loadLast;
  for (auto [label, work] : llvm::enumerate(works)) {
    if (exposed > 0)
      addCost(node, label, toCost(exposed * work.count, work.picoseconds));
    loadBefore.push_back(toCost(stepsBefore * work.count, work.picoseconds));
    loadLast.push_back(toCost(work.count, work.picoseconds));
  }
  if (before)
    addLoad(node, *before, std::move(loadBefore));
  if (last)
    addLoad(node, *last, std::move(loadLast));
}

int32_t ProblemBuilder::findRows(plan::MemoryKind memory) const {
  auto found = llvm::find_if(setting.memories, [&](const Memory &its) { return its.kind == memory; });
  assert(found != setting.memories.end() && "labels use memories of the setting only");
  return static_cast<int32_t>(found - setting.memories.begin()) * memoryRows;
}

void ProblemBuilder::addBytes(int32_t node, plan::MemoryKind memory, const std::vector<LiveRun> &runs,
                              const std::vector<int64_t> &bytes) {
  int32_t first = findRows(memory);
  for (LiveRun run : runs) {
    search::Piece &piece = problem.nodes[node].pieces.emplace_back();
    piece.begin = first + run.begin;
    piece.end = first + run.end;
    for (int64_t each : bytes)
      piece.usage.push_back(run.parts * each / kRecomputeParts);
  }
}

void ProblemBuilder::addHeldBytes(int32_t node, plan::MemoryKind memory, const std::vector<int64_t> &bytes) {
  addBytes(node, memory, {{0, memoryRows, kRecomputeParts}}, bytes);
}

ProblemBuilder::Alike::Alike(size_t count, llvm::function_ref<bool(size_t, size_t)> areAlike) {
  for (size_t i = 0; i < count; ++i) {
    auto found = llvm::find_if(fronts, [&](size_t front) { return areAlike(front, i); });
    numbers.push_back(found - fronts.begin());
    if (found == fronts.end())
      fronts.push_back(i);
  }
}

ProblemBuilder::Alike ProblemBuilder::Alike::byLayout(const std::vector<plan::LayoutAttr> &layouts) {
  return Alike(layouts.size(), [&](size_t a, size_t b) { return layouts[a] == layouts[b]; });
}

std::vector<int64_t> ProblemBuilder::WantedTable::getFronts() const {
  std::vector<int64_t> costs;
  for (size_t i : rows.fronts)
    for (size_t j : columns.fronts)
      costs.push_back(cost(i, j));
  return costs;
}

ProblemBuilder::WantedTable ProblemBuilder::want(RankedTensorType type, const EdgeLayouts &layouts, ReshardCost cost) {
  return {type, Alike::byLayout(layouts.found), Alike::byLayout(layouts.wanted),
          [layouts, cost = std::move(cost)](size_t i, size_t j) { return cost(layouts.found[i], layouts.wanted[j]); }};
}

void ProblemBuilder::addEdge(int32_t from, int32_t to, RankedTensorType type, const EdgeLayouts &layouts,
                             ReshardCost cost) {
  addEdge(from, to, want(type, layouts, std::move(cost)));
}

void ProblemBuilder::addEdge(int32_t from, int32_t to, RankedTensorType type,
                             const std::vector<plan::LayoutAttr> &found, PairCost cost) {
  Alike columns(countLabels(to), [](size_t, size_t) { return false; });
  addEdge(from, to, {type, Alike::byLayout(found), std::move(columns), std::move(cost)});
}

void ProblemBuilder::addEdge(int32_t from, int32_t to, WantedTable wanted) {
  if (from == to) {
    for (size_t label = 0; label < countLabels(from); ++label)
      addCost(from, label, wanted.cost(label, label));
    return;
  }
  reshards.prepare(wanted.type);
  problem.edges.push_back({from, to, 0});
  wantedTables.push_back(std::move(wanted));
}

void ProblemBuilder::fillTables() {
  if (knownTables.empty()) {
    knownTables.resize(wantedTables.size());
    llvm::MapVector<Type, std::vector<size_t>> byType;
    for (auto [i, wanted] : llvm::enumerate(wantedTables))
      byType[wanted.type].push_back(i);
    runTasks(setting.threads, static_cast<int>(byType.size()), [&](int t) {
      for (size_t edge : (byType.begin() + t)->second) {
        const WantedTable &wanted = wantedTables[edge];
        std::vector<int64_t> fronts = wanted.getFronts();
        knownTables[edge].reserve(wanted.rows.numbers.size() * wanted.columns.numbers.size());
        for (size_t row : wanted.rows.numbers)
          for (size_t column : wanted.columns.numbers)
            knownTables[edge].push_back(fronts[row * wanted.columns.fronts.size() + column]);
      }
    });
  }
  std::vector<search::Edge> edges;
  for (auto [edge, table] : llvm::zip_equal(problem.edges, knownTables))
    if (llvm::any_of(table, [](int64_t each) { return each != 0; })) {
      edges.push_back({edge.from, edge.to, static_cast<int32_t>(problem.tables.size())});
      problem.tables.push_back(table);
    }
  problem.edges = std::move(edges);
  wantedTables.clear();
  for (const CarriedEdge &carried : carriedEdges)
    addCarried(carried);
}

void ProblemBuilder::addEdgeLoad(int32_t from, int32_t to, RankedTensorType type, std::vector<Carrier> carriers,
                                 const EdgeLayouts &layouts, ReshardCost picoseconds) {
  reshards.prepare(type);
  carriedEdges.push_back({{from, to, 0}, std::move(carriers), want(type, layouts, std::move(picoseconds))});
}

void ProblemBuilder::addLoads(int32_t node, const std::vector<Carrier> &carriers,
                              const std::vector<int64_t> &picoseconds) {
  for (const Carrier &carrier : carriers) {
    std::vector<int64_t> load;
    for (int64_t each : picoseconds)
      load.push_back(toWholeCost(carrier.count, each));
    addLoad(node, carrier.stream, std::move(load));
  }
}

/// The node between has a label for each pair of labels that cost differently.
void ProblemBuilder::addCarried(const CarriedEdge &carried) {
  int32_t from = carried.edge.from, to = carried.edge.to;
  const WantedTable &wanted = carried.wanted;
  if (from == to) {
    std::vector<int64_t> load;
    for (size_t label = 0; label < countLabels(from); ++label)
      load.push_back(wanted.cost(label, label));
    return addLoads(from, carried.carriers, load);
  }
  std::vector<int64_t> fronts = wanted.getFronts();
  if (llvm::all_of(fronts, [](int64_t cost) { return cost == 0; }))
    return;
  size_t height = wanted.rows.fronts.size(), width = wanted.columns.fronts.size();
  auto at = [&](size_t i, size_t j) { return fronts[i * width + j]; };
  Alike rows(height, [&](size_t a, size_t b) {
    return llvm::all_of(llvm::seq(width), [&](size_t j) { return at(a, j) == at(b, j); });
  });
  Alike columns(width, [&](size_t a, size_t b) {
    return llvm::all_of(rows.fronts, [&](size_t i) { return at(i, a) == at(i, b); });
  });
  std::vector<int64_t> load;
  for (size_t i : rows.fronts)
    for (size_t j : columns.fronts)
      load.push_back(at(i, j));
  int32_t node = addNode(std::vector<int64_t>(load.size(), 0));
  addLoads(node, carried.carriers, load);
  auto count = static_cast<int64_t>(columns.fronts.size());
  auto numbersOf = [](const Alike &labels, const Alike &classes) {
    return llvm::map_to_vector(labels.numbers, [&](size_t i) { return static_cast<int64_t>(classes.numbers[i]); });
  };
  SmallVector<int64_t> rowOf, columnOf;
  for (int64_t k = 0; k < static_cast<int64_t>(load.size()); ++k) {
    rowOf.push_back(k / count);
    columnOf.push_back(k % count);
  }
  addLink(from, node, numbersOf(wanted.rows, rows), rowOf);
  addLink(node, to, columnOf, numbersOf(wanted.columns, columns));
}

void ProblemBuilder::addLink(int32_t from, int32_t to, ArrayRef<int64_t> fromNumbers, ArrayRef<int64_t> toNumbers) {
  problem.edges.push_back({from, to, static_cast<int32_t>(problem.tables.size())});
  std::vector<int64_t> &table = problem.tables.emplace_back();
  table.reserve(fromNumbers.size() * toNumbers.size());
  for (int64_t number : fromNumbers)
    for (int64_t other : toNumbers)
      table.push_back(number == other ? 0 : search::kForbidden);
}
