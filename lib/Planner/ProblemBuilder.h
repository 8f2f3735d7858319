// Assembles a problem of labels: nodes, rows of memories, streams of windows, tables of edges.
#ifndef WINDLASS_LIB_PLANNER_PROBLEMBUILDER_H
#define WINDLASS_LIB_PLANNER_PROBLEMBUILDER_H

#include "Lifetimes.h"
#include "Reshards.h"
#include "StepWindows.h"

#include "windlass/Search/Problem.h"

namespace windlass::planner {

/// The bytes that a device may place in one kind of memory.
struct Memory {
  plan::MemoryKind kind = plan::MemoryKind::device;
  int64_t budgetBytes = search::kUnlimitedBytes;
};

/// The setting that the problem of a range of operators is built for: the memories of a device, and how often its step
/// repeats the range.
struct RangeSetting {
  /// The kinds of memory that labels may use, each once.
  std::vector<Memory> memories = {Memory()};
  /// Whether a memory of this kind has rows in the problem.
  bool limits(plan::MemoryKind kind) const {
    return llvm::any_of(memories, [&](const Memory &memory) { return memory.kind == kind; });
  }
  StepWindows windows;
  /// The gradient accumulation steps m: micro-batches that a rank runs one after another.
  int64_t accumulationSteps = 1;
  /// The number of micro-batches whose stashes a rank holds at one time, at least 1. It is no whole number where a rank
  /// holds stashes of chunks, which are parts of those of a micro-batch.
  double inFlight = 1;
  /// The positions that share the range, where its chunks are not known apart: each holds this part of what stays from
  /// step to step.
  int64_t positions = 1;
  /// The threads that build tables; their number does not change the problem.
  int threads = 1;
};

/// The layouts at both ends of an edge, by label: that in which a value is found, and that in which it is wanted.
struct EdgeLayouts {
  std::vector<plan::LayoutAttr> found, wanted;
};

/// Builds one problem after another. Its rows are those of the setting's memories, one memory behind the other, then
/// the streams of its windows. Costs are nanoseconds of a step, bytes those of a rank.
class ProblemBuilder {
public:
  /// Returns the cost of finding a value in one layout and wanting it in another.
  using ReshardCost = std::function<int64_t(plan::LayoutAttr, plan::LayoutAttr)>;
  /// Returns the cost of a label of one node with a label of another.
  using PairCost = std::function<int64_t(size_t, size_t)>;
  /// Work that the backward pass of each micro-batch does `count` times.
  struct Work {
    int64_t count, picoseconds;
  };

  /// `reshards` outlives this object.
  ProblemBuilder(const RangeSetting &setting, Reshards &reshards) : setting(setting), reshards(reshards) {}

  const RangeSetting &getSetting() const { return setting; }

  /// Begins a problem without nodes, with `rows` rows for each memory. At most `loads` nodes will put loads on a
  /// stream.
  void begin(int32_t rows, int64_t loads);
  /// Returns the problem. Its tables must have been filled.
  search::Problem take() { return std::move(problem); }

  /// Adds a node with a label for each cost, and returns its number.
  int32_t addNode(std::vector<int64_t> costs);
  int32_t countNodes() const { return static_cast<int32_t>(problem.nodes.size()); }
  size_t countLabels(int32_t node) const { return problem.nodes[node].costs.size(); }
  /// Adds to the cost of a node's label.
  void addCost(int32_t node, size_t label, int64_t cost);
  /// Adds to the costs of a node, one for each label.
  void addCosts(int32_t node, const std::vector<int64_t> &costs);
  /// Adds to a node the load that each of its labels puts on a stream (`StepWindows::find`).
  void addLoad(int32_t node, int32_t stream, std::vector<int64_t> load);
  /// Adds to a node the time of work in the backward passes, one for each label.
  void addBackwardWork(int32_t node, const std::vector<Work> &works);
  /// Adds to a node the bytes that its labels take in a memory while `runs` live: `bytes` by label, for each value.
  void addBytes(int32_t node, plan::MemoryKind memory, const std::vector<LiveRun> &runs,
                const std::vector<int64_t> &bytes);
  /// Adds to a node the bytes that its labels take in a memory all the time, by label.
  void addHeldBytes(int32_t node, plan::MemoryKind memory, const std::vector<int64_t> &bytes);

  /// Adds an edge whose costs are those of reshards of one type; an edge from a node to itself adds to the node's
  /// costs. `fillTables` calls `cost`, so everything that it refers to must live until then.
  void addEdge(int32_t from, int32_t to, mlir::RankedTensorType type, const EdgeLayouts &layouts, ReshardCost cost);
  /// Adds an edge whose costs depend on the layout in which a value of the type is found, and on the other label.
  void addEdge(int32_t from, int32_t to, mlir::RankedTensorType type, const std::vector<plan::LayoutAttr> &found,
               PairCost cost);
  /// The number of times that a stream (`StepWindows::find`) carries the cost of an edge.
  struct Carrier {
    int32_t stream;
    int64_t count;
  };
  /// Adds what streams carry of a node, in picoseconds by label, each as often as it says.
  void addLoads(int32_t node, const std::vector<Carrier> &carriers, const std::vector<int64_t> &picoseconds);
  /// Adds an edge whose cost, in picoseconds, streams carry, as a node between the two.
  void addEdgeLoad(int32_t from, int32_t to, mlir::RankedTensorType type, std::vector<Carrier> carriers,
                   const EdgeLayouts &layouts, ReshardCost picoseconds);
  /// Fills the tables of the edges, those of different types on threads side by side, and drops edges that cost
  /// nothing. Tables do not depend on what is recomputed: later problems take those of the first, which are most of the
  /// work of building. All problems therefore add the same edges in the same order before.
  void fillTables();
  /// Adds an edge that forbids two labels whose numbers differ; tables have been filled before.
  void addLink(int32_t from, int32_t to, llvm::ArrayRef<int64_t> fromNumbers, llvm::ArrayRef<int64_t> toNumbers);

private:
  /// Returns the first row of a memory, which the setting has.
  int32_t findRows(plan::MemoryKind memory) const;

  RangeSetting setting;
  Reshards &reshards;
  search::Problem problem;
  int32_t memoryRows = 0;
  int64_t mostLoad = 0;
  /// Labels of one end of an edge that cost the same: the number of each, and the first label of each number.
  struct Alike {
    std::vector<size_t> numbers, fronts;
    Alike(size_t count, llvm::function_ref<bool(size_t, size_t)> areAlike);
    static Alike byLayout(const std::vector<plan::LayoutAttr> &layouts);
  };
  /// The table that an edge wants, kept until `fillTables`.
  struct WantedTable {
    mlir::RankedTensorType type;
    Alike rows, columns;
    PairCost cost;
    /// Returns the costs [front of a row][front of a column].
    std::vector<int64_t> getFronts() const;
  };
  void addEdge(int32_t from, int32_t to, WantedTable wanted);
  static WantedTable want(mlir::RankedTensorType type, const EdgeLayouts &layouts, ReshardCost cost);
  std::vector<WantedTable> wantedTables;
  /// The edges whose costs streams carry.
  struct CarriedEdge {
    search::Edge edge;
    std::vector<Carrier> carriers;
    WantedTable wanted;
  };
  std::vector<CarriedEdge> carriedEdges;
  void addCarried(const CarriedEdge &carried);
  /// The tables of the first problem, in the order in which edges are added.
  std::vector<std::vector<int64_t>> knownTables;
};

} // namespace windlass::planner

#endif
