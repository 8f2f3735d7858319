// How the messages of a position and the functions of its chunks wait for each other.
#ifndef WINDLASS_LIB_SIMULATOR_SLOTEVENTS_H
#define WINDLASS_LIB_SIMULATOR_SLOTEVENTS_H

#include "windlass/Schedule/Schedule.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace windlass {

/// Follows the actions of a position and tells what each waits for, as emitted programs do
/// (`runtime/src/program/messages.h`): a message waits for the last forward or backward of its chunk in its slot, and
/// those wait for the messages in their slot since the last of them. A weight gradient is waited for, but reads and
/// writes nothing that moves, so that it does not wait. A wait says how many records of an event it skips
/// and not which slot it is for, so that the turns of a schedule are alike where slots take turns.
class SlotEvents {
public:
  /// An event, and the number of its latest records that are skipped.
  using Waits = std::vector<std::pair<int64_t, int64_t>>;

  /// Events are numbered from `first` on.
  explicit SlotEvents(int64_t first) : first(first) {}

  /// Returns the event that the chunk's forwards and backwards record.
  int64_t getComputed(int64_t chunk) { return getEvent(chunk, -1); }
  /// Returns the event that the chunk's messages with a position record.
  int64_t getMoved(int64_t chunk, int64_t peer) { return getEvent(chunk, peer); }

  /// Returns what an action waits for; the action then records its event. Actions that are no forwards, backwards or
  /// messages wait for nothing and record nothing.
  Waits follow(const schedule::Action &action);

private:
  struct Slot {
    /// The number of the record of the last forward or backward; -1 before the first.
    int64_t computed = -1;
    /// The numbers of the last records of messages since then, by event.
    std::map<int64_t, int64_t> moved;
  };

  int64_t getEvent(int64_t chunk, int64_t peer);
  /// Adds a record to the event, and returns its number.
  int64_t record(int64_t event) { return records[event - first]++; }
  std::pair<int64_t, int64_t> waitFor(int64_t event, int64_t number) const {
    return {event, records[event - first] - 1 - number};
  }

  int64_t first;
  std::map<std::pair<int64_t, int64_t>, int64_t> numbers;
  std::vector<int64_t> records;
  std::map<std::pair<int64_t, int64_t>, Slot> slots; ///< by chunk and slot
};

} // namespace windlass

#endif
