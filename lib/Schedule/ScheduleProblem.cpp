#include "windlass/Schedule/ScheduleProblem.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::Twine;

llvm::Error windlass::schedule::checkProblem(const ScheduleProblem &problem) {
  const Placement &placement = problem.placement;
  if (llvm::Error error = checkPlacement(placement))
    return error;
  if (llvm::Error error = checkTimes(placement, problem.times))
    return error;
  int64_t perMicroBatch = placement.countChunks() * (problem.isSplit ? 3 : 2);
  if (problem.microBatches < 1 || problem.microBatches > kMaxSearchedActions / perMicroBatch)
    return llvm::createStringError("has " + Twine(problem.microBatches) + " micro-batches of " +
                                   Twine(placement.countChunks()) + " chunks; 1 to " +
                                   Twine(kMaxSearchedActions / perMicroBatch) + " can be searched");
  if (problem.caps.empty())
    return llvm::Error::success();
  if (static_cast<int64_t>(problem.caps.size()) != placement.positions)
    return llvm::createStringError("has caps of " + Twine(problem.caps.size()) + " positions for " +
                                   Twine(placement.positions));
  // One micro-batch of a chain needs room for all chunks of the chain on a position.
  int64_t length = placement.countChunks() / static_cast<int64_t>(placement.chains.size());
  for (int64_t begin : placement.chains) {
    std::vector<int64_t> needed(placement.positions, 0);
    for (int64_t chunk = begin; chunk < begin + length; ++chunk)
      ++needed[placement.positionOf[chunk]];
    for (auto [position, cap] : llvm::enumerate(problem.caps))
      if (cap < needed[position])
        return llvm::createStringError("position " + Twine(position) + " may keep " + Twine(cap) +
                                       " activations of chunks, but one micro-batch alone has " +
                                       Twine(needed[position]) + " there");
  }
  return llvm::Error::success();
}
