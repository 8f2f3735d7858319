#include "PipelineWriter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass::schedule;
using llvm::Twine;

std::string Sizes::print() const {
  return ("a pipeline of " + Twine(positions) + " positions with " + Twine(chunksPerPosition) + " chunks each and " +
          Twine(microBatches) + " micro-batches")
      .str();
}

llvm::Error Sizes::check() const {
  if (positions < 1 || chunksPerPosition < 1 || microBatches < 1)
    return llvm::createStringError(print() + "; at least one of each is needed");
  if (positions > kMaxChunks || chunksPerPosition > kMaxChunks / positions)
    return llvm::createStringError("a pipeline of " + Twine(positions) + " positions with " + Twine(chunksPerPosition) +
                                   " chunks each; " + Twine(kMaxChunks) + " chunks are possible");
  // A chunk's micro-batch has a forward, a backward in one or two parts and at most four messages' ends; its reduction
  // and update are two.
  int64_t chunks = positions * chunksPerPosition;
  if (microBatches > kMaxMicroBatches || chunks > static_cast<int64_t>(kMaxActions) / (7 * microBatches + 2))
    return llvm::createStringError("a pipeline of " + Twine(chunks) + " chunks with " + Twine(microBatches) +
                                   " micro-batches has too many actions");
  return llvm::Error::success();
}

PipelineWriter::PipelineWriter(Placement placement) {
  pipeline.placement = std::move(placement);
  pipeline.positions.resize(getPlacement().positions);
  chunks.resize(getPlacement().positions);
  for (auto [chunk, position] : llvm::enumerate(getPlacement().positionOf))
    chunks[position].push_back(chunk);
}

void PipelineWriter::add(ActionKind kind, int64_t chunk, int64_t microBatch) {
  Action &action = pipeline.positions[getPlacement().positionOf[chunk]].actions.emplace_back();
  action.kind = kind;
  action.chunk = chunk;
  action.microBatch = microBatch;
}

llvm::Expected<Pipeline> PipelineWriter::finish() {
  for (const std::vector<int64_t> &each : chunks)
    for (ActionKind kind : {ActionKind::Reduce, ActionKind::Update})
      for (int64_t chunk : llvm::reverse(each))
        add(kind, chunk, 0);
  return insertTransfers(pipeline);
}
