#include "windlass/Search/ProblemFile.h"

#include "llvm/Support/raw_ostream.h"

using namespace windlass::search;

namespace {

/// Writes a list of what `print` writes of each element.
template <typename List, typename Print> void writeList(llvm::raw_ostream &out, const List &list, Print print) {
  out << '[';
  bool isFirst = true;
  for (const auto &element : list) {
    out << (isFirst ? "" : ",");
    isFirst = false;
    print(element);
  }
  out << ']';
}

void writeNumbers(llvm::raw_ostream &out, const std::vector<int64_t> &numbers) {
  writeList(out, numbers, [&](int64_t number) { out << number; });
}

} // namespace

std::string windlass::search::printProblem(const Problem &problem) {
  std::string text;
  llvm::raw_string_ostream out(text);
  int32_t rows = static_cast<int32_t>(problem.capacity.size());
  out << "{\"version\":1,\"problem\":{\"nodes\":{\"costs\":";
  writeList(out, problem.nodes, [&](const Node &node) { writeNumbers(out, node.costs); });
  // All memory is written as pieces, because a node may have several.
  out << ",\n\"usages\":";
  writeList(out, problem.nodes,
            [&](const Node &node) { writeNumbers(out, std::vector<int64_t>(node.costs.size(), 0)); });
  out << ",\n\"intervals\":";
  writeList(out, problem.nodes, [&](const Node &) { out << "[0,0]"; });
  out << ",\n\"pieces\":";
  writeList(out, problem.nodes, [&](const Node &node) {
    std::vector<const Piece *> pieces;
    for (const Piece &piece : node.pieces)
      if (piece.begin < rows)
        pieces.push_back(&piece);
    writeList(out, pieces, [&](const Piece *piece) {
      out << '[' << piece->begin << ',' << piece->end << ',';
      writeNumbers(out, piece->usage);
      out << ']';
    });
  });
  out << ",\n\"loads\":";
  writeList(out, problem.nodes, [&](const Node &node) {
    // The streams in their windows; a piece may load several streams, one after another.
    std::vector<std::pair<int32_t, const Piece *>> loads;
    for (const Piece &piece : node.pieces)
      for (int32_t row = piece.begin; row < piece.end; ++row)
        if (row >= rows)
          loads.push_back({row - rows, &piece});
    writeList(out, loads, [&](const auto &load) {
      int32_t window = 0, begin = 0;
      while (problem.windowEnd[window] <= load.first)
        begin = problem.windowEnd[window++];
      out << '[' << window << ',' << load.first - begin << ',';
      writeNumbers(out, load.second->usage);
      out << ']';
    });
  });
  out << "},\n\"edges\":{\"nodes\":";
  writeList(out, problem.edges, [&](const Edge &edge) { out << '[' << edge.from << ',' << edge.to << ']'; });
  out << ",\n\"costs\":";
  writeList(out, problem.edges, [&](const Edge &edge) { writeNumbers(out, problem.tables[edge.table]); });
  out << "},\n\"windows\":";
  int32_t begin = 0;
  writeList(out, problem.windowEnd, [&](int32_t end) {
    writeNumbers(out, std::vector<int64_t>(problem.load.begin() + begin, problem.load.begin() + end));
    begin = end;
  });
  if (rows > 0)
    out << ",\n\"usage_limit\":" << problem.capacity.front();
  out << "}}\n";
  return text;
}
