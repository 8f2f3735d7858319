#include "windlass/Schedule/Pipeline.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::StringRef;
using llvm::Twine;

std::string windlass::schedule::printPipeline(const Pipeline &pipeline) {
  const Placement &placement = pipeline.placement;
  std::string text = ("positions " + Twine(placement.positions) + "\nchunks").str();
  for (auto [chunk, position] : llvm::enumerate(placement.positionOf)) {
    bool beginsChain = chunk > 0 && !placement.getPrevious(chunk);
    text += (beginsChain ? " | " : " ") + std::to_string(position);
  }
  text += '\n';
  for (auto [position, schedule] : llvm::enumerate(pipeline.positions)) {
    std::string table = printTable(compress(schedule));
    text += ("position " + Twine(position) + ":" + (table.empty() ? "" : " ") + table + "\n").str();
  }
  return text;
}

namespace {

class PipelineParser {
public:
  explicit PipelineParser(StringRef text) : rest(text) {}

  llvm::Expected<Pipeline> run() {
    Placement placement;
    StringRef line = nextLine();
    if (!line.consume_front("positions ") || line.getAsInteger(10, placement.positions))
      return fail("'positions' and their number");
    if (llvm::Error error = parseChunks(placement))
      return std::move(error);
    // The placement is checked before tables are read, because it says how many there are.
    if (llvm::Error error = checkPlacement(placement))
      return std::move(error);
    std::vector<ActionTable> tables;
    for (int64_t position = 0; position < placement.positions; ++position) {
      line = nextLine();
      std::string label = ("position " + Twine(position) + ":").str();
      if (!line.consume_front(label))
        return fail("'" + Twine(label) + "'");
      llvm::Expected<ActionTable> table = parseTable(line);
      if (!table)
        return llvm::createStringError("position " + Twine(position) + ": " + llvm::toString(table.takeError()));
      tables.push_back(std::move(*table));
    }
    if (!rest.trim().empty()) {
      nextLine();
      return fail("the end after the last position");
    }
    return expandPipeline(placement, tables);
  }

private:
  StringRef nextLine() {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    ++number;
    return line.rtrim();
  }

  llvm::Error parseChunks(Placement &placement) {
    StringRef line = nextLine();
    if (!line.consume_front("chunks"))
      return fail("'chunks' and the position of each");
    placement.positionOf.clear();
    for (line = line.ltrim(); !line.empty(); line = line.ltrim()) {
      if (line.consume_front("|")) {
        placement.chains.push_back(placement.countChunks());
        continue;
      }
      if (!llvm::isDigit(line.front()) || line.consumeInteger(10, placement.positionOf.emplace_back()))
        return fail("the position of a chunk, or '|' between two chains");
      if (placement.countChunks() > kMaxChunks)
        return fail("at most " + Twine(kMaxChunks) + " chunks");
    }
    return llvm::Error::success();
  }

  llvm::Error fail(const Twine &expected) const {
    return llvm::createStringError("expected " + expected + " in line " + Twine(number) + " of the pipeline");
  }

  StringRef rest;
  int64_t number = 0;
};

} // namespace

llvm::Expected<Pipeline> windlass::schedule::parsePipeline(StringRef text) { return PipelineParser(text).run(); }
