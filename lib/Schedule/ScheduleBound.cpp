#include "ScheduleBound.h"

#include "llvm/ADT/STLExtras.h"

using namespace windlass::schedule;

namespace {

/// Job n of the class runs after job n - `offset` of another class of its position, and so after all before that; seen
/// from the other class, job n runs before job n + `offset`.
struct Precedence {
  int64_t aClass, offset;
};

class BoundComputer {
public:
  explicit BoundComputer(const Jobs &jobs) : jobs(jobs), before(jobs.countClasses()), after(jobs.countClasses()) {
    for (const std::vector<int64_t> &classes : jobs.classesOf)
      for (int64_t from : classes)
        for (int64_t to : classes)
          if (std::optional<int64_t> offset = getOffset(from, to)) {
            before[to].push_back({from, *offset});
            after[from].push_back({to, *offset});
          }
    bound.heads.assign(jobs.countJobs(), 0);
    bound.tails.assign(jobs.countJobs(), 0);
  }

  ScheduleBound run() {
    // Each round raises heads and tails until nothing changes; few are needed, and any number gives a bound.
    int64_t rounds = std::clamp<int64_t>(kWork / (getRoundWork() * countThresholds()), 1, 20);
    for (int64_t round = 0; round < rounds; ++round)
      if (!raiseHeads())
        break;
    for (int64_t round = 0; round < rounds; ++round)
      if (!raiseTails())
        break;
    for (Job job = 0; job < jobs.countJobs(); ++job)
      bound.makespan = std::max(bound.makespan, bound.heads[job] + jobs.getLength(job) + bound.tails[job]);
    for (const std::vector<int64_t> &classes : jobs.classesOf)
      boundPosition(classes);
    return std::move(bound);
  }

private:
  /// Returns by how many micro-batches a job of `to` is later than the last job of `from` that must run before it;
  /// nothing where no job of one must run before one of the other.
  std::optional<int64_t> getOffset(int64_t from, int64_t to) const {
    if (from == to)
      return 1;
    int64_t fromChunk = from / jobs.kinds, toChunk = to / jobs.kinds;
    int64_t fromKind = from % jobs.kinds, toKind = to % jobs.kinds;
    if (jobs.getChain(fromChunk) != jobs.getChain(toChunk))
      return std::nullopt;
    if (fromKind == kForward)
      return toKind != kForward || fromChunk < toChunk ? std::optional<int64_t>(0) : std::nullopt;
    if (toKind != kForward) {
      // Gradients go back along the model; a weight gradient comes after its input gradient.
      bool precedes = fromKind == kInput && (toKind == kInput ? fromChunk > toChunk : fromChunk >= toChunk);
      return precedes ? std::optional<int64_t>(0) : std::nullopt;
    }
    // At a forward of micro-batch n, the position keeps those of its own chunk and, at least, micro-batch n of the
    // chunks between; so what the chunk before keeps is bounded.
    if (fromChunk > toChunk)
      return std::nullopt;
    int64_t position = jobs.positions[to], between = 0;
    for (int64_t other : jobs.classesOf[position])
      between += other % jobs.kinds == kForward && other / jobs.kinds > fromChunk && other / jobs.kinds <= toChunk;
    int64_t offset = jobs.caps[position] - between;
    return offset >= jobs.microBatches ? std::nullopt : std::optional<int64_t>(std::max<int64_t>(offset, 1));
  }

  /// Raises a head or tail; returns whether it was lower.
  static bool raise(int64_t &value, int64_t to) {
    if (value >= to)
      return false;
    value = to;
    return true;
  }

  static constexpr int64_t kWork = 400'000'000, kMaxThresholds = 64;

  /// Returns the work of a round with one threshold for each job.
  int64_t getRoundWork() const { return jobs.countJobs() * (jobs.countClasses() / jobs.countPositions()); }
  /// Returns the number of sets of earlier or later jobs that are looked at for each job: a set has the jobs from some
  /// micro-batch on, or up to it.
  int64_t countThresholds() const { return std::clamp<int64_t>(kWork / 4 / getRoundWork(), 1, kMaxThresholds); }
  /// Returns how many micro-batches two thresholds are apart.
  int64_t getStep() const { return 1 + jobs.microBatches / countThresholds(); }

