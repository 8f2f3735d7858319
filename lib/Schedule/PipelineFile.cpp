#include "windlass/Schedule/PipelineFile.h"

#include "windlass/Schedule/OrdersJson.h"
#include "windlass/Support/InputFile.h"
#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace windlass;
using namespace windlass::schedule;
using llvm::Twine;

static llvm::Expected<PipelineFile> readJson(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> document = parseStrictJson(text);
  if (!document)
    return document.takeError();
  llvm::Expected<Pipeline> pipeline = readOrders(*document);
  if (!pipeline)
    return pipeline.takeError();
  PipelineFile file = {std::move(*pipeline), std::nullopt};
  const llvm::json::Value *cap = document->getAsObject()->get("cap");
  if (cap && !cap->getAsNull()) {
    file.cap = cap->getAsNumber();
    if (!file.cap || !(*file.cap > 0 && *file.cap <= double(kMaxMicroBatches)))
      return makeError("'cap' must be null or a number above 0 and at most " + Twine(kMaxMicroBatches));
  }
  return file;
}

static llvm::Expected<PipelineFile> readText(llvm::StringRef text) {
  llvm::Expected<Pipeline> pipeline = parsePipeline(text);
  if (!pipeline)
    return pipeline.takeError();
  return PipelineFile{std::move(*pipeline), std::nullopt};
}

llvm::Expected<PipelineFile> windlass::schedule::parsePipelineFile(llvm::StringRef text) {
  // What is neither is refused as text, which says what it expects.
  llvm::StringRef begin = text.ltrim().take_front();
  llvm::Expected<PipelineFile> file = begin == "{" || begin == "[" ? readJson(text) : readText(text);
  if (!file)
    return file.takeError();
  if (llvm::Error error = checkPipeline(file->pipeline))
    return std::move(error);
  return file;
}

llvm::Expected<PipelineFile> windlass::schedule::readPipelineFile(llvm::StringRef path) {
  constexpr int64_t kMostBytes = 64 << 20;
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> buffer = readInputFile(path, kMostBytes, "schedule");
  if (!buffer)
    return buffer.takeError();
  llvm::Expected<PipelineFile> file = parsePipelineFile((*buffer)->getBuffer());
  if (!file)
    return makeError(printable(path) + ": " + llvm::toString(file.takeError()));
  return file;
}

llvm::Error windlass::schedule::checkCaps(const Pipeline &pipeline, llvm::ArrayRef<int64_t> caps) {
  for (auto [position, schedule, cap] : llvm::enumerate(pipeline.positions, caps)) {
    int64_t kept = 0;
    for (const Action &action : schedule.actions) {
      kept += (action.kind == ActionKind::Forward) - endsBackward(action.kind);
      if (kept > cap)
        return llvm::createStringError("position " + Twine(position) + " keeps " + Twine(kept) +
                                       " activations of chunks with the forward of micro-batch " +
                                       Twine(action.microBatch) + " of chunk " + Twine(action.chunk) +
                                       ", but its cap is " + Twine(cap));
    }
  }
  return llvm::Error::success();
}
