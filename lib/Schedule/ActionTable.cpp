#include "windlass/Schedule/ActionTable.h"

#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::Twine;

llvm::StringRef windlass::schedule::getName(ActionKind kind) {
  switch (kind) {
  case ActionKind::Forward:
    return "forward";
  case ActionKind::Backward:
    return "backward";
  case ActionKind::Reduce:
    return "reduce";
  case ActionKind::Update:
    return "update";
  case ActionKind::InputGradient:
    return "input_gradient";
  case ActionKind::WeightGradient:
    return "weight_gradient";
  case ActionKind::Send:
    return "send";
  case ActionKind::Receive:
    return "receive";
  }
  return "";
}

std::optional<ActionKind> windlass::schedule::findKind(llvm::StringRef name) {
  for (ActionKind kind : kActionKinds)
    if (name == getName(kind))
      return kind;
  return std::nullopt;
}

/// Reads rows that stand inside `depth` repeats.
static llvm::Expected<ActionTable> readRows(llvm::ArrayRef<TableRow> rows, int depth) {
  ActionTable table;
  while (!rows.empty()) {
    TableRow row = rows.front();
    rows = rows.drop_front();
    TableItem item;
    if (row.kind) {
      if (row.count != 1 || row.length != 0)
        return llvm::createStringError("gives " + getName(*row.kind) + " a count of " + Twine(row.count) +
                                       " and a length of " + Twine(row.length) + ", which only a repeat has");
      if (row.chunk < 0)
        return llvm::createStringError("runs chunk " + Twine(row.chunk) + ", but chunks count from 0");
      if (isTransfer(*row.kind) != (row.peerChunk >= 0))
        return llvm::createStringError("gives " + getName(*row.kind) + " the peer chunk " + Twine(row.peerChunk) +
                                       "; a send or receive has one, and nothing else");
      if (row.microBatch < -1 || row.microBatch >= kMaxMicroBatches)
        return llvm::createStringError("gives " + getName(*row.kind) + " the micro-batch " + Twine(row.microBatch) +
                                       " of at most " + Twine(kMaxMicroBatches));
      item.kind = *row.kind;
      item.chunk = row.chunk;
      item.peerChunk = row.peerChunk;
      item.microBatch = row.microBatch;
      table.push_back(std::move(item));
      continue;
    }
    std::string what = ("repeats " + Twine(row.length) + " actions " + Twine(row.count) + " times, but ").str();
    if (row.chunk != 0)
      return llvm::createStringError("repeats chunk " + Twine(row.chunk) + ", but only an action has a chunk");
    if (row.peerChunk != -1 || row.microBatch != -1)
      return llvm::createStringError(what + "only an action has a peer chunk or a micro-batch");
    if (row.length < 1 || row.count < 1)
      return llvm::createStringError(what + "both must be at least 1");
    if (row.length > static_cast<int64_t>(rows.size()))
      return llvm::createStringError(what + "only " + Twine(rows.size()) + " follow");
    if (depth == kMaxNesting)
      return llvm::createStringError("nests repeats more than " + Twine(kMaxNesting) + " deep");
    llvm::Expected<ActionTable> body = readRows(rows.take_front(row.length), depth + 1);
    if (!body)
      return body.takeError();
    item.count = row.count;
    item.body = std::move(*body);
    table.push_back(std::move(item));
    rows = rows.drop_front(row.length);
  }
  return table;
}

llvm::Expected<ActionTable> windlass::schedule::readRows(llvm::ArrayRef<TableRow> rows) { return ::readRows(rows, 0); }

std::vector<TableRow> windlass::schedule::writeRows(const ActionTable &table) {
  std::vector<TableRow> rows;
  for (const TableItem &item : table) {
    if (!item.isRepeat()) {
      rows.push_back({item.kind, item.chunk, 1, 0, item.peerChunk, item.microBatch});
      continue;
    }
    std::vector<TableRow> body = writeRows(item.body);
    rows.push_back({std::nullopt, 0, item.count, static_cast<int64_t>(body.size())});
    rows.insert(rows.end(), body.begin(), body.end());
  }
  return rows;
}

ActionTable windlass::schedule::makeSequentialStep(int64_t microBatches) {
  auto make = [](ActionKind kind) {
    TableItem item;
    item.kind = kind;
    return item;
  };
  ActionTable pair = {make(ActionKind::Forward), make(ActionKind::Backward)}, table = pair;
  if (microBatches > 1) {
    TableItem repeat;
    repeat.count = microBatches;
    repeat.body = std::move(pair);
    table = {std::move(repeat)};
  }
  table.push_back(make(ActionKind::Reduce));
  table.push_back(make(ActionKind::Update));
  return table;
}
