#include "windlass/Schedule/CollectiveOrder.h"

#include <algorithm>

using namespace windlass::schedule;

static std::string nameOf(int64_t rank) { return "rank " + std::to_string(rank); }

/// Returns what is wrong with the sets of ranks themselves.
static std::string checkGroups(const CollectiveTables &tables) {
  const int64_t ranks = static_cast<int64_t>(tables.calls.size());
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const CollectiveCall &call : tables.calls[rank]) {
      const std::vector<int64_t> &members = tables.groups[call.group];
      if (!std::binary_search(members.begin(), members.end(), rank))
        return nameOf(rank) + " issues a collective of which it is no member";
      if (members.front() < 0 || members.back() >= ranks)
        return nameOf(rank) + " issues a collective with rank " +
               std::to_string(members.front() < 0 ? members.front() : members.back()) + " of " + std::to_string(ranks);
    }
  return {};
}

std::string windlass::schedule::replayCollectives(const CollectiveTables &tables) {
  if (std::string problem = checkGroups(tables); !problem.empty())
    return problem;
  const int64_t ranks = static_cast<int64_t>(tables.calls.size());
  std::vector<size_t> position(tables.calls.size(), 0);
  auto current = [&](int64_t rank) -> const CollectiveCall * {
    return position[rank] < tables.calls[rank].size() ? &tables.calls[rank][position[rank]] : nullptr;
  };
  auto place = [&](int64_t rank) { return nameOf(rank) + " at collective " + std::to_string(position[rank]); };

  // The number of members of a group that are in its current call; the last one completes the call.
  std::vector<size_t> waiting(tables.groups.size(), 0);
  std::vector<int64_t> arriving(tables.calls.size());
  for (int64_t rank = 0; rank < ranks; ++rank)
    arriving[rank] = rank;
  while (!arriving.empty()) {
    int64_t rank = arriving.back();
    arriving.pop_back();
    const CollectiveCall *call = current(rank);
    if (!call || ++waiting[call->group] < tables.groups[call->group].size())
      continue;
    waiting[call->group] = 0;
    for (int64_t member : tables.groups[call->group])
      if (current(member)->signature != call->signature)
        return place(rank) + " issues " + tables.signatures[call->signature] + " but " + place(member) + " issues " +
               tables.signatures[current(member)->signature];
    for (int64_t member : tables.groups[call->group]) {
      ++position[member];
      arriving.push_back(member);
    }
  }

  for (int64_t rank = 0; rank < ranks; ++rank)
    if (const CollectiveCall *call = current(rank))
      for (int64_t member : tables.groups[call->group]) {
        const CollectiveCall *other = current(member);
        if (other && other->group == call->group)
          continue;
        return place(rank) + " (" + tables.signatures[call->signature] + ") waits for " + nameOf(member) + ", which " +
               (other ? "is in " + tables.signatures[other->signature] + " with other members"
                      : std::string("has ended"));
      }
  return {};
}