  bool raiseHeads() {
    bool changed = false;
    std::vector<int64_t> &heads = bound.heads;
    for (int64_t n = 0; n < jobs.microBatches; ++n)
      visitAlong([&](int64_t aClass) {
        Job job = jobs.getJob(aClass, n);
        if (Job input = jobs.input[job]; input != kNoJob)
          changed |= raise(heads[job], heads[input] + jobs.getLength(input) + jobs.lag[job]);
        // The jobs before it from micro-batch `least` on run one after the other, the first not before its head.
        for (int64_t least = n; least >= 0; least -= getStep()) {
          int64_t load = 0, begin = std::numeric_limits<int64_t>::max();
          for (const Precedence &each : before[aClass]) {
            int64_t last = n - each.offset;
            if (last < least)
              continue;
            load += (last - least + 1) * jobs.lengths[each.aClass];
            begin = std::min(begin, heads[jobs.getJob(each.aClass, least)]);
          }
          if (load > 0)
            changed |= raise(heads[job], begin + load);
        }
      });
    return changed;
  }

  bool raiseTails() {
    bool changed = false;
    std::vector<int64_t> &tails = bound.tails;
    for (int64_t n = jobs.microBatches - 1; n >= 0; --n)
      visitBack([&](int64_t aClass) {
        Job job = jobs.getJob(aClass, n);
        if (Job output = jobs.output[job]; output != kNoJob)
          changed |= raise(tails[job], tails[output] + jobs.getLength(output) + jobs.lag[output]);
        for (int64_t most = n; most < jobs.microBatches; most += getStep()) {
          int64_t load = 0, tail = std::numeric_limits<int64_t>::max();
          for (const Precedence &each : after[aClass]) {
            int64_t first = n + each.offset;
            if (first > most)
              continue;
            load += (most - first + 1) * jobs.lengths[each.aClass];
            tail = std::min(tail, tails[jobs.getJob(each.aClass, most)]);
          }
          if (load > 0)
            changed |= raise(tails[job], tail + load);
        }
      });
    return changed;
  }

  /// Visits classes in the order in which a micro-batch comes through, or in the reverse order.
  template <class F> void visitAlong(F visit) {
    int64_t chunks = jobs.countClasses() / jobs.kinds;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      visit(jobs.getClass(chunk, kForward));
    for (int64_t chunk = chunks - 1; chunk >= 0; --chunk)
      for (int64_t kind = 1; kind < jobs.kinds; ++kind)
        visit(chunk * jobs.kinds + kind);
  }
  template <class F> void visitBack(F visit) {
    int64_t chunks = jobs.countClasses() / jobs.kinds;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      for (int64_t kind = jobs.kinds - 1; kind > 0; --kind)
        visit(chunk * jobs.kinds + kind);
    for (int64_t chunk = chunks - 1; chunk >= 0; --chunk)
      visit(jobs.getClass(chunk, kForward));
  }

  /// Bounds the makespan by a position's jobs from one micro-batch to another: they run one after the other, between
  /// the least head and the least tail.
  void boundPosition(llvm::ArrayRef<int64_t> classes) {
    int64_t load = 0;
    for (int64_t aClass : classes)
      load += jobs.lengths[aClass];
    for (int64_t first = 0; first < jobs.microBatches; first += getStep())
      for (int64_t last = first; last < jobs.microBatches; last += getStep()) {
        int64_t head = std::numeric_limits<int64_t>::max(), tail = head;
        for (int64_t aClass : classes) {
          head = std::min(head, bound.heads[jobs.getJob(aClass, first)]);
          tail = std::min(tail, bound.tails[jobs.getJob(aClass, last)]);
        }
        bound.makespan = std::max(bound.makespan, head + (last - first + 1) * load + tail);
      }
    // All micro-batches together, whatever the step.
    int64_t head = std::numeric_limits<int64_t>::max(), tail = head;
    for (int64_t aClass : classes) {
      head = std::min(head, bound.heads[jobs.getJob(aClass, 0)]);
      tail = std::min(tail, bound.tails[jobs.getJob(aClass, jobs.microBatches - 1)]);
    }
    bound.makespan = std::max(bound.makespan, head + jobs.microBatches * load + tail);
  }

  const Jobs &jobs;
  /// What must run before and after the jobs of each class on their position.
  std::vector<std::vector<Precedence>> before, after;
  ScheduleBound bound;
};

} // namespace

ScheduleBound windlass::schedule::computeBound(const Jobs &jobs) { return BoundComputer(jobs).run(); }
