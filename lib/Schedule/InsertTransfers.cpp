#include "windlass/Schedule/Pipeline.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/ErrorHandling.h"

#include <map>
#include <set>
#include <tuple>

using namespace windlass::schedule;
using llvm::Twine;

namespace {

/// Runs the positions' computation with one clock. Events happen in the order of their times, and a transfer is one
/// event of both of its ends: positions that run their lists in that order never wait, and so no other run ends
/// waiting.
class Inserter {
public:
  explicit Inserter(const Pipeline &computation)
      : placement(computation.placement), positions(computation.positions), next(positions.size()),
        current(positions.size(), 0), free(positions.size(), 0), tables(positions.size()) {}

  llvm::Expected<Pipeline> run() {
    for (auto [position, schedule] : llvm::enumerate(positions))
      for (const Action &action : schedule.actions)
        if (isTransfer(action.kind) || action.chunk < 0 || action.chunk >= placement.countChunks() ||
            placement.positionOf[action.chunk] != static_cast<int64_t>(position))
          return llvm::createStringError("position " + Twine(position) + " runs " + getName(action.kind) +
                                         " of chunk " + Twine(action.chunk) +
                                         ", where only computation of its own chunks is expected");
    for (size_t position = 0; position < positions.size(); ++position)
      refresh(position);
    while (std::optional<Event> event = findNext())
      happen(*event);
    for (size_t position = 0; position < positions.size(); ++position)
      if (getCurrent(position))
        return explainWait(position);
    return expandPipeline(placement, tables);
  }

private:
  /// An activation that a chunk computes, or the gradient of its input.
  struct Value {
    int64_t chunk, microBatch;
    bool isGradient;
    bool operator<(const Value &other) const {
      return std::tie(chunk, microBatch, isGradient) < std::tie(other.chunk, other.microBatch, other.isGradient);
    }
  };
  struct Event {
    int64_t time;
    /// The position whose action this is; nothing for a transfer, which comes before actions of the same time.
    std::optional<int64_t> position;
    Value value = {};

    /// Returns the order of events of one time: gradients come before activations, and what is further along its way
    /// comes first.
    auto getOrder() const {
      return std::make_tuple(time, position.value_or(-1), !value.isGradient,
                             value.isGradient ? value.chunk : -value.chunk, value.microBatch);
    }
    bool operator<(const Event &other) const { return getOrder() < other.getOrder(); }
  };

  const Action *getCurrent(int64_t position) const {
    const std::vector<Action> &actions = positions[position].actions;
    return current[position] < actions.size() ? &actions[current[position]] : nullptr;
  }

  static int64_t getDuration(ActionKind kind) {
    switch (kind) {
    case ActionKind::Backward:
      return 2;
    case ActionKind::Forward:
    case ActionKind::InputGradient:
    case ActionKind::WeightGradient:
      return 1;
    case ActionKind::Reduce:
    case ActionKind::Update:
    case ActionKind::Send:
    case ActionKind::Receive:
      return 0;
    }
    llvm_unreachable("covered switch");
  }

  static bool makesInputGradient(ActionKind kind) {
    return kind == ActionKind::Backward || kind == ActionKind::InputGradient;
  }

  /// Returns what an action reads that another chunk computes.
  std::optional<Value> getRead(const Action &action) const {
    std::optional<int64_t> other;
    if (action.kind == ActionKind::Forward)
      other = placement.getPrevious(action.chunk);
    else if (makesInputGradient(action.kind))
      other = placement.getNext(action.chunk);
    if (!other)
      return std::nullopt;
    return Value{*other, action.microBatch, action.kind != ActionKind::Forward};
  }

  /// Returns the chunk on another position that reads the value.
  std::optional<int64_t> getReader(const Value &value) const {
    std::optional<int64_t> reader =
        value.isGradient ? placement.getPrevious(value.chunk) : placement.getNext(value.chunk);
    return reader && placement.crossesPositions(value.chunk, *reader) ? reader : std::nullopt;
  }

  /// Returns the next event of a position as it stands: its action, or the receive of an activation that the action
  /// needs.
  std::optional<Event> findNext(int64_t position) const {
    const Action *action = getCurrent(position);
    if (!action)
      return std::nullopt;
    std::optional<Value> read = getRead(*action);
    if (!read)
      return Event{free[position], position};
    if (auto there = present.find(*read); there != present.end())
      return Event{std::max(free[position], there->second), position};
    if (auto waiting = activations.find(*read); waiting != activations.end())
      return Event{std::max(free[position], waiting->second), std::nullopt, *read};
    return std::nullopt;
  }

