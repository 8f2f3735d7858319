#include "Jobs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace windlass::schedule;

Jobs::Jobs(const ScheduleProblem &problem)
    : microBatches(problem.microBatches), kinds(problem.isSplit ? 3 : 2),
      chainLength(problem.placement.countChunks() / static_cast<int64_t>(problem.placement.chains.size())),
      chains(static_cast<int64_t>(problem.placement.chains.size())), classesOf(problem.placement.positions),
      caps(problem.caps) {
  const Placement &placement = problem.placement;
  if (caps.empty())
    caps.assign(placement.positions, std::numeric_limits<int64_t>::max() / 4);
  int64_t chunks = placement.countChunks();
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const ChunkTimes &times = problem.times.chunks[chunk];
    int64_t position = placement.positionOf[chunk];
    for (int64_t kind = 0; kind < kinds; ++kind) {
      classesOf[position].push_back(static_cast<int64_t>(lengths.size()));
      positions.push_back(position);
      lengths.push_back(kind == kForward  ? times.forward
                        : kind == kWeight ? times.weightGradient
                        : kinds == 3      ? times.inputGradient
                                          : times.inputGradient + times.weightGradient);
    }
  }
  for (int64_t aClass = 0; aClass < countClasses(); ++aClass) {
    classOf.insert(classOf.end(), microBatches, static_cast<int32_t>(aClass));
    kindOf.insert(kindOf.end(), microBatches, static_cast<JobKind>(aClass % kinds));
    lengthOf.insert(lengthOf.end(), microBatches, lengths[aClass]);
  }
  input.assign(countClasses() * microBatches, kNoJob);
  output = input;
  lag.assign(input.size(), 0);
  auto connect = [&](int64_t from, int64_t to) {
    bool crosses = positions[from] != positions[to];
    for (int64_t n = 0; n < microBatches; ++n) {
      input[getJob(to, n)] = getJob(from, n);
      output[getJob(from, n)] = getJob(to, n);
      lag[getJob(to, n)] = crosses ? problem.times.hop : 0;
    }
  };
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (kinds == 3)
      connect(getClass(chunk, kInput), getClass(chunk, kWeight));
    if (std::optional<int64_t> next = placement.getNext(chunk))
      connect(getClass(chunk, kForward), getClass(*next, kForward));
    else
      connect(getClass(chunk, kForward), getClass(chunk, kInput));
  }
  // After the weight gradients, since the previous chunk is the reader that counts.
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    if (std::optional<int64_t> previous = placement.getPrevious(chunk))
      connect(getClass(chunk, kInput), getClass(*previous, kInput));
}

ActionKind Jobs::getAction(Job job) const {
  switch (getKind(job)) {
  case kForward:
    return ActionKind::Forward;
  case kInput:
    return kinds == 3 ? ActionKind::InputGradient : ActionKind::Backward;
  case kWeight:
    return ActionKind::WeightGradient;
  }
  llvm_unreachable("covered switch");
}

int64_t Jobs::getLargestLoad() const {
  int64_t largest = 0;
  for (const std::vector<int64_t> &classes : classesOf) {
    int64_t load = 0;
    for (int64_t aClass : classes)
      load += lengths[aClass];
    largest = std::max(largest, load);
  }
  return largest;
}

bool windlass::schedule::computeBegins(const Jobs &jobs, const Orders &orders, Evaluation &evaluation) {
  constexpr int64_t kUnknown = -1;
  std::vector<int64_t> &begins = evaluation.begins;
  begins.assign(jobs.countJobs(), kUnknown);
  evaluation.makespan = 0;
  static thread_local std::vector<size_t> next;
  static thread_local std::vector<int64_t> clocks, runnable;
  next.assign(orders.size(), 0);
  clocks.assign(orders.size(), 0);
  runnable.clear();
  for (size_t position = orders.size(); position-- > 0;)
    runnable.push_back(position);
  int64_t done = 0;
  while (!runnable.empty()) {
    int64_t position = runnable.back();
    runnable.pop_back();
    const std::vector<Job> &order = orders[position];
    size_t &index = next[position];
    int64_t clock = clocks[position];
    for (; index < order.size(); ++index) {
      Job job = order[index], input = jobs.input[job];
      if (input != kNoJob) {
        if (begins[input] == kUnknown)
          break;
        clock = std::max(clock, begins[input] + jobs.getLength(input) + jobs.lag[job]);
      }
      begins[job] = clock;
      clock += jobs.getLength(job);
      ++done;
      if (Job output = jobs.output[job]; output != kNoJob) {
        int64_t other = jobs.getPosition(output);
        if (other != position && next[other] < orders[other].size() && orders[other][next[other]] == output)
          runnable.push_back(other);
      }
    }
    clocks[position] = clock;
    evaluation.makespan = std::max(evaluation.makespan, clock);
  }
  return done == jobs.countJobs();
}

