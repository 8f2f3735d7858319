// V-half and V-min: schedules on a V with half or a third of the activations of 1F1B. Qi et al., "Pipeline Parallelism
// with Controllable Memory", 2024: a pattern that repeats every six units of time, the beginning and end of which are
// then moved together as far as memory allows.
#include "windlass/Schedule/Generators.h"

#include "PipelineWriter.h"

#include "llvm/ADT/STLExtras.h"

#include <array>

using namespace windlass::schedule;

namespace {

/// What a position does in a unit of time. The first four are in the order in which a micro-batch comes through.
enum class Work { EarlyForward, LateForward, LateInput, EarlyInput, Weight, Nothing };
constexpr int kFlow = 4;

struct Slot {
  Work work = Work::Nothing;
  int64_t microBatch = 0;
};
/// The units of time of a position.
using Line = std::vector<Slot>;

bool isInput(Work work) { return work == Work::LateInput || work == Work::EarlyInput; }

class PatternBuilder {
public:
  /// `pattern[r][k]` is the unit in which position r does work k for micro-batch 0. Units of two works of a position
  /// differ modulo 6.
  PatternBuilder(llvm::ArrayRef<std::array<int64_t, kFlow>> pattern, int64_t microBatches)
      : microBatches(microBatches), lines(pattern.size()) {
    constexpr int64_t kPeriod = 6;
    for (auto [line, first] : llvm::zip_equal(lines, pattern)) {
      line.resize(first.back() + kPeriod * (microBatches - 1) + 1);
      for (int work = 0; work < kFlow; ++work)
        for (int64_t n = 0; n < microBatches; ++n)
          line[first[work] + kPeriod * n] = {static_cast<Work>(work), n};
    }
    indexSlots();
  }

  /// Closes the gaps of the beginning and the end. Weight gradients take the first free units; they are placed again
  /// after each pass, since the free units have changed.
  void compact() {
    for (bool withWeights : {true, false}) {
      if (withWeights)
        addWeights();
      moveEarlier(withWeights);
      if (!withWeights)
        addWeights();
      squeeze();
      dropWeights();
    }
  }

  /// Writes the computation of all positions. A free unit is for the late part's weight gradient where one is due.
  void write(PipelineWriter &writer) const {
    int64_t last = 2 * static_cast<int64_t>(lines.size()) - 1;
    for (auto [index, line] : llvm::enumerate(lines)) {
      int64_t early = index, late = last - early;
      int64_t lateInputs = 0, lateWeights = 0, earlyInputs = 0, earlyWeights = 0;
      auto addWeight = [&] {
        if (lateWeights < lateInputs)
          writer.weightGradient(late, lateWeights++);
        else if (earlyWeights < earlyInputs)
          writer.weightGradient(early, earlyWeights++);
      };
      for (const Slot &slot : line) {
        switch (slot.work) {
        case Work::EarlyForward:
          writer.forward(early, slot.microBatch);
          break;
        case Work::LateForward:
          writer.forward(late, slot.microBatch);
          break;
        case Work::LateInput:
          writer.inputGradient(late, slot.microBatch);
          ++lateInputs;
          break;
        case Work::EarlyInput:
          writer.inputGradient(early, slot.microBatch);
          ++earlyInputs;
          break;
        case Work::Weight:
        case Work::Nothing:
          addWeight();
        }
      }
      while (lateWeights < microBatches || earlyWeights < microBatches)
        addWeight();
    }
  }

private:
  int64_t countPositions() const { return static_cast<int64_t>(lines.size()); }

  /// Calls `visit(time, position)` for all units in the order of time, the first position first.
  template <class F> void visitInTime(F visit) {
    size_t end = 0;
    for (const Line &line : lines)
      end = std::max(end, line.size());
    for (size_t time = 0; time < end; ++time)
      for (int64_t position = 0; position < countPositions(); ++position)
        if (time < lines[position].size() && lines[position][time].work != Work::Nothing)
          visit(static_cast<int64_t>(time), position);
  }

  /// Sets `times` to what the lines say.
  void indexSlots() {
    times.assign(lines.size(), {});
    for (auto [line, position] : llvm::zip_equal(lines, times)) {
      for (int work = 0; work < kFlow; ++work)
        position[work].resize(microBatches);
      for (auto [time, slot] : llvm::enumerate(line))
        if (slot.work < Work::Weight)
          position[static_cast<int>(slot.work)][slot.microBatch] = time;
    }
  }

  void addWeights() {
    for (Line &line : lines) {
      int64_t due = 0, next = 0;
      for (Slot &slot : line) {
        due += isInput(slot.work);
        if (slot.work == Work::Nothing && due > 0) {
          slot = {Work::Weight, next++};
          --due;
        }
      }
      for (; due > 0; --due)
        line.push_back({Work::Weight, next++});
    }
  }

  void dropWeights() {
    for (Line &line : lines) {
      for (Slot &slot : line)
        if (slot.work == Work::Weight)
          slot = {};
      while (line.back().work == Work::Nothing)
        line.pop_back();
    }
  }

