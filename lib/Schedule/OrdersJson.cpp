#include "windlass/Schedule/OrdersJson.h"

#include "Boxes.h"
#include "PipelineWriter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

#include <map>

using namespace windlass::schedule;
using llvm::Twine;

llvm::json::Array windlass::schedule::writeOrders(const Pipeline &pipeline) {
  llvm::json::Array orders;
  for (const Schedule &schedule : pipeline.positions) {
    llvm::json::Array order;
    for (const Action &action : schedule.actions)
      if (llvm::StringRef word = getWord(action.kind); !word.empty())
        order.push_back(llvm::json::Array{word, action.chunk, action.microBatch});
    orders.push_back(std::move(order));
  }
  return orders;
}

namespace {

class OrdersReader {
public:
  llvm::Expected<Pipeline> run(const llvm::json::Value &document) {
    const llvm::json::Object *object = document.getAsObject();
    const llvm::json::Array *orders = object ? object->getArray("orders") : nullptr;
    if (!orders)
      return llvm::createStringError("has no 'orders', a list of actions for each rank");
    Placement placement;
    placement.positions = static_cast<int64_t>(orders->size());
    if (const llvm::json::Value *chains = object->get("chains"))
      if (llvm::Error error = readChains(*chains, placement))
        return std::move(error);
    size_t actions = 0;
    for (auto [rank, order] : llvm::enumerate(*orders)) {
      const llvm::json::Array *list = order.getAsArray();
      if (!list)
        return llvm::createStringError("rank " + Twine(rank) + " has no list of actions");
      actions += list->size();
      // Each has at most two messages, which end on two ranks.
      if (actions > kMaxActions / 4)
        return llvm::createStringError("has more than " + Twine(kMaxActions / 4) + " actions");
      for (auto [index, entry] : llvm::enumerate(*list))
        if (llvm::Error error = readAction(rank, index, entry))
          return std::move(error);
    }
    if (llvm::Error error = findPlacement(placement))
      return std::move(error);
    if (llvm::Error error = checkComplete(placement))
      return std::move(error);
    return write(placement);
  }

private:
  /// What is known of a micro-batch of a chunk.
  struct MicroBatch {
    bool hasForward = false, hasInput = false, hasWeight = false;
  };

  llvm::Error fail(size_t rank, size_t index, const Twine &text) const {
    return llvm::createStringError("rank " + Twine(rank) + ", action " + Twine(index) + ": " + text);
  }

  static llvm::Error readChains(const llvm::json::Value &value, Placement &placement) {
    const llvm::json::Array *list = value.getAsArray();
    placement.chains.clear();
    if (list && list->size() <= kMaxChunks)
      for (const llvm::json::Value &each : *list)
        if (std::optional<int64_t> chunk = each.getAsInteger())
          placement.chains.push_back(*chunk);
    if (!list || placement.chains.size() != list->size())
      return llvm::createStringError("'chains' is no list of the first chunks of its chains");
    return llvm::Error::success();
  }

