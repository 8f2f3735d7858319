#include "windlass/Search/ProblemFile.h"

#include "IntegerJson.h"
#include "windlass/Support/Gzip.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/Hashing.h"

#include <algorithm>
#include <unordered_map>

using namespace windlass;
using namespace windlass::search;
using llvm::StringRef;
using llvm::Twine;

namespace {

constexpr int64_t kMostBytes = int64_t(1) << 29;
constexpr int64_t kMostNodes = 1 << 20;
constexpr int64_t kMostLabels = 1 << 12;
constexpr int64_t kMostStreams = 1 << 10;
/// The largest total that is accepted, so that sums fit 64 bits.
constexpr int64_t kMostTotal = int64_t(1) << 60;

/// Lists of integers, one after the other.
struct Lists {
  std::vector<int64_t> values;
  std::vector<size_t> ends;
  size_t size() const { return ends.size(); }
  llvm::ArrayRef<int64_t> operator[](size_t i) const {
    size_t begin = i ? ends[i - 1] : 0;
    return llvm::ArrayRef(values).slice(begin, ends[i] - begin);
  }
};

/// A list that a node has besides its usages: [first, second, [value per label]].
struct Extra {
  int64_t first, second;
  std::vector<int64_t> values;
};

/// The content of the file; fields may come in any order.
struct Document {
  Lists costs, usages, intervals, edgeNodes, edgeCosts, windows;
  std::vector<std::vector<Extra>> pieces, loads;
  std::vector<int64_t> counts, edgeCounts;
  int64_t usageLimit = -1;
  bool hasPieces = false, hasLoads = false;
};

class Reader {
public:
  explicit Reader(StringRef text) : json(text) {}
  llvm::Expected<Problem> read();

private:
  void readLists(Lists &lists);
  std::vector<int64_t> readList();
  void readExtras(std::vector<std::vector<Extra>> &extras);
  void readDocument();
  void fail(const Twine &message) { json.fail(message); }

  bool checkCounts();
  void addNodes();
  void addEdges();
  void addWindows();

