// ZB1P and ZB2P: backwards split in two, with weight gradients where a position would wait. Qi et al., "Zero Bubble
// Pipeline Parallelism", 2023, section 3: a greedy order in rounds, the best of a few variants.
#include "windlass/Schedule/Generators.h"

#include "PipelineWriter.h"

#include "llvm/ADT/STLExtras.h"

using namespace windlass::schedule;

namespace {

/// What the variants choose.
struct Variant {
  /// Whether forwards before the first backward stop short of delaying it.
  bool keepsFirstBackward;
  /// Whether a position puts off a forward that would delay the next position's backward.
  bool putsOffForwards;
  /// Whether a weight gradient fills also a wait that is too short for it and does not add to the longest waits.
  bool fillsShortWaits;
};

/// Runs rounds: in each, every position has at most one forward, from the first to the last, and then one input
/// gradient, from the last to the first. A forward takes two halves of an activation, and each part of its backward
/// frees one. All three take a unit of time.
class RoundScheduler {
public:
  RoundScheduler(int64_t positions, int64_t microBatches, int64_t limit, Variant variant)
      : microBatches(microBatches), limit(2 * limit), variant(variant), states(positions) {}

  void run() {
    warmUp();
    for (int64_t round = 1; round < microBatches; ++round) {
      std::vector<bool> forwards = chooseForwards();
      for (int64_t position = 0; position < countPositions(); ++position)
        if (forwards[position])
          runForward(position);
      for (int64_t position = countPositions() - 1; position >= 0; --position)
        runInput(position);
    }
    for (int64_t position = 0; position < countPositions(); ++position)
      runWeights(position, microBatches - states[position].weights);
  }

  /// Returns the longest time from a position's begin to its end.
  int64_t getSpan() const {
    int64_t span = 0;
    for (const State &state : states)
      span = std::max(span, state.clock - state.forwardEnds.front() + 1);
    return span;
  }

  void write(PipelineWriter &writer) const {
    for (auto [position, state] : llvm::enumerate(states)) {
      int64_t next[3] = {0, 0, 0};
      for (ActionKind kind : state.order) {
        int64_t &number = next[kind == ActionKind::Forward ? 0 : kind == ActionKind::InputGradient ? 1 : 2];
        writer.add(kind, position, number++);
      }
    }
  }

private:
  struct State {
    int64_t clock = 0, halves = 0, idle = 0, weights = 0;
    std::vector<int64_t> forwardEnds, inputEnds;
    std::vector<ActionKind> order;

    int64_t countForwards() const { return forwardEnds.size(); }
    int64_t countInputs() const { return inputEnds.size(); }
    bool hasWeight() const { return weights < countInputs(); }
  };

  int64_t countPositions() const { return static_cast<int64_t>(states.size()); }
  bool fits(const State &state, int64_t forwards) const { return state.halves + 2 * forwards <= limit; }

  /// Returns when the activation of the position's next forward, or the gradient of its next input gradient, arrives.
  int64_t getForwardArrival(int64_t position) const {
    return position == 0 ? 0 : states[position - 1].forwardEnds[states[position].countForwards()];
  }
  int64_t getInputArrival(int64_t position) const {
    return position + 1 == countPositions() ? 0 : states[position + 1].inputEnds[states[position].countInputs()];
  }

  void place(int64_t position, ActionKind kind, int64_t arrival) {
    State &state = states[position];
    if (arrival > state.clock) {
      if (!state.forwardEnds.empty())
        state.idle += arrival - state.clock;
      state.clock = arrival;
    }
    ++state.clock;
    state.order.push_back(kind);
    if (kind == ActionKind::Forward) {
      state.forwardEnds.push_back(state.clock);
      state.halves += 2;
      return;
    }
    --state.halves;
    if (kind == ActionKind::InputGradient)
      state.inputEnds.push_back(state.clock);
    else
      ++state.weights;
  }
  void runWeights(int64_t position, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      place(position, ActionKind::WeightGradient, 0);
  }

  /// Fills the wait for what arrives with weight gradients.
  void fillWait(int64_t position, int64_t arrival) {
    State &state = states[position];
    while (state.hasWeight() && state.clock + 1 <= arrival)
      runWeights(position, 1);
    int64_t wait = arrival - state.clock;
    if (state.hasWeight() && wait > 0 && (variant.fillsShortWaits || wait > getSpareIdle(position)))
      runWeights(position, 1);
  }