  /// Returns the most activations that a position keeps. Where its line has no weight gradients, those that are due
  /// take free units.
  static int64_t countLive(const Line &line, bool hasWeights) {
    int64_t live = 0, most = 0, due = 0;
    for (const Slot &slot : line) {
      due += isInput(slot.work);
      live += slot.work == Work::EarlyForward || slot.work == Work::LateForward;
      if (hasWeights ? slot.work == Work::Weight : slot.work == Work::Nothing && due > 0) {
        --live;
        --due;
      }
      most = std::max(most, live);
    }
    return most;
  }

  /// Returns the first unit in which the work may be done after what it needs.
  int64_t getEarliest(int64_t position, int64_t time) const {
    const Slot &slot = lines[position][time];
    int64_t after = -1;
    if (slot.work == Work::Weight) {
      // The n-th one is of the n-th input gradient, and none overtakes another.
      int64_t inputs = 0, weights = 0;
      for (int64_t before = 0; before < time; ++before) {
        const Slot &other = lines[position][before];
        if ((isInput(other.work) && inputs++ == slot.microBatch) ||
            (other.work == Work::Weight && weights++ == slot.microBatch - 1))
          after = before;
      }
      return after + 1;
    }
    int work = static_cast<int>(slot.work);
    bool comesForth = slot.work == Work::EarlyForward || slot.work == Work::LateInput;
    int64_t neighbour = comesForth ? position - 1 : position + 1;
    if (neighbour >= 0 && neighbour < countPositions())
      after = times[neighbour][work][slot.microBatch];
    if (work > 0)
      after = std::max(after, times[position][work - 1][slot.microBatch]);
    if (slot.microBatch > 0)
      after = std::max(after, times[position][work][slot.microBatch - 1]);
    return after + 1;
  }

  /// Moves works to the first free unit before them, where no position keeps more than before. What runs while the
  /// first position alternates between all four stays as the pattern says.
  void moveEarlier(bool hasWeights) {
    int64_t limit = 0;
    for (const Line &line : lines)
      limit = std::max(limit, countLive(line, hasWeights));
    enum { Beginning, Steady, End } phase = Beginning;
    visitInTime([&](int64_t time, int64_t position) {
      Slot slot = lines[position][time];
      if (phase == Beginning && position == 0 && slot.work == Work::EarlyInput)
        phase = Steady;
      if (phase == Steady) {
        if (slot.work == Work::EarlyForward && slot.microBatch == microBatches - 1)
          phase = End;
        return;
      }
      if (phase == End || hasWeights)
        moveEarlier(position, time, hasWeights, limit);
    });
  }

  void moveEarlier(int64_t position, int64_t time, bool hasWeights, int64_t limit) {
    Line &line = lines[position];
    for (int64_t to = getEarliest(position, time); to < time; ++to) {
      if (line[to].work != Work::Nothing)
        continue;
      std::swap(line[to], line[time]);
      if (countLive(line, hasWeights) <= limit) {
        if (line[to].work < Work::Weight)
          times[position][static_cast<int>(line[to].work)][line[to].microBatch] = to;
        return;
      }
      std::swap(line[to], line[time]);
    }
  }

  /// Runs the works of each position in their order, each as early as what it needs allows.
  void squeeze() {
    std::vector<Line> squeezed(lines.size());
    visitInTime([&](int64_t time, int64_t position) {
      const Slot &slot = lines[position][time];
      Line &line = squeezed[position];
      int64_t begin = line.size();
      if (slot.work != Work::Weight) {
        begin = std::max(begin, getEarliest(position, time));
        times[position][static_cast<int>(slot.work)][slot.microBatch] = begin;
      }
      line.resize(begin + 1);
      line[begin] = slot;
    });
    lines = std::move(squeezed);
  }

  int64_t microBatches;
  std::vector<Line> lines;
  /// The units of each position's works but weight gradients, by work and micro-batch.
  std::vector<std::array<std::vector<int64_t>, kFlow>> times;
};

} // namespace

/// Makes the schedule of a pattern: `getUnits(r)` returns the units of position r for micro-batch 0.
template <class F>
static llvm::Expected<Pipeline> makeFromPattern(int64_t positions, int64_t microBatches, F getUnits) {
  if (llvm::Error error = Sizes{positions, 2, microBatches}.check())
    return std::move(error);
  std::vector<std::array<int64_t, kFlow>> pattern;
  for (int64_t position = 0; position < positions; ++position)
    pattern.push_back(getUnits(position));
  PatternBuilder builder(pattern, microBatches);
  builder.compact();
  PipelineWriter writer(makeWavePlacement(positions, 2));
  builder.write(writer);
  return writer.finish();
}

llvm::Expected<Pipeline> windlass::schedule::makeVHalf(int64_t positions, int64_t microBatches) {
  int64_t p = positions, wait = p % 2 == 0 ? 3 : 0;
  return makeFromPattern(p, microBatches, [&](int64_t r) {
    return std::array<int64_t, kFlow>{2 * r, 3 * p - r - 2, 3 * p + wait + 2 * r - 1, 6 * p + wait - r - 2};
  });
}

llvm::Expected<Pipeline> windlass::schedule::makeVMin(int64_t positions, int64_t microBatches) {
  int64_t p = positions, wait = p % 3 == 0 ? 2 : 0;
  return makeFromPattern(p, microBatches, [&](int64_t r) {
    return std::array<int64_t, kFlow>{r, 2 * p - r - 1, 2 * p + wait + r, 4 * p + wait - r - 1};
  });
}
