#include "windlass/Explain/SegmentFacts.h"

#include "windlass/Dialect/Plan/Transforms/Segments.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"

using namespace mlir;
using namespace windlass;

llvm::StringMap<SegmentFacts> windlass::describeSegments(ModuleOp planned) {
  llvm::StringMap<SegmentFacts> facts;
  std::vector<plan::SegmentBlock> blocks = plan::getSegmentBlocks(planned);
  if (blocks.empty())
    return facts;
  auto microbatch = train::getMicrobatchFunction(planned);
  plan::Recomputation chosen(microbatch), alone(microbatch);
  // Segments are added from the last one on, and the facts of each are what it adds to those behind it.
  for (const plan::SegmentBlock &block : llvm::reverse(blocks)) {
    std::string label = block.getLabel().value_or(plan::kKeptLabel);
    auto describe = [&](ArrayRef<Operation *> ops, const std::string &part, bool isRecomputed) {
      plan::Recomputation &recompute = isRecomputed ? chosen : alone;
      alone.clear();
      int64_t bytes = recompute.getFreedBytes();
      double flops = recompute.getFlops();
      recompute.add(ops);
      SegmentFacts segment = {block.name, part, isRecomputed, recompute.getFreedBytes() - bytes,
                              recompute.getFlops() - flops};
      for (Operation *op : ops)
        if (auto id = op->getAttrOfType<StringAttr>(train::kIdAttr))
          facts[id] = segment;
    };
    if (label == plan::kBlockLabel) {
      describe(block.getSegments(label).front(), "", true);
      continue;
    }
    for (auto [part, ops] : llvm::reverse(llvm::zip_equal(block.parts, block.ops)))
      describe(ops, part, label == plan::kHalvesLabel || label == part);
  }
  return facts;
}
