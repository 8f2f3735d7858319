// The costs of bringing values from one layout to another, each pair computed once.
#ifndef WINDLASS_LIB_PLANNER_RESHARDS_H
#define WINDLASS_LIB_PLANNER_RESHARDS_H

#include "windlass/Dialect/Plan/Transforms/ReshardPlan.h"
#include "windlass/Profile/CostModel.h"
#include "windlass/Search/Problem.h"

#include <map>
#include <tuple>
#include <vector>

namespace windlass::planner {

/// Rows of tokens that go to a layer of experts, or come from there. Where its experts are split over the axes of the
/// last gather, or the first scatter, rows are exchanged by what their tokens choose.
struct RowRoute {
  int64_t experts = 0, chosen = 0;
  /// Whether rows go to the layer.
  bool isReader = false;
};

/// The costs of reshards and collectives on one mesh, in picoseconds.
class Reshards {
public:
  Reshards(plan::MeshAttr mesh, const CostModel &costs) : mesh(mesh), costs(costs) {}

  /// Prepares a type, so that its costs may be asked for while other threads ask for those of other types.
  void prepare(mlir::RankedTensorType type) { types.try_emplace(type); }

  /// Returns the time of bringing a value from one layout to another; search::kForbidden where no reshard leads there.
  int64_t getCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to);
  /// Returns a lower bound of that time: its collectives, without copies, which may be views. There must be a reshard.
  int64_t getLeastCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to);
  /// Returns the time of bringing rows from one layout to another, where the experts are split over `axes`.
  int64_t getRowCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to, const RowRoute &route,
                     llvm::ArrayRef<mlir::StringAttr> axes);
  /// Returns a lower bound of that time, whatever axes split the experts.
  int64_t getLeastRowCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                          const RowRoute &route);
  /// Returns the time of an all-reduce of gradients of `bytes` on each rank. Small ones share a bucket of
  /// `bucketBytes`: they take their part of what a full one takes.
  int64_t getReduceCost(llvm::ArrayRef<mlir::StringAttr> axes, int64_t bytes, int64_t bucketBytes) const;
  /// Returns the time of an all-gather over axes that leaves `bytes` on each rank, or of a reduce-scatter of `bytes`;
  /// an all-reduce is both. Small ones share a unit of `unitBytes`: they take their part of what a full one takes, but
  /// never more than alone.
  int64_t getGatherCost(llvm::ArrayRef<mlir::StringAttr> axes, int64_t bytes, int64_t unitBytes) const;

  plan::MeshAttr getMesh() const { return mesh; }

private:
  /// The time of a reshard, and that of its collectives alone.
  struct Cost {
    int64_t all = 0, collectives = 0;
  };
  /// The time of a reshard of rows that are routed over `axes`; no axes where they are not.
  struct RoutedCost {
    llvm::SmallVector<mlir::StringAttr, 2> axes;
    Cost cost;
  };
  /// The layouts of one type that place elements differently, and the costs of reshards between them.
  struct TypeCosts {
    std::vector<plan::LayoutAttr> distinct;
    llvm::DenseMap<mlir::Attribute, unsigned> numbers;
    llvm::DenseMap<std::pair<unsigned, unsigned>, Cost> costs;
    /// By layouts, experts, choices and direction.
    std::map<std::tuple<unsigned, unsigned, int64_t, int64_t, bool>, RoutedCost> routed;
  };
  unsigned getNumber(TypeCosts &own, plan::LayoutAttr layout) const;
  /// Returns the time of reading and writing elements.
  int64_t getCopyCost(mlir::RankedTensorType type, double elements) const;
  Cost findCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to);
  Cost computeCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to) const;
  const RoutedCost &findRowCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                                const RowRoute &route);
  RoutedCost computeRowCost(mlir::RankedTensorType type, plan::LayoutAttr from, plan::LayoutAttr to,
                            const RowRoute &route) const;
  /// Returns the time of one step of a reshard.
  Cost computeCost(mlir::RankedTensorType type, const plan::ReshardStep &step) const;
  int64_t getCost(const char *kind, llvm::ArrayRef<mlir::StringAttr> axes, double bytes) const;

  plan::MeshAttr mesh;
  const CostModel &costs;
  llvm::DenseMap<mlir::Type, TypeCosts> types;
};

} // namespace windlass::planner

#endif
