// Files that hold the schedule of a pipeline. Plain C++, no IR.
#ifndef WINDLASS_SCHEDULE_PIPELINEFILE_H
#define WINDLASS_SCHEDULE_PIPELINEFILE_H

#include "windlass/Schedule/Pipeline.h"

namespace windlass::schedule {

struct PipelineFile {
  Pipeline pipeline;
  /// The most activations of a position in micro-batches, where the file has `cap`.
  std::optional<double> cap;
};

/// Reads what `printPipeline` prints, or a JSON object as `readOrders` reads it, which may have a `cap`, and checks that
/// the schedule is legal. Fails with one line that names the position and the action.
llvm::Expected<PipelineFile> parsePipelineFile(llvm::StringRef text);

/// Reads the text of a file in the same way; messages name the file too.
llvm::Expected<PipelineFile> readPipelineFile(llvm::StringRef path);

/// Fails at the first action with which a position keeps more activations than its cap.
llvm::Error checkCaps(const Pipeline &pipeline, llvm::ArrayRef<int64_t> caps);

} // namespace windlass::schedule

#endif
