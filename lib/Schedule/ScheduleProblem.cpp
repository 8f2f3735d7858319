#include "windlass/Schedule/ScheduleProblem.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <cmath>

using namespace windlass::schedule;
using llvm::Twine;

std::vector<int64_t> windlass::schedule::getLeastCaps(const Placement &placement) {
  std::vector<int64_t> most(placement.positions, 0);
  int64_t length = placement.countChunks() / static_cast<int64_t>(placement.chains.size());
  for (int64_t begin : placement.chains) {
    std::vector<int64_t> needed(placement.positions, 0);
    for (int64_t chunk = begin; chunk < begin + length; ++chunk)
      most[placement.positionOf[chunk]] =
          std::max(most[placement.positionOf[chunk]], ++needed[placement.positionOf[chunk]]);
  }
  return most;
}

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
  std::vector<int64_t> chunks(placement.positions, 0);
  for (int64_t position : placement.positionOf)
    ++chunks[position];
  int64_t squares = 0;
  for (int64_t count : chunks)
    squares += count * count;
  if (squares > kMaxSearchedChunks * kMaxSearchedChunks)
    return llvm::createStringError(
        "has " + Twine(*std::max_element(chunks.begin(), chunks.end())) + " chunks on a position; with " +
        Twine(placement.positions) + " such positions, at most " +
        Twine(static_cast<int64_t>(kMaxSearchedChunks / std::sqrt(placement.positions))) + " each can be searched");
  if (problem.caps.empty())
    return llvm::Error::success();
  if (static_cast<int64_t>(problem.caps.size()) != placement.positions)
    return llvm::createStringError("has caps of " + Twine(problem.caps.size()) + " positions for " +
                                   Twine(placement.positions));
  for (auto [position, cap, needed] : llvm::enumerate(problem.caps, getLeastCaps(placement)))
    if (cap < needed)
      return llvm::createStringError("position " + Twine(position) + " may keep " + Twine(cap) +
                                     " activations of chunks, but one micro-batch alone has " + Twine(needed) +
                                     " there");
  return llvm::Error::success();
}

bool windlass::schedule::runsInOrder(const Pipeline &pipeline) {
  struct Counts {
    int64_t forwards = 0, inputGradients = 0, weightGradients = 0;
  };
  std::vector<Counts> chunks(pipeline.placement.countChunks());
  for (const Schedule &schedule : pipeline.positions)
    for (const Action &action : schedule.actions) {
      Counts &counts = chunks[action.chunk];
      bool isWhole = action.kind == ActionKind::Backward;
      if ((action.kind == ActionKind::Forward && action.microBatch != counts.forwards++) ||
          ((isWhole || action.kind == ActionKind::InputGradient) && action.microBatch != counts.inputGradients++) ||
          ((isWhole || action.kind == ActionKind::WeightGradient) && action.microBatch != counts.weightGradients++))
        return false;
    }
  return true;
}
