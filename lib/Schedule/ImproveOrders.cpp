#include "ImproveOrders.h"

#include "ListScheduler.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace windlass::schedule;

namespace {

/// The job at index `from` of a position's order goes to index `to`; those between move by one.
struct Move {
  int64_t position = 0;
  size_t from = 0, to = 0;
  /// The length of the longest path through the jobs that change places, estimated.
  int64_t estimate = 0;
};

class TabuSearch {
public:
  TabuSearch(const Jobs &jobs, Orders &orders, int64_t bound, uint64_t seed, WorkLeft &work)
      : jobs(jobs), best(orders), current(orders), bound(bound), random(seed), work(work), places(jobs.countJobs()) {}

  int64_t run() {
    evaluate();
    int64_t makespan = now.makespan;
    for (; makespan > bound && !work.isSpent(); ++turn) {
      if (turn % kKickAfter == kKickAfter - 1 || !step(makespan))
        kick();
      if (now.makespan > makespan)
        continue;
      // Equal orders are taken too, so that the next kick begins elsewhere.
      makespan = now.makespan;
      best = current;
    }
    return makespan;
  }

private:
  static constexpr int64_t kKickAfter = 50;

  /// Computes begins, tails and places of the current orders. Returns false where a position would wait for ever.
  bool evaluate() {
    work.jobs -= 2 * jobs.countJobs();
    if (!computeBegins(jobs, current, now))
      return false;
    computeTails(jobs, current, now);
    for (const std::vector<Job> &order : current)
      for (auto [index, job] : llvm::enumerate(order))
        places[job] = index;
    return true;
  }

  int64_t getEnd(Job job) const { return now.begins[job] + jobs.getLength(job); }
  int64_t getArrival(Job job) const {
    Job input = jobs.input[job];
    return input == kNoJob ? 0 : getEnd(input) + jobs.lag[job];
  }
  /// Returns how long the step takes from the end of a job on, along what other positions do.
  int64_t getTailOfOutput(Job job) const {
    Job output = jobs.output[job];
    return output == kNoJob ? 0 : jobs.lag[output] + jobs.getLength(output) + now.tails[output];
  }

  /// Goes back to the best orders and changes them at random, to begin elsewhere.
  void kick() {
    current = best;
    evaluate();
    if (random.below(2) == 0)
      return shiftMicroBatches();
    for (int64_t count = 2 + random.below(2 * jobs.countPositions()); count > 0; --count) {
      int64_t position = random.below(jobs.countPositions());
      size_t size = current[position].size();
      if (size < 2)
        continue;
      size_t from = random.below(size), to = std::min(size - 1, from + 1 + random.below(4));
      if (random.below(2) == 0)
        std::swap(from, to);
      moves.clear();
      consider(position, from, to);
      if (moves.empty())
        continue;
      Move move = moves.front();
      apply(move);
      if (!evaluate()) {
        apply({move.position, move.to, move.from, 0});
        evaluate();
      }
    }
  }

  /// Lets the forwards or the backwards of some micro-batches come earlier or later on all positions, and schedules
  /// everything again as near as that allows to how it was.
  void shiftMicroBatches() {
    std::vector<int64_t> keys = now.begins;
    for (int64_t count = 1 + random.below(3); count > 0; --count) {
      int64_t first = random.below(jobs.microBatches);
      int64_t last = std::min(jobs.microBatches - 1, first + random.below(4));
      int64_t chunks = jobs.countClasses() / jobs.kinds;
      int64_t firstChunk = random.below(chunks), lastChunk = firstChunk + random.below(chunks - firstChunk);
      int64_t kinds = 1 + random.below((1 << jobs.kinds) - 1);
      int64_t shift = (random.below(2) == 0 ? 1 : -1) * (1 + random.below(1 + now.makespan / 6));
      for (int64_t chunk = firstChunk; chunk <= lastChunk; ++chunk)
        for (int64_t kind = 0; kind < jobs.kinds; ++kind)
          for (int64_t n = first; (kinds >> kind & 1) && n <= last; ++n)
            keys[jobs.getJob(chunk * jobs.kinds + kind, n)] += shift;
    }
    current = scheduleByKeys(jobs, keys);
    work.jobs -= 6 * jobs.countJobs();
    evaluate();
  }

