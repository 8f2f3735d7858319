#include "windlass/Search/Certificate.h"

#include "windlass/Support/StrictJson.h"

#include <algorithm>
#include <optional>

using namespace windlass;
using namespace windlass::search;
using llvm::Twine;

namespace {

/// A sum in units of 2^-40 of a cost that records whether it left its range, because prices and messages come from
/// outside.
class Sum {
public:
  void addProduct(int64_t a, int64_t b) { add(static_cast<__int128>(a) * b); }
  void addCost(int64_t cost) { addProduct(cost, int64_t(1) << Certificate::kPriceBits); }
  /// Adds a message, or a sum of some, in units of messages.
  void addMessage(__int128 message) {
    add(message * (__int128(1) << (Certificate::kPriceBits - Certificate::kMessageBits)));
  }
  void add(const Sum &other) {
    add(other.value);
    hasOverflowed |= other.hasOverflowed;
  }
  bool operator<(const Sum &other) const { return value < other.value; }
  bool isOver() const { return hasOverflowed; }
  /// Returns the least whole cost that is not below the sum; costs are whole.
  int64_t getCost() const {
    constexpr __int128 unit = __int128(1) << Certificate::kPriceBits;
    if (value <= 0)
      return 0;
    return value > kForbidden * unit ? kForbidden : static_cast<int64_t>((value + unit - 1) / unit);
  }

private:
  void add(__int128 more) { hasOverflowed |= __builtin_add_overflow(value, more, &value); }
  __int128 value = 0;
  bool hasOverflowed = false;
};

/// Proves a bound in one pass over a problem. Uses nothing that the solver derives from problems.
class Prover {
public:
  Prover(const Problem &problem, const Certificate &certificate) : problem(problem), certificate(certificate) {}

  llvm::Expected<int64_t> prove() {
    if (std::string error = checkPrices(); !error.empty())
      return makeError(error);
    if (std::string error = checkMessages(); !error.empty())
      return makeError(error);
    addRows();
    for (size_t i = 0; i < problem.nodes.size(); ++i)
      addNode(problem.nodes[i]);
    for (size_t e = 0; e < problem.edges.size(); ++e)
      addEdge(e);
    for (size_t i = 0; i < problem.nodes.size(); ++i)
      addLeastOfNode(i);
    if (total.isOver())
      return makeError("has prices and messages whose sums leave 127 bits");
    return isImpossible ? kForbidden : total.getCost();
  }

private:
  /// What an edge hands over to its two nodes, by label.
  using Messages = std::array<std::vector<int64_t>, 2>;

  std::string checkPrices() {
    size_t rows = problem.capacity.size() + problem.load.size();
    const std::vector<int64_t> &prices = certificate.prices;
    if (prices.size() != rows)
      return ("has " + Twine(prices.size()) + " prices, but the problem has " + Twine(rows) + " rows").str();
    int64_t sum = 0;
    for (size_t row = 0; row < rows; ++row) {
      if (prices[row] < 0 || prices[row] > Certificate::kMost - sum)
        return ("has the price " + Twine(prices[row]) + " of row " + Twine(row) +
                ", but prices are at least 0 and their sum is at most 2^62")
            .str();
      sum += prices[row];
    }
    size_t row = problem.capacity.size(), begin = row;
    for (int32_t end : problem.windowEnd) {
      int64_t weights = 0;
      for (; row < begin + static_cast<size_t>(end); ++row)
        weights += prices[row];
      if (weights != int64_t(1) << Certificate::kPriceBits)
        return ("has prices of streams up to row " + Twine(row) + " that add up to " + Twine(weights) +
                ", but those of a window make 2^" + Twine(Certificate::kPriceBits))
            .str();
    }
    return "";
  }

  std::string checkMessages() {
    const auto &messages = certificate.messages;
    if (messages.empty())
      return "";
    if (messages.size() != problem.edges.size())
      return ("has messages of " + Twine(messages.size()) + " edges, but the problem has " +
              Twine(problem.edges.size()))
          .str();
    for (size_t e = 0; e < messages.size(); ++e)
      for (int side = 0; side < 2; ++side) {
        int32_t node = side == 0 ? problem.edges[e].from : problem.edges[e].to;
        size_t labels = problem.nodes[node].costs.size();
        if (messages[e][side].size() != labels)
          return ("has " + Twine(messages[e][side].size()) + " messages of edge " + Twine(e) + " to node " +
                  Twine(node) + ", which has " + Twine(labels) + " labels")
              .str();
        for (int64_t message : messages[e][side])
          if (message < -Certificate::kMost || message > Certificate::kMost)
            return ("has the message " + Twine(message) + " of edge " + Twine(e) +
                    ", but messages are within 2^62 of 0")
                .str();
      }
    return "";
  }