  std::optional<Event> findNext() const {
    std::optional<Event> first;
    if (!events.empty())
      first = *events.begin();
    if (!gradients.empty()) {
      Event gradient = {gradients.begin()->first, std::nullopt, gradients.begin()->second};
      if (!first || gradient < *first)
        first = gradient;
    }
    return first;
  }

  void happen(const Event &event) {
    if (event.position) {
      std::optional<Value> made = compute(*event.position, event.time);
      refresh(*event.position);
      // Its reader may have waited for it.
      if (made)
        if (std::optional<int64_t> reader = getReader(*made))
          refresh(placement.positionOf[*reader]);
      return;
    }
    int64_t reader = *getReader(event.value), chunk = event.value.chunk;
    activations.erase(event.value);
    if (event.value.isGradient)
      gradients.erase({event.time, event.value});
    add(placement.positionOf[chunk], ActionKind::Send, chunk, event.value.microBatch, reader);
    add(placement.positionOf[reader], ActionKind::Receive, reader, event.value.microBatch, chunk);
    present[event.value] = event.time;
    refresh(placement.positionOf[reader]);
  }

  void refresh(int64_t position) {
    if (next[position])
      events.erase(*next[position]);
    next[position] = findNext(position);
    if (next[position])
      events.insert(*next[position]);
  }

  /// Runs the next action of a position; returns what another one may read.
  std::optional<Value> compute(int64_t position, int64_t begin) {
    const Action &action = *getCurrent(position);
    add(position, action.kind, action.chunk, action.microBatch, -1);
    int64_t end = begin + getDuration(action.kind);
    free[position] = end;
    ++current[position];
    if (action.kind != ActionKind::Forward && !makesInputGradient(action.kind))
      return std::nullopt;
    Value made = {action.chunk, action.microBatch, action.kind != ActionKind::Forward};
    if (!getReader(made))
      present[made] = end;
    else if (made.isGradient)
      gradients.insert({end, made});
    else
      activations[made] = end;
    return made;
  }

  void add(int64_t position, ActionKind kind, int64_t chunk, int64_t microBatch, int64_t peerChunk) {
    TableItem &item = tables[position].emplace_back();
    item.kind = kind;
    item.chunk = chunk;
    item.peerChunk = peerChunk;
    item.microBatch = kind == ActionKind::Reduce || kind == ActionKind::Update ? -1 : microBatch;
  }

  /// Names where a position waits for ever: for a value that no position computes, or in a circle of positions each of
  /// which waits for the next one.
  llvm::Error explainWait(int64_t position) const {
    std::vector<int64_t> chain;
    while (getCurrent(position) && !llvm::is_contained(chain, position)) {
      chain.push_back(position);
      position = placement.positionOf[getRead(*getCurrent(position))->chunk];
    }
    // Without a circle, the last one of the chain waits for a position that has come to its end.
    bool isCircle = getCurrent(position);
    chain.erase(chain.begin(), isCircle ? llvm::find(chain, position) : std::prev(chain.end()));
    std::string text = isCircle ? "never ends" : "lacks what is read";
    for (auto [number, each] : llvm::enumerate(chain)) {
      const Action &action = *getCurrent(each);
      Value value = *getRead(action);
      text += ((number == 0 ? ": position " : "; position ") + Twine(each) + " waits at action " +
               Twine(current[each]) + ", the " + print(getName(action.kind), action.microBatch, action.chunk) +
               ", for position " + Twine(placement.positionOf[value.chunk]) + " to run the " +
               print(value.isGradient ? "backward" : "forward", value.microBatch, value.chunk))
                  .str();
    }
    return llvm::createStringError(text);
  }

  static std::string print(llvm::StringRef kind, int64_t microBatch, int64_t chunk) {
    std::string text = (kind + " of micro-batch " + Twine(microBatch) + " of chunk " + Twine(chunk)).str();
    std::replace(text.begin(), text.end(), '_', ' ');
    return text;
  }

  const Placement &placement;
  const std::vector<Schedule> &positions;
  /// The next event of each position as it stands, and the same events in their order. No two are equal, since a value
  /// has one reader.
  std::vector<std::optional<Event>> next;
  std::set<Event> events;
  /// The number of each position's next action, and when its last one ends.
  std::vector<size_t> current;
  std::vector<int64_t> free;
  /// The times at which values are there for their readers, and at which activations that nobody has received are
  /// computed.
  std::map<Value, int64_t> present, activations;
  /// The gradients that nobody has received, with the times when they are computed.
  std::set<std::pair<int64_t, Value>> gradients;
  std::vector<ActionTable> tables;
};

} // namespace

llvm::Expected<Pipeline> windlass::schedule::insertTransfers(const Pipeline &computation) {
  if (llvm::Error error = checkPlacement(computation.placement, computation.positions.size()))
    return std::move(error);
  return Inserter(computation).run();
}
