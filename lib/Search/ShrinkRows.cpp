// Rows of memory that cannot be exceeded, or whose limit another row implies.
#include "ShrinkGraph.h"

#include "windlass/Support/Random.h"

#include <algorithm>
#include <unordered_map>

using namespace windlass::search;

/// Numbers the rows that are kept anew; intervals stay intervals.
bool ShrinkGraph::applyRows(const std::vector<char> &isKept) {
  std::vector<int32_t> number(isKept.size() + 1);
  for (size_t row = 0; row < isKept.size(); ++row)
    number[row + 1] = number[row] + isKept[row];
  if (number.back() == static_cast<int32_t>(isKept.size()))
    return false;
  for (size_t row = 0; row < problem.capacity.size(); ++row)
    if (isKept[row])
      problem.capacity[number[row]] = problem.capacity[row];
  problem.capacity.resize(number[problem.capacity.size()]);
  taken.assign(problem.rowCount() + 1, 0);
  for (ShrinkNode &node : nodes) {
    if (!node.isAlive)
      continue;
    for (Piece &piece : node.pieces) {
      piece.begin = number[piece.begin];
      piece.end = number[piece.end];
    }
    tidyPieces(node);
  }
  return true;
}

void ShrinkGraph::chargeTaken() {
  size_t memoryRows = problem.capacity.size(), rows = problem.rowCount();
  int64_t sum = 0;
  for (size_t row = 0; row < rows; ++row) {
    sum += taken[row];
    if (row < memoryRows)
      problem.capacity[row] -= sum;
    else
      problem.load[row - memoryRows] = addCosts(problem.load[row - memoryRows], sum);
  }
  std::fill(taken.begin(), taken.end(), 0);
}

bool ShrinkGraph::reduceRows() {
  chargeTaken();
  size_t memoryRows = problem.capacity.size(), rows = problem.rowCount();

  // The most that every row takes, where pieces begin and end, and a hash that equal rows have in common.
  std::vector<int64_t> most(rows + 1);
  std::vector<uint64_t> hash(rows + 1);
  std::vector<char> begins(rows + 1), ends(rows + 1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].isAlive)
      continue;
    for (const Piece &piece : nodes[i].pieces) {
      int64_t largest = *std::max_element(piece.usage.begin(), piece.usage.end());
      Random random(i);
      uint64_t code = 0;
      for (int64_t usage : piece.usage)
        code += static_cast<uint64_t>(usage) * (random.next() | 1);
      most[piece.begin] += largest;
      most[piece.end] -= largest;
      hash[piece.begin] += code;
      hash[piece.end] -= code;
      begins[piece.begin] = ends[piece.end] = 1;
    }
  }
  for (size_t row = 1; row <= rows; ++row) {
    most[row] += most[row - 1];
    hash[row] += hash[row - 1];
  }

  std::vector<char> isKept(rows, 1);
  std::vector<size_t> stack;
  std::vector<size_t> lastBegin(rows + 1), lastEnd(rows + 1); // the last row up to which one is at
  for (size_t row = 0; row < rows; ++row) {
    lastBegin[row] = begins[row] ? row : row ? lastBegin[row - 1] : 0;
    lastEnd[row] = ends[row] ? row : row ? lastEnd[row - 1] : 0;
  }
  for (size_t row = 0; row < memoryRows; ++row) {
    if (problem.capacity[row] < 0) {
      isInfeasible = true;
      return true;
    }
    if (most[row] <= problem.capacity[row]) {
      isKept[row] = 0;
      continue;
    }
    bool isImplied = false;
    while (!stack.empty() && !isImplied) {
      size_t other = stack.back();
      if (lastBegin[row] <= other && problem.capacity[row] >= problem.capacity[other]) {
        isImplied = true; // what lives here lives there
      } else if (lastEnd[row] <= other && problem.capacity[other] >= problem.capacity[row]) {
        isKept[other] = 0;
        stack.pop_back();
      } else {
        break;
      }
    }
    if (isImplied)
      isKept[row] = 0;
    else
      stack.push_back(row);
  }
  std::unordered_map<uint64_t, size_t> known;
  for (size_t row : stack) {
    auto [found, isNew] = known.insert({hash[row], row});
    if (isNew)
      continue;
    size_t &other = found->second;
    if (problem.capacity[row] < problem.capacity[other])
      std::swap(row, other);
    isKept[row] = 0;
  }
  return applyRows(isKept);
}
