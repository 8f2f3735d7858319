#include "windlass/Schedule/ActionTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::StringRef;
using llvm::Twine;

std::string windlass::schedule::printTable(const ActionTable &table) {
  std::string text;
  for (const TableItem &item : table) {
    if (!text.empty())
      text += ' ';
    if (item.isRepeat()) {
      text += std::to_string(item.count) + "x(" + printTable(item.body) + ")";
      continue;
    }
    text += getName(item.kind);
    if (item.chunk != 0 || isTransfer(item.kind))
      text += ":" + std::to_string(item.chunk);
    if (isTransfer(item.kind))
      text += ">" + std::to_string(item.peerChunk);
    if (item.microBatch >= 0)
      text += "@" + std::to_string(item.microBatch);
  }
  return text;
}

namespace {

class Parser {
public:
  explicit Parser(StringRef text) : text(text), rest(text) {}

  llvm::Expected<ActionTable> run() {
    llvm::Expected<ActionTable> table = parseItems(0);
    if (table && !rest.empty())
      return fail("an action or a repeat");
    return table;
  }

private:
  /// Parses items up to the end of the text or to what is no item.
  llvm::Expected<ActionTable> parseItems(int depth) {
    ActionTable table;
    for (rest = rest.ltrim(); !rest.empty() && llvm::isAlnum(rest.front()); rest = rest.ltrim()) {
      llvm::Expected<TableItem> item = llvm::isDigit(rest.front()) ? parseRepeat(depth) : parseAction();
      if (!item)
        return item.takeError();
      table.push_back(std::move(*item));
    }
    return table;
  }

  llvm::Expected<TableItem> parseRepeat(int depth) {
    TableItem item;
    StringRef begin = rest;
    if (rest.consumeInteger(10, item.count) || item.count < 1) {
      rest = begin;
      return fail("a count of at least 1");
    }
    if (!rest.consume_front("x("))
      return fail("'x(' behind a count");
    if (depth == kMaxNesting)
      return fail("repeats at most " + Twine(kMaxNesting) + " deep");
    llvm::Expected<ActionTable> body = parseItems(depth + 1);
    if (!body)
      return body.takeError();
    if (body->empty())
      return fail("an action or a repeat");
    if (!rest.consume_front(")"))
      return fail("')'");
    item.body = std::move(*body);
    return item;
  }

  llvm::Expected<TableItem> parseAction() {
    TableItem item;
    StringRef word = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    std::optional<ActionKind> kind = findKind(word);
    if (!kind)
      return fail("an action or a repeat");
    item.kind = *kind;
    rest = rest.drop_front(word.size());
    if (rest.consume_front(":") && !consumeNumber(item.chunk))
      return fail("the number of a chunk");
    if (isTransfer(item.kind) && (!rest.consume_front(">") || !consumeNumber(item.peerChunk)))
      return fail("'>' and the number of the chunk at the other end");
    StringRef begin = rest;
    if (rest.consume_front("@") && (!consumeNumber(item.microBatch) || item.microBatch >= kMaxMicroBatches)) {
      rest = begin.drop_front();
      return fail("the number of a micro-batch below " + Twine(kMaxMicroBatches));
    }
    return item;
  }

  bool consumeNumber(int64_t &number) {
    return !rest.empty() && llvm::isDigit(rest.front()) && !rest.consumeInteger(10, number);
  }

  llvm::Error fail(const Twine &expected) const {
    return llvm::createStringError("expected " + expected + " at character " + Twine(text.size() - rest.size() + 1) +
                                   " of the schedule '" + text + "'");
  }

  StringRef text, rest;
};

} // namespace

llvm::Expected<ActionTable> windlass::schedule::parseTable(StringRef text) { return Parser(text).run(); }
