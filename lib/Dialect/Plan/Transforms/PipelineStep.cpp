#include "windlass/Dialect/Plan/Transforms/PipelineStep.h"

#include "windlass/Schedule/NamedSchedules.h"
#include "windlass/Schedule/PipelineFile.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/Words.h"

#include "llvm/ADT/SmallVectorExtras.h"

using namespace windlass;
using llvm::Twine;

llvm::Expected<schedule::Pipeline> plan::readOrders(PipelineAttr pipeline) {
  std::string text;
  for (mlir::StringAttr line : pipeline.getOrders())
    text += line.str() + '\n';
  llvm::Expected<schedule::PipelineFile> file = schedule::parsePipelineFile(text);
  if (!file)
    return file.takeError();
  const schedule::Placement &placement = file->pipeline.placement;
  if (placement.positions != pipeline.getPositions() || placement.countChunks() != pipeline.countChunks())
    return llvm::createStringError("its orders are of " + countOf(placement.countChunks(), "chunk") + " on " +
                                   countOf(placement.positions, "position") + ", but the pipeline has " +
                                   countOf(pipeline.countChunks(), "chunk") + " on " + Twine(pipeline.getPositions()));
  return std::move(file->pipeline);
}

llvm::Expected<schedule::Pipeline> plan::makeStep(PipelineAttr pipeline, int64_t microBatches) {
  llvm::StringRef name = pipeline.getSchedule().getValue();
  if (name == kOwnSchedule) {
    llvm::Expected<schedule::Pipeline> own = readOrders(pipeline);
    if (!own)
      return own;
    int64_t its = schedule::countMicroBatches(*own);
    if (its != microBatches)
      return llvm::createStringError("its orders are of " + countOf(its, "micro-batch", "micro-batches") +
                                     ", but each rank runs " + Twine(microBatches));
    return own;
  }
  const schedule::NamedSchedule *named = schedule::findNamedSchedule(name);
  if (!named)
    return llvm::createStringError("no published schedule is called " + printable(name));
  int64_t positions = pipeline.getPositions(), chunks = pipeline.countChunks();
  if (chunks % positions != 0)
    return llvm::createStringError(printable(name) + " gives each position as many chunks, but " +
                                   countOf(positions, "position") + " cannot share " + Twine(chunks) + " evenly");
  return named->make(positions, chunks / positions, microBatches);
}

llvm::SmallVector<mlir::StringAttr> plan::printOrders(mlir::MLIRContext *context, const schedule::Pipeline &step) {
  std::string text = schedule::printPipeline(step);
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return llvm::map_to_vector(lines, [&](llvm::StringRef line) { return mlir::StringAttr::get(context, line); });
}
