// What it costs to bring values from one layout to another, each pair once.
#ifndef WINDLASS_LIB_PLANNER_RESHARDS_H
#define WINDLASS_LIB_PLANNER_RESHARDS_H

#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Profile/CostModel.h"
#include "windlass/Search/Problem.h"

#include <vector>

namespace windlass::planner {

class Reshards {
public:
  Reshards(plan::MeshAttr mesh, const CostModel &costs) : mesh(mesh), costs(costs) {}

  /// Afterwards the costs of this type may be asked for while another thread asks for those of another.
  void prepare(mlir::RankedTensorType type) { types.try_emplace(type); }

  /// Picoseconds; search::kForbidden where no reshard leads there.
  int64_t getCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to);
  /// Of an all-reduce of gradients of so many bytes on each rank. Small ones share a bucket of `bucketBytes`: they take
  /// their part of what a full one takes.
  int64_t getReduceCost(llvm::ArrayRef<mlir::StringAttr> axes, int64_t bytes, int64_t bucketBytes) const;
  /// Of an all-gather over axes that leaves so many bytes on each rank, or a reduce-scatter of so many; an all-reduce
  /// is both.
  int64_t getGatherCost(llvm::ArrayRef<mlir::StringAttr> axes, double bytes) const;

  plan::MeshAttr getMesh() const { return mesh; }

private:
  /// Of layouts of one type, those that place elements differently.
  struct Known {
    std::vector<plan::LayoutAttr> distinct;
    llvm::DenseMap<mlir::Attribute, unsigned> numbers;
    llvm::DenseMap<std::pair<unsigned, unsigned>, int64_t> costs;
  };
  unsigned getNumber(Known &known, plan::LayoutAttr layout) const;
  /// Of reading and writing so many elements.
  int64_t getCopyCost(mlir::RankedTensorType type, double elements) const;
  int64_t computeCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) const;
  int64_t getCost(const char *kind, llvm::ArrayRef<mlir::StringAttr> axes, double bytes) const;

  plan::MeshAttr mesh;
  const CostModel &costs;
  llvm::DenseMap<mlir::Type, Known> types;
};

} // namespace windlass::planner

#endif