void windlass::schedule::computeTails(const Jobs &jobs, const Orders &orders, Evaluation &evaluation) {
  constexpr int64_t kUnknown = -1;
  std::vector<int64_t> &tails = evaluation.tails;
  tails.assign(jobs.countJobs(), kUnknown);
  static thread_local std::vector<size_t> left;
  static thread_local std::vector<int64_t> runnable;
  left.clear();
  runnable.clear();
  for (const std::vector<Job> &order : orders)
    left.push_back(order.size());
  for (size_t position = 0; position < orders.size(); ++position)
    runnable.push_back(position);
  while (!runnable.empty()) {
    int64_t position = runnable.back();
    runnable.pop_back();
    const std::vector<Job> &order = orders[position];
    for (size_t &count = left[position]; count > 0; --count) {
      Job job = order[count - 1], output = jobs.output[job];
      int64_t tail = 0;
      if (count < order.size())
        tail = tails[order[count]] + jobs.getLength(order[count]);
      if (output != kNoJob) {
        if (tails[output] == kUnknown)
          break;
        tail = std::max(tail, tails[output] + jobs.getLength(output) + jobs.lag[output]);
      }
      tails[job] = tail;
      if (Job input = jobs.input[job]; input != kNoJob) {
        int64_t other = jobs.getPosition(input);
        if (other != position && left[other] > 0 && orders[other][left[other] - 1] == input)
          runnable.push_back(other);
      }
    }
  }
}

bool windlass::schedule::keepsCaps(const Jobs &jobs, const Orders &orders) {
  for (auto [position, order] : llvm::enumerate(orders)) {
    int64_t live = 0;
    for (Job job : order) {
      live += jobs.getTaken(job);
      if (live > jobs.caps[position])
        return false;
      live -= jobs.getFreed(job);
    }
  }
  return true;
}

std::optional<Orders> windlass::schedule::readOrders(const Jobs &jobs, const Pipeline &pipeline) {
  Orders orders(pipeline.positions.size());
  std::vector<int64_t> next(jobs.countClasses(), 0);
  for (auto [schedule, order] : llvm::zip_equal(pipeline.positions, orders))
    for (const Action &action : schedule.actions) {
      JobKind kind = kForward;
      switch (action.kind) {
      case ActionKind::Reduce:
      case ActionKind::Update:
      case ActionKind::Send:
      case ActionKind::Receive:
        continue;
      case ActionKind::Forward:
        break;
      case ActionKind::Backward:
        kind = kInput;
        break;
      case ActionKind::InputGradient:
        kind = kInput;
        break;
      case ActionKind::WeightGradient:
        kind = kWeight;
      }
      bool isPart = action.kind == ActionKind::InputGradient || action.kind == ActionKind::WeightGradient;
      if (isPart && jobs.kinds < 3)
        return std::nullopt;
      int64_t aClass = jobs.getClass(action.chunk, kind);
      if (action.microBatch >= jobs.microBatches || action.microBatch != next[aClass]++)
        return std::nullopt;
      order.push_back(jobs.getJob(aClass, action.microBatch));
      // A whole backward is both of its parts, one right after the other.
      if (action.kind == ActionKind::Backward && jobs.kinds == 3) {
        int64_t weights = jobs.getClass(action.chunk, kWeight);
        if (action.microBatch != next[weights]++)
          return std::nullopt;
        order.push_back(jobs.getJob(weights, action.microBatch));
      }
    }
  for (int64_t count : next)
    if (count != jobs.microBatches)
      return std::nullopt;
  return orders;
}
