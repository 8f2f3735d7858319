// What the labels of a range's problem cost: asked for while the problem is built.
#ifndef WINDLASS_LIB_PLANNER_RANGEPRICES_H
#define WINDLASS_LIB_PLANNER_RANGEPRICES_H

#include "Labels.h"
#include "ProblemBuilder.h"

namespace windlass::planner {

/// A place of a range where a value may have to be resharded.
struct ReshardSite {
  enum class Kind {
    made,     ///< from the layout in which a result is made to the one in which it is found
    used,     ///< from the layout in which a value is found to the one in which an operand is taken
    read,     ///< from the layout in which operators find a parameter to the one in which an operand is taken
    argument, ///< from the layout of an input of the micro-batch to the one in which an operand is taken
  };
  Kind kind;
  /// The group and the number of the result; nothing where other ranks or no operator makes the value.
  std::optional<std::pair<unsigned, unsigned>> result;
  /// The reader, for all kinds but `made`.
  Use use;
  /// The number of values that a micro-batch reshards here.
  int64_t count = 1;
  mlir::RankedTensorType type;
};

/// What labels cost. Adds costs of nodes and edges, and loads of streams, to the problem that `ProblemBuilder` is
/// building; memory and the layouts that values may have are the business of `RangeProblem`.
class RangePrices {
public:
  virtual ~RangePrices() = default;

  /// Adds the time of a group's operators to their node; `recomputed` of them are recomputed.
  virtual void addOperators(int32_t node, unsigned group, int64_t recomputed) = 0;
  /// Returns the picoseconds of recomputing an operator of a group once, by label.
  virtual std::vector<int64_t> getRecomputeTimes(unsigned group) const = 0;
  /// Adds the time of recomputing to a node: `works` by label.
  virtual void addRecompute(int32_t node, const std::vector<ProblemBuilder::Work> &works) = 0;
  /// Adds the time of recomputing in the first chunk of a cut model, where problems have a choice for it.
  virtual void addRecomputeOfFirst(int32_t node, const std::vector<ProblemBuilder::Work> &works) {}
  /// Adds the time of a parameter group's update and collectives to its node.
  virtual void addParameters(int32_t node, unsigned group) = 0;
  /// Returns the nanoseconds of a step in which each micro-batch keeps `count` values of `type` in a layout for the
  /// backward pass.
  virtual int64_t getStashCost(int64_t count, mlir::RankedTensorType type, plan::LayoutAttr layout) = 0;
  /// Adds the reshards of a site between two nodes; forbids labels between whose layouts none leads.
  virtual void addReshards(int32_t from, int32_t to, const ReshardSite &site, const EdgeLayouts &layouts) = 0;
  /// Adds the reshards of an argument that has `layout` to its reader's node.
  virtual void addArgument(const ReshardSite &site, plan::LayoutAttr layout) = 0;
  /// Adds the cost of bringing `count` gradients of a parameter group from the layouts `found` to the copy in which the
  /// parameter's label accumulates them.
  virtual void addGradients(int32_t from, int32_t to, unsigned parameter, int64_t count,
                            const std::vector<plan::LayoutAttr> &found) = 0;
};

} // namespace windlass::planner

#endif