  void addRows() {
    total.addCost(problem.constant);
    size_t memoryRows = problem.capacity.size();
    prefix.assign(certificate.prices.size() + 1, 0);
    for (size_t row = 0; row < certificate.prices.size(); ++row) {
      int64_t price = certificate.prices[row];
      prefix[row + 1] = prefix[row] + price;
      total.addProduct(price, row < memoryRows ? -problem.capacity[row] : problem.load[row - memoryRows]);
    }
  }

  void addNode(const Node &node) {
    std::vector<Sum> &sums = costs.emplace_back(node.costs.size());
    for (size_t x = 0; x < node.costs.size(); ++x) {
      sums[x].addCost(node.costs[x]);
      for (const Piece &piece : node.pieces)
        sums[x].addProduct(piece.usage[x], prefix[piece.end] - prefix[piece.begin]);
    }
  }

  void addEdge(size_t e) {
    const Edge &edge = problem.edges[e];
    const Messages *messages = certificate.messages.empty() ? nullptr : &certificate.messages[e];
    if (messages)
      for (int side = 0; side < 2; ++side)
        for (size_t x = 0; x < (*messages)[side].size(); ++x)
          costs[side == 0 ? edge.from : edge.to][x].addMessage((*messages)[side][x]);
    // Most messages leave room for sums of 64 bits, which are several times as fast.
    auto isSmall = [](int64_t message) { return std::abs(message) < int64_t(1) << 60; };
    bool areSmall = !messages || (llvm::all_of((*messages)[0], isSmall) && llvm::all_of((*messages)[1], isSmall));
    if (areSmall)
      addLeastPair<int64_t>(edge, messages);
    else
      addLeastPair<__int128>(edge, messages);
  }

  /// Adds the least cost of a pair of labels that the edge does not hand over to its nodes, in units of messages. Sums
  /// are within three times 2^62, and within 2^63 where messages are below 2^60.
  template <typename Integer> void addLeastPair(const Edge &edge, const Messages *messages) {
    const std::vector<int64_t> &table = problem.tables[edge.table], &from = problem.nodes[edge.from].costs,
                               &to = problem.nodes[edge.to].costs;
    std::optional<Integer> least;
    for (size_t x = 0; x < from.size(); ++x) {
      if (from[x] >= kForbidden)
        continue;
      Integer own = messages ? (*messages)[0][x] : 0;
      for (size_t y = 0; y < to.size(); ++y) {
        int64_t cost = table[x * to.size() + y];
        // An edge from a node to itself has one label at both ends.
        if (cost >= kForbidden || to[y] >= kForbidden || (edge.from == edge.to && x != y))
          continue;
        Integer sum = (static_cast<Integer>(cost) << Certificate::kMessageBits) - own;
        sum -= messages ? (*messages)[1][y] : 0;
        if (!least || sum < *least)
          least = sum;
      }
    }
    if (least)
      total.addMessage(*least);
    else
      isImpossible = true;
  }

  /// Adds the least cost of a node, once its edges have handed over their part.
  void addLeastOfNode(size_t i) {
    std::vector<Sum> allowed;
    for (size_t x = 0; x < costs[i].size(); ++x)
      if (problem.nodes[i].costs[x] < kForbidden)
        allowed.push_back(costs[i][x]);
    addLeast(allowed);
  }

  void addLeast(const std::vector<Sum> &sums) {
    auto least = std::min_element(sums.begin(), sums.end());
    if (least == sums.end())
      isImpossible = true;
    else
      total.add(*least);
    // A sum that left its range may have been the least.
    for (const Sum &sum : sums)
      if (sum.isOver())
        total.add(sum);
  }

  const Problem &problem;
  const Certificate &certificate;
  /// Sums of the prices of the rows before each.
  std::vector<int64_t> prefix;
  /// The cost of each node by label.
  std::vector<std::vector<Sum>> costs;
  Sum total;
  bool isImpossible = false;
};

} // namespace

llvm::Expected<int64_t> windlass::search::proveBound(const Problem &problem, const Certificate &certificate) {
  return Prover(problem, certificate).prove();
}
