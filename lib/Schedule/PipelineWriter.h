// What generators of schedules share: the check of their sizes, and the writing of the computation of positions.
#ifndef WINDLASS_SCHEDULE_PIPELINEWRITER_H
#define WINDLASS_SCHEDULE_PIPELINEWRITER_H

#include "windlass/Schedule/Pipeline.h"

namespace windlass::schedule {

/// The sizes of a schedule. `microBatches` counts those of each chain.
struct Sizes {
  int64_t positions, chunksPerPosition, microBatches;

  /// Fails where there is no position, chunk or micro-batch, or where there are too many chunks or actions.
  llvm::Error check() const;
  /// Returns "a pipeline of 4 positions with 2 chunks each and 8 micro-batches".
  std::string print() const;
};

/// Collects the computation of all positions.
class PipelineWriter {
public:
  explicit PipelineWriter(Placement placement);

  const Placement &getPlacement() const { return pipeline.placement; }
  /// Returns the chunks of a position, in the order of the model.
  llvm::ArrayRef<int64_t> getChunks(int64_t position) const { return chunks[position]; }
  /// Appends an action to the list of the chunk's position.
  void add(ActionKind kind, int64_t chunk, int64_t microBatch);
  void forward(int64_t chunk, int64_t microBatch) { add(ActionKind::Forward, chunk, microBatch); }
  void backward(int64_t chunk, int64_t microBatch) { add(ActionKind::Backward, chunk, microBatch); }
  void inputGradient(int64_t chunk, int64_t microBatch) { add(ActionKind::InputGradient, chunk, microBatch); }
  void weightGradient(int64_t chunk, int64_t microBatch) { add(ActionKind::WeightGradient, chunk, microBatch); }

  /// Ends each position with the reduction of its chunks, the last of the model first as backwards end in that order,
  /// and their updates; adds sends and receives.
  llvm::Expected<Pipeline> finish();

private:
  Pipeline pipeline;
  std::vector<std::vector<int64_t>> chunks;
};

} // namespace windlass::schedule

#endif