  IntegerJson json;
  Document document;
  Problem problem;
  /// The borders of the rows of memory, sorted.
  std::vector<int64_t> times;
  int64_t total = 0;
};

void Reader::readLists(Lists &lists) {
  json.array([&] {
    json.array([&] { lists.values.push_back(json.integer()); });
    lists.ends.push_back(lists.values.size());
  });
}

std::vector<int64_t> Reader::readList() {
  std::vector<int64_t> values;
  json.array([&] { values.push_back(json.integer()); });
  return values;
}

void Reader::readExtras(std::vector<std::vector<Extra>> &extras) {
  json.array([&] {
    extras.emplace_back();
    json.array([&] {
      Extra extra{-1, -1, {}};
      int position = 0;
      json.array([&] {
        if (position == 0)
          extra.first = json.integer();
        else if (position == 1)
          extra.second = json.integer();
        else if (position == 2)
          extra.values = readList();
        else
          fail("has a list of more than [number, number, [number for each label]]");
        ++position;
      });
      if (position != 3)
        fail("has a list of less than [number, number, [number for each label]]");
      extras.back().push_back(std::move(extra));
    });
  });
}

void Reader::readDocument() {
  auto readNodes = [&] {
    json.object({{"costs", [&] { readLists(document.costs); }},
                 {"usages", [&] { readLists(document.usages); }},
                 {"intervals", [&] { readLists(document.intervals); }},
                 {"counts?", [&] { document.counts = readList(); }},
                 {"pieces?",
                  [&] {
                    document.hasPieces = true;
                    readExtras(document.pieces);
                  }},
                 {"loads?", [&] {
                    document.hasLoads = true;
                    readExtras(document.loads);
                  }}});
  };
  auto readEdges = [&] {
    json.object({{"nodes", [&] { readLists(document.edgeNodes); }},
                 {"costs", [&] { readLists(document.edgeCosts); }},
                 {"counts?", [&] { document.edgeCounts = readList(); }}});
  };
  json.object({{"version?",
                [&] {
                  if (json.integer() != 1)
                    fail("is of another version than 1");
                }},
               {"problem", [&] {
                  json.object({{"name?", [&] { json.skipString(); }},
                               {"nodes", readNodes},
                               {"edges", readEdges},
                               {"windows?", [&] { readLists(document.windows); }},
                               {"usage_limit?", [&] { document.usageLimit = json.integer(); }}});
                }}});
  json.finish();
}

bool Reader::checkCounts() {
  auto differ = [&](size_t count, size_t wanted, const char *what, const char *of) {
    if (count != wanted && !json.failed())
      fail("has " + Twine(count) + " " + what + " for " + Twine(wanted) + " " + of);
  };
  size_t nodes = document.costs.size(), edges = document.edgeNodes.size();
  if (nodes == 0)
    fail("has no nodes");
  if (nodes > kMostNodes)
    fail("has " + Twine(nodes) + " nodes; at most " + Twine(kMostNodes) + " are read");
  differ(document.usages.size(), nodes, "usages", "nodes");
  differ(document.intervals.size(), nodes, "intervals", "nodes");
  differ(document.edgeCosts.size(), edges, "tables of costs", "edges");
  if (!document.counts.empty())
    differ(document.counts.size(), nodes, "counts", "nodes");
  if (!document.edgeCounts.empty())
    differ(document.edgeCounts.size(), edges, "counts", "edges");
  if (document.hasPieces)
    differ(document.pieces.size(), nodes, "lists of pieces", "nodes");
  if (document.hasLoads)
    differ(document.loads.size(), nodes, "lists of loads", "nodes");
  for (const std::vector<int64_t> &counts : {document.counts, document.edgeCounts})
    for (int64_t count : counts)
      if (count > kMostNodes)
        fail("counts something " + Twine(count) + " times; at most " + Twine(kMostNodes) + " are read");
  return !json.failed();
}

/// Returns the cost of a node or edge that counts several times. Products stay below 2^63, because both factors are
/// bounded.
int64_t timesCount(int64_t cost, const std::vector<int64_t> &counts, size_t i) {
  if (cost >= kForbidden)
    return kForbidden;
  int64_t count = counts.empty() ? 1 : counts[i];
  return count != 0 && cost >= (kForbidden + count - 1) / count ? kForbidden : cost * count;
}

void Reader::addNodes() {
  auto addTime = [&](int64_t begin, int64_t end) {
    if (end > begin)
      times.insert(times.end(), {begin, end});
  };
  size_t nodes = document.costs.size();
  for (size_t i = 0; i < nodes; ++i) {
    if (document.intervals[i].size() != 2)
      return fail("has an interval of node " + Twine(i) + " that is not [begin, end]");
    addTime(document.intervals[i][0], document.intervals[i][1]);
    if (document.hasPieces)
      for (const Extra &extra : document.pieces[i])
        addTime(extra.first, extra.second);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  if (!times.empty()) {
    if (document.usageLimit < 0)
      return fail("has intervals of memory and no usage_limit");
    problem.capacity.assign(times.size() - 1, document.usageLimit);
  }

  problem.nodes.resize(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    llvm::ArrayRef<int64_t> costs = document.costs[i], usages = document.usages[i];
    if (costs.empty() || costs.size() > kMostLabels)
      return fail("has " + Twine(costs.size()) + " labels at node " + Twine(i) + "; 1 to " + Twine(kMostLabels) +
                  " are read");
    Node &node = problem.nodes[i];
    for (int64_t cost : costs)
      node.costs.push_back(timesCount(cost, document.counts, i));
    auto addPiece = [&](int64_t begin, int64_t end, llvm::ArrayRef<int64_t> usage) {
      if (usage.size() != costs.size())
        return fail("has " + Twine(usage.size()) + " usages for " + Twine(costs.size()) + " labels at node " +
                    Twine(i));
      if (end <= begin)
        return;
      auto rowOf = [&](int64_t time) {
        return static_cast<int32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
      };
      int64_t most = *std::max_element(usage.begin(), usage.end());
      if (most > kMostTotal - total)
        return fail("has usages that add up to more than 2^60 by node " + Twine(i));
      total += most;
      node.pieces.push_back({rowOf(begin), rowOf(end), usage.vec()});
    };
    addPiece(document.intervals[i][0], document.intervals[i][1], usages);
    if (document.hasPieces)
      for (const Extra &extra : document.pieces[i])
        addPiece(extra.first, extra.second, extra.values);
    if (json.failed())
      return;
  }
}

void Reader::addEdges() {
  std::unordered_map<uint64_t, std::vector<int32_t>> known;
  for (size_t e = 0; e < document.edgeNodes.size(); ++e) {
    llvm::ArrayRef<int64_t> ends = document.edgeNodes[e], costs = document.edgeCosts[e];
    if (ends.size() != 2)
      return fail("has " + Twine(ends.size()) + " nodes at edge " + Twine(e) + "; 2 are wanted");
    for (int64_t end : ends)
      if (end >= static_cast<int64_t>(problem.nodes.size()))
        return fail("names node " + Twine(end) + " at edge " + Twine(e) + " and has " + Twine(problem.nodes.size()) +
                    " nodes");
    size_t wanted = problem.nodes[ends[0]].costs.size() * problem.nodes[ends[1]].costs.size();
    if (costs.size() != wanted)
      return fail("has " + Twine(costs.size()) + " costs for " + Twine(wanted) + " pairs of labels at edge " +
                  Twine(e));
    std::vector<int64_t> table;
    table.reserve(wanted);
    for (int64_t cost : costs)
      table.push_back(timesCount(cost, document.edgeCounts, e));
    uint64_t hash = llvm::hash_combine_range(table.begin(), table.end());
    std::vector<int32_t> &alike = known[hash];
    auto found = std::find_if(alike.begin(), alike.end(), [&](int32_t t) { return problem.tables[t] == table; });
    int32_t index = static_cast<int32_t>(problem.tables.size());
    if (found != alike.end()) {
      index = *found;
    } else {
      alike.push_back(index);
      problem.tables.push_back(std::move(table));
    }
    problem.edges.push_back({static_cast<int32_t>(ends[0]), static_cast<int32_t>(ends[1]), index});
  }
}

void Reader::addWindows() {
  if (document.windows.values.size() > kMostStreams)
    return fail("has " + Twine(document.windows.values.size()) + " streams; at most " + Twine(kMostStreams) +
                " are read");
  for (size_t w = 0; w < document.windows.size(); ++w) {
    if (document.windows[w].empty())
      return fail("has no streams in window " + Twine(w));
    for (int64_t load : document.windows[w])
      problem.load.push_back(std::min(load, kForbidden));
    problem.windowEnd.push_back(static_cast<int32_t>(problem.load.size()));
  }
  if (!document.hasLoads)
    return;
  for (size_t i = 0; i < problem.nodes.size(); ++i)
    for (const Extra &extra : document.loads[i]) {
      if (extra.first >= static_cast<int64_t>(document.windows.size()) ||
          extra.second >= static_cast<int64_t>(document.windows[extra.first].size()))
        return fail("has a load on window " + Twine(extra.first) + ", stream " + Twine(extra.second) + " at node " +
                    Twine(i) + ", which is not among its windows");
      if (extra.values.size() != problem.nodes[i].costs.size())
        return fail("has " + Twine(extra.values.size()) + " loads for " + Twine(problem.nodes[i].costs.size()) +
                    " labels at node " + Twine(i));
      int32_t first = extra.first ? problem.windowEnd[extra.first - 1] : 0;
      int32_t row = static_cast<int32_t>(problem.capacity.size() + first + extra.second);
      Piece piece{row, row + 1, {}};
      for (int64_t value : extra.values)
        piece.usage.push_back(timesCount(value, document.counts, i));
      int64_t most = *std::max_element(piece.usage.begin(), piece.usage.end());
      if (most > kMostTotal - total)
        return fail("has usages and loads that add up to more than 2^60 by node " + Twine(i));
      total += most;
      problem.nodes[i].pieces.push_back(std::move(piece));
    }
}

llvm::Expected<Problem> Reader::read() {
  readDocument();
  if (!json.failed() && checkCounts())
    addNodes();
  if (!json.failed())
    addEdges();
  if (!json.failed())
    addWindows();
  if (json.failed())
    return makeError(json.message());
  return std::move(problem);
}

} // namespace

llvm::Expected<Problem> windlass::search::parseProblem(StringRef text) { return Reader(text).read(); }

llvm::Expected<Problem> windlass::search::readProblem(StringRef path) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> file = readInputFile(path, kMostBytes, "problem");
  if (!file)
    return file.takeError();
  auto failed = [&](llvm::Error error) {
    return makeError("the problem " + printable(path) + " " + llvm::toString(std::move(error)));
  };
  if (isGzip((*file)->getBuffer())) {
    llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> unpacked = unpackGzip((*file)->getBuffer(), path, kMostBytes);
    if (!unpacked)
      return failed(unpacked.takeError());
    *file = std::move(*unpacked);
  }
  llvm::Expected<Problem> problem = parseProblem((*file)->getBuffer());
  if (!problem)
    return failed(problem.takeError());
  return problem;
}

std::string windlass::search::printSolution(const Solution &solution) {
  std::string text;
  for (int32_t label : solution)
    text += std::to_string(label) + "\n";
  return text;
}
