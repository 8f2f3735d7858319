// Segments of the forward pass: which of them are recomputed in the backward pass, the memory that this frees and the
// time that it costs.
#ifndef WINDLASS_DIALECT_PLAN_TRANSFORMS_SEGMENTS_H
#define WINDLASS_DIALECT_PLAN_TRANSFORMS_SEGMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "windlass/Dialect/Plan/IR/PlanOps.h"

#include "llvm/ADT/SetVector.h"

#include <string>
#include <vector>

namespace windlass::plan {

/// The labels of a block: "kept", where everything that the backward pass needs is kept; "block", where the whole block
/// is recomputed at once; "halves", where both its parts are recomputed, each by itself. The name of a part is the
/// label of a block of which only that part is recomputed.
constexpr char kKeptLabel[] = "kept", kBlockLabel[] = "block", kHalvesLabel[] = "halves";

/// A block of `@microbatch` as `plan.segment` marks it.
struct SegmentBlock {
  std::string name;
  int64_t index = 0;
  /// One part with an empty name, or two, in program order.
  std::vector<std::string> parts;
  std::vector<llvm::SmallVector<mlir::Operation *>> ops;

  /// Returns all labels that the block may have.
  std::vector<std::string> getLabels() const;
  /// Returns the label that the strategies of its operators stand for; none where no label stands for them.
  std::optional<std::string> getLabel() const;
  /// Returns the segments that are recomputed under `label`, one of `getLabels()`: the operators of each, in program
  /// order.
  std::vector<llvm::SmallVector<mlir::Operation *>> getSegments(llvm::StringRef label) const;
  /// Sets `segment` in the strategies of its operators, which all have one, to what `label` stands for.
  void setLabel(llvm::StringRef label) const;
};

/// Returns the blocks of the module's `@microbatch`, in program order.
std::vector<SegmentBlock> getSegmentBlocks(mlir::ModuleOp module);

/// The effect of recomputing segments of `@microbatch`: the operators that are copied and the stashes that go. Changes
/// nothing. Takes L3 before layouts are materialized.
class Recomputation {
public:
  explicit Recomputation(mlir::func::FuncOp microbatch);

  struct Segment {
    /// The forward operators to be copied, in program order, and the operator in front of which the copies go.
    std::vector<mlir::Operation *> ops;
    mlir::Operation *before = nullptr;
    /// The stashes that the copies replace.
    llvm::SmallVector<train::StashOp> dropped;
  };

  /// Adds a segment of these operators (in program order). Segments are added from the last of the program to the
  /// first. A segment whose values the backward pass does not need stays empty.
  void add(llvm::ArrayRef<mlir::Operation *> ops);
  /// Adds the segments that strategies name.
  void addChosen();
  /// Forgets all segments.
  void clear();

  llvm::ArrayRef<Segment> getSegments() const { return segments; }
  /// Returns the forward values that must be stashed in addition, because copies read them.
  llvm::ArrayRef<mlir::Value> getAdded() const { return added.getArrayRef(); }

  /// Returns the bytes of a rank that the segments free between forward and backward pass; negative where they take
  /// more.
  int64_t getFreedBytes() const;
  /// Returns the FLOPs that a rank recomputes for a micro-batch.
  double getFlops() const;
  /// Returns the bytes that a rank stashes when nothing is recomputed.
  int64_t getStashBytes();
  /// Returns the FLOPs of a rank for a micro-batch, forward and backward, when nothing is recomputed.
  double getAllFlops();

  /// Whether the results of `op` cost nothing to recompute: constants, reads, views.
  static bool isFree(mlir::Operation *op);
  static bool isView(mlir::Operation *op);

private:
  int64_t getBytes(mlir::Value value) const;
  double getFlops(mlir::Operation *op) const;

  mlir::func::FuncOp microbatch;
  MeshAttr mesh;
  /// The stashes, by the value that is stashed.
  llvm::DenseMap<mlir::Value, train::StashOp> stashes;
  /// For each stash, the ids of the forward operators whose adjoints read it, directly or through views.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Attribute, 2>> readers;
  std::vector<Segment> segments;
  llvm::SetVector<mlir::Value> added;
  /// The stashed values that copies read too, and that therefore stay stashed.
  llvm::DenseSet<mlir::Value> needed;
};

/// The steps in which `plan-choose-segments` takes segments, without the steps that free nothing.
class RecomputeSteps {
public:
  explicit RecomputeSteps(mlir::ModuleOp module);
  size_t size() const { return steps.size(); }
  /// Returns the number of steps before the first one that recomputes a whole block at once.
  size_t countParts() const { return parts; }
  /// Returns the bytes of stash that the first `count` steps free together.
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
  /// Returns the labels of all blocks after the first `count` steps.
  std::vector<std::string> getLabels(size_t count) const;

  size_t blocks = 0, parts = 0;
  std::vector<Step> steps;
  std::vector<int64_t> freed;
};

} // namespace windlass::plan

#endif