  /// Makes the best move that is not forbidden. Returns false where there is none.
  bool step(int64_t makespan) {
    collectMoves();
    while (!moves.empty()) {
      size_t chosen = chooseMove(makespan);
      Move move = moves[chosen];
      apply(move);
      if (evaluate()) {
        forbid(move);
        return true;
      }
      // A circle of waits: undone, and not tried again.
      apply({move.position, move.to, move.from, 0});
      evaluate();
      moves.erase(moves.begin() + chosen);
    }
    return false;
  }

  size_t chooseMove(int64_t makespan) {
    size_t chosen = 0, seen = 0;
    std::pair<bool, int64_t> least = {true, std::numeric_limits<int64_t>::max()};
    for (auto [index, move] : llvm::enumerate(moves)) {
      bool isForbidden = isTabu(move) && move.estimate >= makespan;
      // Among forbidden moves, any will do.
      std::pair<bool, int64_t> rank = {isForbidden, isForbidden ? 0 : move.estimate};
      if (rank < least) {
        least = rank;
        seen = 0;
      }
      if (rank == least && random.below(++seen) == 0)
        chosen = index;
    }
    return chosen;
  }

  /// Collects moves of jobs to the begin or the end of their block on a critical path: nothing else makes the path
  /// shorter.
  void collectMoves() {
    moves.clear();
    Job job = findLast();
    while (job != kNoJob) {
      int64_t position = jobs.getPosition(job);
      const std::vector<Job> &order = current[position];
      size_t last = places[job], first = last;
      // A block: jobs of a position, each of which begins when the one before it ends.
      Job input = kNoJob;
      while (true) {
        Job begin = order[first];
        bool followsInput = jobs.input[begin] != kNoJob && getArrival(begin) == now.begins[begin];
        bool followsOther = first > 0 && getEnd(order[first - 1]) == now.begins[begin];
        if (followsInput && (!followsOther || random.below(2) == 0)) {
          input = jobs.input[begin];
          break;
        }
        if (!followsOther)
          break;
        --first;
      }
      collectMoves(position, first, last);
      job = input;
    }
  }

  Job findLast() {
    Job last = kNoJob;
    int64_t seen = 0;
    for (const std::vector<Job> &order : current)
      if (!order.empty() && getEnd(order.back()) == now.makespan && random.below(++seen) == 0)
        last = order.back();
    return last;
  }

  void collectMoves(int64_t position, size_t first, size_t last) {
    for (size_t index = first + 1; index <= last; ++index)
      consider(position, index, first);
    for (size_t index = first; index < last; ++index)
      consider(position, index, last);
  }

  /// Returns whether the job at `from` may run before, or after, the one at `to` instead.
  bool mayPass(const std::vector<Job> &order, size_t from, size_t to) const {
    Job job = order[from], other = order[to];
    return jobs.getClass(job) != jobs.getClass(other) && jobs.input[job] != other && jobs.input[other] != job;
  }

  void consider(int64_t position, size_t from, size_t to) {
    const std::vector<Job> &order = current[position];
    bool isEarlier = to < from;
    // Not farther than the nearest job that must not be passed.
    size_t reach = from;
    while (reach != to && mayPass(order, from, isEarlier ? reach - 1 : reach + 1))
      reach += isEarlier ? -1 : 1;
    if (reach == from || !keepsCap(position, from, reach))
      return;
    // Where it does not reach the end of its block, only a short way is worth a try.
    if (reach != to && std::max(reach, from) - std::min(reach, from) > 6)
      return;
    moves.push_back({position, from, reach, estimate(position, from, reach)});
  }

