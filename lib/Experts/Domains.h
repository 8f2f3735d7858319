// Groups on nodes: which groups share a node, and the problem that a node then is.
#ifndef WINDLASS_LIB_EXPERTS_DOMAINS_H
#define WINDLASS_LIB_EXPERTS_DOMAINS_H

#include "SolveFlat.h"

#include <map>

namespace windlass::experts {

/// The groups of one node, in ascending order.
using GroupSet = std::vector<int32_t>;
/// The groups of each node.
using Partition = std::vector<GroupSet>;

/// The problems of nodes, each solved once for each set of groups.
class Domains {
public:
  Domains(const Shape &shape, const std::vector<double> &loads, SearchLimits &limits)
      : shape(shape), loads(loads), limits(limits) {}

  int32_t getGroupSize() const { return shape.experts / shape.groups; }
  int32_t getGpusOfNode() const { return shape.gpus / shape.getDomains(); }
  int32_t getGroupsOfNode() const { return shape.groups / shape.getDomains(); }
  const Shape &getShape() const { return shape; }

  FlatProblem makeProblem(const GroupSet &groups) const;
  /// Returns the expert of the layer that has a number in the problem of `groups`.
  int32_t getExpert(const GroupSet &groups, int32_t expert) const {
    return groups[expert / getGroupSize()] * getGroupSize() + expert % getGroupSize();
  }
  /// Returns the load of each group.
  std::vector<double> computeGroupLoads() const;

  /// Returns what bounds the largest load of a node with these groups from below; it rises as the node is solved.
  double getBound(const GroupSet &groups);
  double getBound(const Partition &partition);
  /// Solves the problem of a node as `solveFlat` does, unless an answer that good is known.
  const FlatAnswer &solve(const GroupSet &groups, double enough);

private:
  struct Entry {
    double bound = 0;
    FlatAnswer answer;
    /// What was enough for the answer; infinite before there is one.
    double enough;
  };
  Entry &find(const GroupSet &groups);

  const Shape &shape;
  const std::vector<double> &loads;
  SearchLimits &limits;
  std::map<GroupSet, Entry> entries;
};

struct PartitionList {
  /// The partitions by rising bound.
  std::vector<Partition> partitions;
  /// What bounds the largest load under every partition that is not in the list.
  double boundOfOthers = 0;
};

/// Lists the partitions whose nodes have the smallest loads: all that matter where groups are few, else two.
PartitionList listPartitions(Domains &domains);

} // namespace windlass::experts

#endif
