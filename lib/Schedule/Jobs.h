// The search's view of a pipeline: jobs under numbers, and the order of each position's jobs.
#ifndef WINDLASS_SCHEDULE_JOBS_H
#define WINDLASS_SCHEDULE_JOBS_H

#include "windlass/Schedule/ScheduleProblem.h"

#include <limits>

namespace windlass::schedule {

/// The number of a job: a forward, a backward or a part of one of a micro-batch of a chunk.
using Job = int32_t;
constexpr Job kNoJob = -1;

/// The kinds of jobs; without split backwards, an input gradient is a whole backward and there is no weight gradient.
enum JobKind : int8_t { kForward, kInput, kWeight };

/// All jobs of a problem. A class is a chunk and a kind; its jobs run in the order of micro-batches.
class Jobs {
public:
  explicit Jobs(const ScheduleProblem &problem);

  int64_t countJobs() const { return static_cast<int64_t>(input.size()); }
  int64_t countPositions() const { return static_cast<int64_t>(classesOf.size()); }
  int64_t countClasses() const { return static_cast<int64_t>(lengths.size()); }
  Job getJob(int64_t aClass, int64_t microBatch) const { return static_cast<Job>(aClass * microBatches + microBatch); }
  int64_t getClass(int64_t chunk, JobKind kind) const { return chunk * kinds + kind; }
  int64_t getClass(Job job) const { return classOf[job]; }
  int64_t getMicroBatch(Job job) const { return job - getClass(job) * microBatches; }
  int64_t getChunk(Job job) const { return getClass(job) / kinds; }
  JobKind getKind(Job job) const { return kindOf[job]; }
  /// Returns the kind of the job's action.
  ActionKind getAction(Job job) const;
  int64_t getLength(Job job) const { return lengthOf[job]; }
  int64_t getPosition(Job job) const { return positions[getClass(job)]; }
  /// Returns the chain of a chunk.
  int64_t getChain(int64_t chunk) const { return chunk / chainLength; }
  /// Returns the number of activations that the position keeps in addition once a job begins, and the number that it
  /// frees once the job ends.
  int64_t getTaken(Job job) const { return getKind(job) == kForward ? 1 : 0; }
  int64_t getFreed(Job job) const { return getKind(job) == kinds - 1 ? 1 : 0; }

  /// Returns the time that one micro-batch of each chain takes on the position where it takes longest.
  int64_t getLargestLoad() const;

  int64_t microBatches, kinds, chainLength, chains;
  /// The classes of each position.
  std::vector<std::vector<int64_t>> classesOf;
  /// The length and the position of each class.
  std::vector<int64_t> lengths, positions;
  /// For each job, the job whose result it reads, the job that reads its own result, and the time that what it reads
  /// takes to arrive. The reader of an input gradient is that of the chunk before; its weight gradient reads it too.
  std::vector<Job> input, output;
  std::vector<int64_t> lag;
  /// The class, kind and length of each job, which are looked up far too often to be computed.
  std::vector<int32_t> classOf;
  std::vector<JobKind> kindOf;
  std::vector<int64_t> lengthOf;
  /// The most activations of each position.
  std::vector<int64_t> caps;
};

/// The jobs of each position in their order.
using Orders = std::vector<std::vector<Job>>;

/// When jobs begin under an order, and how long the step takes from their ends on.
struct Evaluation {
  int64_t makespan = 0;
  std::vector<int64_t> begins, tails;
};

/// Sets `evaluation.begins` and the makespan. Returns false where the order makes a position wait for ever.
bool computeBegins(const Jobs &jobs, const Orders &orders, Evaluation &evaluation);
/// Sets `evaluation.tails` for an order under which no position waits for ever.
void computeTails(const Jobs &jobs, const Orders &orders, Evaluation &evaluation);

/// Returns whether no position keeps more activations than its cap.
bool keepsCaps(const Jobs &jobs, const Orders &orders);

/// Returns the order of a pipeline's computation; nothing where its actions are not the jobs.
std::optional<Orders> readOrders(const Jobs &jobs, const Pipeline &pipeline);

/// Numbers from a seed, the same on every machine.
class RandomNumbers {
public:
  explicit RandomNumbers(uint64_t seed) : state(seed) {}
  /// Returns a number from 0 to `end` - 1.
  int64_t below(int64_t end) {
    state += 0x9e3779b97f4a7c15;
    uint64_t bits = state;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return static_cast<int64_t>((bits ^ (bits >> 31)) % static_cast<uint64_t>(end));
  }

private:
  uint64_t state;
};

} // namespace windlass::schedule

#endif