  /// Returns whether the position's cap holds after the move.
  bool keepsCap(int64_t position, size_t from, size_t to) {
    int64_t cap = jobs.caps[position];
    const std::vector<Job> &order = current[position];
    Job job = order[from];
    // Only a forward that comes earlier, or a release that comes later, adds to what is kept.
    if (!(to < from ? jobs.getTaken(job) : jobs.getFreed(job)))
      return true;
    int64_t live = 0;
    for (size_t index = 0; index < std::min(from, to); ++index)
      live += jobs.getTaken(order[index]) - jobs.getFreed(order[index]);
    work.jobs -= 1 + static_cast<int64_t>(std::max(from, to) / 8);
    auto run = [&](Job each) {
      live += jobs.getTaken(each);
      bool fits = live <= cap;
      live -= jobs.getFreed(each);
      return fits;
    };
    if (to < from && !run(job))
      return false;
    for (size_t index = std::min(from, to); index <= std::max(from, to); ++index)
      if (index != from && !run(order[index]))
        return false;
    return to < from || run(job);
  }

  int64_t estimate(int64_t position, size_t from, size_t to) {
    const std::vector<Job> &order = current[position];
    size_t low = std::min(from, to), high = std::max(from, to);
    sequence.clear();
    if (to < from)
      sequence.push_back(order[from]);
    for (size_t index = low; index <= high; ++index)
      if (index != from)
        sequence.push_back(order[index]);
    if (to > from)
      sequence.push_back(order[from]);
    int64_t clock = low > 0 ? getEnd(order[low - 1]) : 0;
    heads.clear();
    for (Job job : sequence) {
      clock = std::max(clock, getArrival(job));
      heads.push_back(clock);
      clock += jobs.getLength(job);
    }
    int64_t tail = high + 1 < order.size() ? now.tails[order[high + 1]] + jobs.getLength(order[high + 1]) : 0;
    int64_t longest = 0;
    for (size_t index = sequence.size(); index-- > 0;) {
      tail = std::max(tail, getTailOfOutput(sequence[index])) + jobs.getLength(sequence[index]);
      longest = std::max(longest, heads[index] + tail);
    }
    work.jobs -= static_cast<int64_t>(sequence.size());
    return longest;
  }

  void apply(const Move &move) {
    std::vector<Job> &order = current[move.position];
    auto begin = order.begin();
    if (move.to < move.from)
      std::rotate(begin + move.to, begin + move.from, begin + move.from + 1);
    else
      std::rotate(begin + move.from, begin + move.from + 1, begin + move.to + 1);
  }

  /// Forbids for a while that the job goes back behind, or before, those that it has passed.
  void forbid(const Move &move) {
    const std::vector<Job> &order = current[move.position];
    Job moved = order[move.to];
    int64_t until = turn + 8 + random.below(12);
    for (size_t index = std::min(move.from, move.to); index <= std::max(move.from, move.to); ++index)
      if (order[index] != moved)
        tabu[move.to < move.from ? std::pair(order[index], moved) : std::pair(moved, order[index])] = until;
  }

  /// Returns whether the move puts a job before another one that it must not come before.
  bool isTabu(const Move &move) const {
    const std::vector<Job> &order = current[move.position];
    Job moved = order[move.from];
    for (size_t index = std::min(move.from, move.to); index <= std::max(move.from, move.to); ++index) {
      if (index == move.from)
        continue;
      auto it = tabu.find(move.to < move.from ? std::pair(moved, order[index]) : std::pair(order[index], moved));
      if (it != tabu.end() && it->second > turn)
        return true;
    }
    return false;
  }

  const Jobs &jobs;
  Orders &best;
  Orders current;
  int64_t bound, turn = 0;
  RandomNumbers random;
  WorkLeft &work;
  Evaluation now;
  /// The index of each job in its position's order.
  std::vector<size_t> places;
  std::vector<Move> moves;
  /// Pairs of jobs of which the first must not come before the second until a turn.
  llvm::DenseMap<std::pair<Job, Job>, int64_t> tabu;
  std::vector<Job> sequence;
  std::vector<int64_t> heads;
};

} // namespace

int64_t windlass::schedule::improveOrders(const Jobs &jobs, Orders &orders, int64_t bound, uint64_t seed,
                                          WorkLeft &work) {
  return TabuSearch(jobs, orders, bound, seed, work).run();
}
