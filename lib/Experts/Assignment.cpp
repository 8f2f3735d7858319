#include "Assignment.h"

using namespace windlass::experts;

void Assignment::assign(Placement placement) {
  experts = std::move(placement);
  sizes.resize(experts.size());
  gpuOf.resize(experts.size());
  loads.resize(problem.gpus);
  slotsOf.resize(problem.getExperts());
  for (std::vector<int32_t> &slots : slotsOf)
    slots.clear();
  for (int32_t slot = 0; slot < problem.getReplicas(); ++slot) {
    gpuOf[slot] = slot / problem.slots;
    slotsOf[experts[slot]].push_back(slot);
  }
  for (int32_t expert = 0; expert < problem.getExperts(); ++expert)
    resize(expert);
  for (int32_t gpu = 0; gpu < problem.gpus; ++gpu)
    sum(gpu);
}

void Assignment::resize(int32_t expert) {
  for (int32_t slot : slotsOf[expert])
    sizes[slot] = problem.loads[expert] / getCount(expert);
}

/// Adds up a GPU's load anew, so that it never depends on how the placement came about.
void Assignment::sum(int32_t gpu) {
  double load = 0;
  for (int32_t slot = gpu * problem.slots; slot < (gpu + 1) * problem.slots; ++slot)
    load += sizes[slot];
  loads[gpu] = load;
}

void Assignment::swap(int32_t slot, int32_t other) {
  auto first = std::find(slotsOf[experts[slot]].begin(), slotsOf[experts[slot]].end(), slot);
  auto second = std::find(slotsOf[experts[other]].begin(), slotsOf[experts[other]].end(), other);
  *first = other;
  *second = slot;
  std::swap(experts[slot], experts[other]);
  std::swap(sizes[slot], sizes[other]);
  sum(getGpu(slot));
  sum(getGpu(other));
}

void Assignment::replace(int32_t slot, int32_t expert) {
  int32_t removed = experts[slot];
  std::vector<int32_t> &slots = slotsOf[removed];
  slots.erase(std::find(slots.begin(), slots.end(), slot));
  slotsOf[expert].push_back(slot);
  experts[slot] = expert;
  for (int32_t changing : {removed, expert}) {
    resize(changing);
    for (int32_t other : slotsOf[changing])
      sum(getGpu(other));
  }
}

const std::vector<GpuLoad> &Assignment::previewReplace(int32_t slot, int32_t expert) {
  changed.clear();
  int32_t removed = experts[slot];
  double left = problem.loads[removed] / (getCount(removed) - 1),
         added = problem.loads[expert] / (getCount(expert) + 1);
  // A GPU whose changes cancel out may be listed twice, which does no harm.
  auto touch = [&](int32_t gpu, double change) {
    if (delta[gpu] == 0)
      changed.push_back({gpu, 0});
    delta[gpu] += change;
  };
  touch(getGpu(slot), added - sizes[slot]);
  double grows = left - sizes[slot], shrinks = added - problem.loads[expert] / getCount(expert);
  for (int32_t other : slotsOf[removed])
    if (other != slot)
      touch(getGpu(other), grows);
  for (int32_t other : slotsOf[expert])
    touch(getGpu(other), shrinks);
  for (GpuLoad &each : changed)
    each.load = loads[each.gpu] + delta[each.gpu];
  for (const GpuLoad &each : changed)
    delta[each.gpu] = 0;
  return changed;
}