  /// Returns by how much the position has waited less than the one that has waited most.
  int64_t getSpareIdle(int64_t position) const {
    int64_t most = 0;
    for (const State &state : states)
      most = std::max(most, state.idle);
    return most - states[position].idle;
  }

  void runForward(int64_t position) {
    State &state = states[position];
    while (!fits(state, 1))
      runWeights(position, 1);
    if (position > 0)
      fillWait(position, getForwardArrival(position));
    place(position, ActionKind::Forward, getForwardArrival(position));
  }

  void runInput(int64_t position) {
    State &state = states[position];
    if (position + 1 < countPositions())
      fillWait(position, getInputArrival(position));
    // Nothing waits for the first position's input gradients.
    if (position == 0 && state.countForwards() == microBatches)
      runWeights(position, state.countInputs() - state.weights);
    place(position, ActionKind::InputGradient, getInputArrival(position));
  }

  /// Runs what comes before the second input gradient: forwards while a position waits for the first.
  void warmUp() {
    for (int64_t position = 0; position < countPositions(); ++position)
      place(position, ActionKind::Forward, getForwardArrival(position));
    std::vector<int64_t> more(states.size(), 0);
    int64_t arrival = states.back().clock + 1;
    for (int64_t position = countPositions() - 2; position >= 0; --position) {
      const State &state = states[position];
      int64_t clock = state.clock, &count = more[position];
      while (state.countForwards() + count < microBatches && fits(state, count + 1) &&
             (variant.keepsFirstBackward ? clock + 1 <= arrival : clock < arrival)) {
        ++clock;
        ++count;
      }
      arrival = std::max(clock, arrival) + 1;
    }
    for (int64_t position = 1; position < countPositions(); ++position)
      while (more[position] > 0 && more[position] >= more[position - 1] &&
             states[position].countForwards() + more[position] < microBatches)
        --more[position];
    for (int64_t position = 0; position < countPositions(); ++position)
      for (int64_t i = 0; i < more[position]; ++i)
        place(position, ActionKind::Forward, getForwardArrival(position));
    for (int64_t position = countPositions() - 1; position >= 0; --position)
      place(position, ActionKind::InputGradient, getInputArrival(position));
  }

  /// Returns which positions have a forward in this round: none without one at the next.
  std::vector<bool> chooseForwards() const {
    std::vector<bool> chosen(states.size());
    for (int64_t position = countPositions() - 1; position >= 0; --position)
      chosen[position] = (position + 1 == countPositions() || chosen[position + 1]) && wantsForward(position);
    return chosen;
  }

  bool wantsForward(int64_t position) const {
    const State &state = states[position];
    if (state.countForwards() >= microBatches)
      return false;
    if (position + 1 == countPositions() || !variant.putsOffForwards ||
        state.countForwards() < states[position + 1].countForwards() + 2)
      return true;
    // The next position has a forward to run already.
    int64_t nextInput = states[position + 1].clock + 2;
    if (state.clock >= nextInput)
      return false;
    int64_t excess = std::max<int64_t>(state.halves + 2 - limit, 0);
    int64_t weights = std::min(excess, state.countInputs() - state.weights);
    if (state.clock + 1 + weights <= nextInput)
      return true;
    return nextInput - state.clock > getSpareIdle(position);
  }

  int64_t microBatches, limit;
  Variant variant;
  std::vector<State> states;
};

} // namespace

static llvm::Expected<Pipeline> makeZeroBubble(int64_t positions, int64_t microBatches, int64_t limit) {
  if (llvm::Error error = Sizes{positions, 1, microBatches}.check())
    return std::move(error);
  std::optional<RoundScheduler> best;
  for (bool keepsFirstBackward : {true, false})
    for (bool putsOffForwards : {true, false})
      for (bool fillsShortWaits : {true, false}) {
        RoundScheduler scheduler(positions, microBatches, limit,
                                 {keepsFirstBackward, putsOffForwards, fillsShortWaits});
        scheduler.run();
        if (!best || scheduler.getSpan() < best->getSpan())
          best = std::move(scheduler);
      }
  PipelineWriter writer(makeLoopedPlacement(positions, 1));
  best->write(writer);
  return writer.finish();
}

llvm::Expected<Pipeline> windlass::schedule::makeZeroBubble1(int64_t positions, int64_t microBatches) {
  return makeZeroBubble(positions, microBatches, positions);
}

llvm::Expected<Pipeline> windlass::schedule::makeZeroBubble2(int64_t positions, int64_t microBatches) {
  return makeZeroBubble(positions, microBatches, 2 * positions);
}
