#include "ListState.h"

using namespace windlass::schedule;

int64_t ListState::getBegin(const Jobs &jobs, int64_t aClass) const {
  if (next[aClass] == jobs.microBatches)
    return kNever;
  int64_t position = jobs.positions[aClass];
  Job job = jobs.getJob(aClass, next[aClass]), input = jobs.input[job];
  int64_t begin = clocks[position];
  if (input != kNoJob) {
    if (ends[input] == kUnknown)
      return kNever;
    begin = std::max(begin, ends[input] + jobs.lag[job]);
  }
  return aClass % jobs.kinds == kForward && !admits(jobs, position, aClass) ? kNever : begin;
}

void ListState::place(const Jobs &jobs, int64_t aClass, int64_t begin) {
  Job job = jobs.getJob(aClass, next[aClass]++);
  int64_t position = jobs.positions[aClass];
  ends[job] = clocks[position] = begin + jobs.lengths[aClass];
  ++counts[position][aClass % jobs.kinds];
  live[position] += jobs.getTaken(job) - jobs.getFreed(job);
}

/// Returns whether the position can, after a forward of the class, finish its micro-batches one after the other, the
/// oldest first. For a micro-batch with `left` forwards on the position to come, which keeps `held` activations while
/// younger ones keep `younger`: left + held + younger <= cap. With one chain, that is also necessary: no activation of
/// a younger micro-batch is freed before the older one's of the same chunk is, which needs all of its forwards.
bool ListState::admits(const Jobs &jobs, int64_t position, int64_t admitted) const {
  int64_t cap = jobs.caps[position];
  if (live[position] + 1 > cap)
    return false;
  // No micro-batch has more forwards to come than the position has chunks.
  if (live[position] + 1 + static_cast<int64_t>(jobs.classesOf[position].size()) / jobs.kinds <= cap)
    return true;
  // The micro-batches of all chains stand in one order of age, where those of one number follow each other.
  auto getForwards = [&](int64_t aClass) { return next[aClass] + (aClass == admitted); };
  int64_t oldest = kNever, youngest = 0;
  for (int64_t aClass : jobs.classesOf[position])
    if (aClass % jobs.kinds == kForward) {
      int64_t age = getForwards(aClass) * jobs.chains + jobs.getChain(aClass / jobs.kinds);
      oldest = std::min(oldest, age);
      youngest = std::max(youngest, age);
    }
  youngest = std::min(youngest, jobs.microBatches * jobs.chains);
  for (int64_t age = oldest; age < youngest; ++age) {
    int64_t chain = age % jobs.chains, microBatch = age / jobs.chains, left = 0, kept = 0;
    for (int64_t aClass : jobs.classesOf[position]) {
      if (aClass % jobs.kinds != kForward)
        continue;
      int64_t itsChain = jobs.getChain(aClass / jobs.kinds), forwards = getForwards(aClass);
      // The class's first micro-batch that is this one or younger.
      int64_t first = itsChain >= chain ? microBatch : microBatch + 1;
      kept += std::max<int64_t>(0, forwards - std::max(first, next[aClass + jobs.kinds - 1]));
      left += itsChain == chain && forwards <= microBatch;
    }
    if (left > 0 && left + kept > cap)
      return false;
  }
  return true;
}
