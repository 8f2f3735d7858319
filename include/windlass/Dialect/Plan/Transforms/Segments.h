// Segments of the forward pass: which are run again in the backward pass, what that frees and what it costs.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_SEGMENTS_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_SEGMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "llvm/ADT/SetVector.h"

#include <string>
#include <vector>

namespace windlass::plan {

/// What a block's label says where all that the backward pass needs is kept, where the whole block is run again as one,
/// and where both its parts are, each for itself. A part's own name says that this part is.
constexpr char kKeptLabel[] = "kept", kBlockLabel[] = "block", kHalvesLabel[] = "halves";

/// A block of `@microbatch` as `plan.segment` marks it.
struct SegmentBlock {
  std::string name;
  int64_t index = 0;
  /// One part with an empty name, or two, in program order.
  std::vector<std::string> parts;
  std::vector<llvm::SmallVector<mlir::Operation *>> ops;

  /// All that the block's label may be.
  std::vector<std::string> getLabels() const;
  /// What the strategies of its operators say; nothing where they say what no label does.
  std::optional<std::string> getLabel() const;
  /// The operators that a label, one of `getLabels()`, runs again together, each in program order.
  std::vector<llvm::SmallVector<mlir::Operation *>> getSegments(llvm::StringRef label) const;
  /// Makes the strategies of its operators, which all have one, say it.
  void setLabel(llvm::StringRef label) const;
};

/// The blocks of the module's `@microbatch`, in program order.
std::vector<SegmentBlock> getSegmentBlocks(mlir::ModuleOp module);

/// What running segments again means for `@microbatch`: an analysis that changes nothing. Takes L3 before layouts are
/// materialized.
class Rerun {
public:
  explicit Rerun(mlir::func::FuncOp microbatch);

  struct Segment {
    /// Forward operators to be copied, in program order, and where their copies go.
    std::vector<mlir::Operation *> ops;
    mlir::Operation *before = nullptr;
    /// Stashes that the copies replace.
    llvm::SmallVector<train::StashOp> dropped;
  };

  /// Adds a segment of these operators (in program order). Segments are added from the last of the program to the
  /// first. One whose values the backward pass does not need stays empty.
  void add(llvm::ArrayRef<mlir::Operation *> ops);
  /// Adds those that strategies name.
  void addChosen();
  /// Forgets all segments.
  void clear();

  llvm::ArrayRef<Segment> getSegments() const { return segments; }
  /// Forward values that must be stashed in addition, because copies read them.
  llvm::ArrayRef<mlir::Value> getAdded() const { return added.getArrayRef(); }

  /// Bytes of a rank that the segments free between forward and backward pass; negative where they take more.
  int64_t getFreedBytes() const;
  /// FLOPs of a rank that are run again for a micro-batch.
  double getFlops() const;
  /// Bytes of a rank that are stashed when nothing is run again.
  int64_t getStashBytes();
  /// FLOPs of a rank for a micro-batch, forward and backward, when nothing is run again.
  double getAllFlops();

  /// Forward values that cost nothing to make again: constants, reads, views.
  static bool isFree(mlir::Operation *op);
  static bool isView(mlir::Operation *op);

private:
  int64_t getBytes(mlir::Value value) const;
  double getFlops(mlir::Operation *op) const;

  mlir::func::FuncOp microbatch;
  MeshAttr mesh;
  /// By the value that is stashed.
  llvm::DenseMap<mlir::Value, train::StashOp> stashes;
  /// Of each stash: ids of the forward operators whose adjoints read it, directly or through views.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Attribute, 2>> readers;
  std::vector<Segment> segments;
  llvm::SetVector<mlir::Value> added;
  /// Stashed values that copies read too, so that they stay.
  llvm::DenseSet<mlir::Value> needed;
};

/// The steps in which `plan-choose-segments` takes segments, without those that free nothing.
class RerunSteps {
public:
  explicit RerunSteps(mlir::ModuleOp module);
  size_t size() const { return steps.size(); }
  /// How many there are before blocks are run again as one.
  size_t countParts() const { return parts; }
  /// Bytes of stash that the first `count` steps free together.
  int64_t getFreedBytes(size_t count) const { return freed[count]; }
  /// Sets the strategies of this or another copy of the module for the first `count` steps.
  void apply(mlir::ModuleOp module, size_t count) const;

private:
  struct Step {
    size_t block, part;
    std::string label;
    int64_t bytes;
    double flops;
  };
  /// Labels of all blocks after the first `count` steps.
  std::vector<std::string> getLabels(size_t count) const;

  size_t blocks = 0, parts = 0;
  std::vector<Step> steps;
  std::vector<int64_t> freed;
};

} // namespace windlass::plan

#endif