  llvm::Error readAction(size_t rank, size_t index, const llvm::json::Value &entry) {
    const llvm::json::Array *parts = entry.getAsArray();
    std::optional<llvm::StringRef> word = parts && parts->size() == 3 ? (*parts)[0].getAsString() : std::nullopt;
    std::optional<int64_t> chunk, microBatch;
    if (word) {
      chunk = (*parts)[1].getAsInteger();
      microBatch = (*parts)[2].getAsInteger();
    }
    const auto *kind = word ? llvm::find_if(kActionKinds, [&](ActionKind each) { return getWord(each) == *word; })
                            : std::end(kActionKinds);
    if (kind == std::end(kActionKinds) || word->empty() || !chunk || !microBatch)
      return fail(rank, index, "expected [operation, chunk, micro-batch] with the operation F, BW, B or W");
    if (*chunk < 0 || *chunk >= kMaxChunks || *microBatch < 0 || *microBatch >= kMaxMicroBatches)
      return fail(rank, index,
                  "chunk " + Twine(*chunk) + ", micro-batch " + Twine(*microBatch) + "; chunks are below " +
                      Twine(kMaxChunks) + " and micro-batches below " + Twine(kMaxMicroBatches));
    auto [position, isNew] = positionOf.try_emplace(*chunk, rank);
    if (!isNew && position->second != rank)
      return fail(rank, index, "runs chunk " + Twine(*chunk) + ", which rank " + Twine(position->second) + " runs");
    std::string what = (*word + " of micro-batch " + Twine(*microBatch) + " of chunk " + Twine(*chunk)).str();
    MicroBatch &known = microBatches[{*chunk, *microBatch}];
    bool isForward = *kind == ActionKind::Forward, isWeight = *kind == ActionKind::WeightGradient;
    if (isForward ? known.hasForward : isWeight ? known.hasWeight : known.hasInput)
      return fail(rank, index, what + " runs twice");
    if (!isForward && !known.hasForward)
      return fail(rank, index, what + " runs before its F");
    if (isWeight && !known.hasInput)
      return fail(rank, index, what + " runs before its B");
    known.hasForward = true;
    known.hasInput |= !isForward && !isWeight;
    known.hasWeight |= endsBackward(*kind);
    actions.push_back({*kind, *chunk, *microBatch});
    return llvm::Error::success();
  }

  llvm::Error findPlacement(Placement &placement) const {
    placement.positionOf.clear();
    for (auto [chunk, rank] : positionOf) {
      if (chunk != placement.countChunks())
        return llvm::createStringError("no rank runs chunk " + Twine(placement.countChunks()) + ", but rank " +
                                       Twine(rank) + " runs chunk " + Twine(chunk));
      placement.positionOf.push_back(static_cast<int64_t>(rank));
    }
    return checkPlacement(placement);
  }

  /// Checks that all chunks of a chain have the same micro-batches 0, 1, ..., each with its whole backward.
  llvm::Error checkComplete(const Placement &placement) const {
    std::vector<int64_t> counts(placement.countChunks(), 0);
    for (const auto &[key, known] : microBatches) {
      auto [chunk, microBatch] = key;
      int64_t rank = placement.positionOf[chunk];
      if (microBatch != counts[chunk]++)
        return llvm::createStringError("rank " + Twine(rank) + " runs micro-batch " + Twine(microBatch) + " of chunk " +
                                       Twine(chunk) + ", but not micro-batch " + Twine(counts[chunk] - 1));
      if (!known.hasWeight)
        return llvm::createStringError("rank " + Twine(rank) + " runs no " + (known.hasInput ? "W" : "BW or B") +
                                       " of micro-batch " + Twine(microBatch) + " of chunk " + Twine(chunk));
    }
    for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
      if (std::optional<int64_t> previous = placement.getPrevious(chunk);
          previous && counts[chunk] != counts[*previous])
        return llvm::createStringError("chunk " + Twine(chunk) + " has " + Twine(counts[chunk]) +
                                       " micro-batches, but chunk " + Twine(*previous) + " has " +
                                       Twine(counts[*previous]));
    return llvm::Error::success();
  }

  llvm::Expected<Pipeline> write(const Placement &placement) const {
    PipelineWriter writer(placement);
    for (const Entry &action : actions)
      writer.add(action.kind, action.chunk, action.microBatch);
    return writer.finish();
  }

  struct Entry {
    ActionKind kind;
    int64_t chunk, microBatch;
  };
  std::vector<Entry> actions;
  std::map<int64_t, size_t> positionOf;
  std::map<std::pair<int64_t, int64_t>, MicroBatch> microBatches;
};

} // namespace

llvm::Expected<Pipeline> windlass::schedule::readOrders(const llvm::json::Value &document) {
  return OrdersReader().run(document);
}
