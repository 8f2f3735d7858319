#include "windlass/Dialect/Sched/Transforms/CollectiveOrder.h"

#include <algorithm>

using namespace windlass::sched;

std::string windlass::sched::replayCollectives(const std::vector<CollectiveTable> &tables) {
  const int64_t ranks = static_cast<int64_t>(tables.size());
  std::vector<size_t> position(tables.size(), 0);
  auto current = [&](int64_t rank) -> const CollectiveCall * {
    return position[rank] < tables[rank].size() ? &tables[rank][position[rank]] : nullptr;
  };
  auto place = [&](int64_t rank) {
    return "rank " + std::to_string(rank) + " at collective " + std::to_string(position[rank]);
  };

  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const CollectiveCall &call : tables[rank]) {
      if (!std::binary_search(call.members.begin(), call.members.end(), rank))
        return "rank " + std::to_string(rank) + " issues a collective of which it is no member";
      for (int64_t member : call.members)
        if (member < 0 || member >= ranks)
          return "rank " + std::to_string(rank) + " issues a collective with rank " + std::to_string(member) + " of " +
                 std::to_string(ranks);
    }

  // Ranks whose call may have become complete. A call completes only when its last member arrives, so each arrival is
  // looked at once.
  std::vector<int64_t> arrived(tables.size());
  for (int64_t rank = 0; rank < ranks; ++rank)
    arrived[rank] = rank;
  while (!arrived.empty()) {
    int64_t rank = arrived.back();
    arrived.pop_back();
    const CollectiveCall *call = current(rank);
    if (!call)
      continue;
    bool isComplete = std::all_of(call->members.begin(), call->members.end(), [&](int64_t member) {
      const CollectiveCall *other = current(member);
      return other && other->members == call->members;
    });
    if (!isComplete)
      continue;
    const std::vector<int64_t> members = call->members;
    for (int64_t member : members)
      if (current(member)->signature != call->signature)
        return place(rank) + " issues " + call->signature + " but " + place(member) + " issues " +
               current(member)->signature;
    for (int64_t member : members) {
      ++position[member];
      arrived.push_back(member);
    }
  }

  for (int64_t rank = 0; rank < ranks; ++rank)
    if (const CollectiveCall *call = current(rank))
      for (int64_t member : call->members) {
        const CollectiveCall *other = current(member);
        if (other && other->members == call->members)
          continue;
        return place(rank) + " (" + call->signature + ") waits for rank " + std::to_string(member) + ", which " +
               (other ? "is in " + other->signature + " with other members" : std::string("has ended"));
      }
  return {};
}
