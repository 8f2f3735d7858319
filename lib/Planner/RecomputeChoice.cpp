#include "RecomputeChoice.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;

/// Returns each of `numbers` once, in ascending order.
static std::vector<int64_t> makeDistinct(std::vector<int64_t> numbers) {
  llvm::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

using AddWorks = llvm::function_ref<void(int32_t, const std::vector<ProblemBuilder::Work> &)>;

/// Adds the time of recomputing a group's operators by `addWorks`; `counts` are its recomputed members by label of the
/// class, whose node is `choice`.
static void addTime(ProblemBuilder &builder, RangePrices &prices, unsigned group, const std::vector<int64_t> &counts,
                    int32_t choice, AddWorks addWorks) {
  std::vector<int64_t> picoseconds = prices.getRecomputeTimes(group);
  std::vector<ProblemBuilder::Work> works;
  for (int64_t each : makeDistinct(picoseconds))
    for (int64_t count : makeDistinct(counts))
      works.push_back({count, each});
  if (llvm::all_of(works, [](const ProblemBuilder::Work &work) { return work.count == 0 || work.picoseconds == 0; }))
    return;
  int32_t time = builder.addNode(std::vector<int64_t>(works.size(), 0));
  addWorks(time, works);
  auto timeOf = [](const ProblemBuilder::Work &work) { return work.picoseconds; };
  auto countOf = [](const ProblemBuilder::Work &work) { return work.count; };
  builder.addLink(static_cast<int32_t>(group), time, picoseconds, llvm::map_to_vector(works, timeOf));
  builder.addLink(time, choice, llvm::map_to_vector(works, countOf), counts);
}

static void addMemory(ProblemBuilder &builder, const ChosenMemory &memory, int32_t choice) {
  std::vector<std::vector<LiveRun>> runs;
  for (const std::vector<LiveRun> &each : memory.runs)
    if (!llvm::is_contained(runs, each))
      runs.push_back(each);
  std::vector<int64_t> bytes = makeDistinct(memory.bytes);
  int32_t node = builder.addNode(std::vector<int64_t>(runs.size() * bytes.size(), 0));
  for (size_t k = 0; k < runs.size(); ++k) {
    std::vector<int64_t> usage(runs.size() * bytes.size(), 0);
    llvm::copy(bytes, usage.begin() + static_cast<int64_t>(k * bytes.size()));
    builder.addBytes(node, plan::MemoryKind::device, runs[k], usage);
  }
  SmallVector<int64_t> runsOf, bytesOf;
  for (size_t k = 0; k < runs.size(); ++k)
    for (int64_t each : bytes) {
      runsOf.push_back(static_cast<int64_t>(k));
      bytesOf.push_back(each);
    }
  builder.addLink(memory.source, node, memory.bytes, bytesOf);
  builder.addLink(node, choice, runsOf, llvm::map_to_vector(memory.runs, [&](const std::vector<LiveRun> &its) {
                    return static_cast<int64_t>(llvm::find(runs, its) - runs.begin());
                  }));
}

/// Returns how many of a group's operators the first chunk is certain to recompute, of the blocks but one of which it
/// runs all operators, where `recomputed` of all operators are.
static int64_t countOfFirst(const Groups &groups, const Lifetimes &lifetimes, unsigned group, int64_t recomputed,
                            int64_t blocks) {
  auto members = static_cast<int64_t>(groups.getOperators()[group].ops.size());
  int64_t own = recomputed - (members - lifetimes.countOnFirst(group));
  return std::max<int64_t>(std::min(own, blocks) - 1, 0);
}

void planner::addRecomputeChoice(ProblemBuilder &builder, RangePrices &prices, const Groups &groups,
                                 const RecomputeClasses &recompute, const Lifetimes &lifetimes,
                                 const std::vector<ChosenMemory> &memory) {
  for (auto [index, its] : llvm::enumerate(recompute.getClasses())) {
    int64_t ofFirst = lifetimes.hasFirst() ? lifetimes.countFirstBlocks(index) : 0;
    // One choice for all blocks, and one for those of the first chunk.
    for (bool isOfFirst : {false, true}) {
      if (isOfFirst && ofFirst < 2)
        continue;
      int32_t choice = builder.addNode(std::vector<int64_t>(its.labels.size(), 0));
      for (auto &[group, counts] : its.counts) {
        std::vector<int64_t> certain;
        // Shares are of all blocks but one (`Lifetimes::getRunsByLabel`).
        for (int64_t count : counts)
          certain.push_back(isOfFirst ? countOfFirst(groups, lifetimes, group, count, ofFirst)
                                      : std::max<int64_t>(count - (its.blocks.size() > 1), 0));
        addTime(builder, prices, group, certain, choice,
                [&](int32_t time, const std::vector<ProblemBuilder::Work> &works) {
                  isOfFirst ? prices.addRecomputeOfFirst(time, works) : prices.addRecompute(time, works);
                });
      }
      for (const ChosenMemory &each : memory)
        if (each.recomputeClass == index && each.isOfFirst == isOfFirst)
          addMemory(builder, each, choice);
    }
  }
}
