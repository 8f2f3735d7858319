// What a collective moves, and among whom. No MLIR.
#ifndef WINDLASS_PROFILE_COLLECTIVEWORK_H
#define WINDLASS_PROFILE_COLLECTIVEWORK_H

#include "windlass/Cluster/GroupShape.h"

#include <string>

namespace windlass {

/// What a collective, with the other groups along its axes, takes of the links of one tier: the share of their rate
/// that it uses in the mean while it runs alone.
struct LinkUse {
  /// The number of the tier in the cluster.
  int64_t tier = 0;
  double share = 0;
};

/// A collective among the ranks of one group of a mesh.
struct CollectiveWork {
  /// The kind as of `sched.launch_collective`: all_reduce, all_gather, reduce_scatter, all_to_all or permute.
  std::string kind;
  GroupShape group;
  /// The bytes of a rank's larger buffer.
  double payloadBytes = 0;
  /// The number of equal groups that run at the same time on the devices of a host. 0 says as many as there is room
  /// for: in a program, the other groups along the same axes run the same command.
  int64_t concurrentGroups = 0;

  /// Returns the steps of a ring that follow one another, each with one message: n-1, 2(n-1) for an all-reduce, and one
  /// for a permute.
  int64_t getRingSteps() const;
  /// Returns the bytes that a rank sends in all steps of a ring: (n-1)/n of the payload, twice that for an all-reduce,
  /// and all of it for a permute. (Thakur, Rabenseifner, Gropp: Optimization of Collective Communication Operations in
  /// MPICH, 2005.)
  double getRingBytes() const;
};

/// A gather that brings rows of tokens only to the members with the experts of their choice, or the scatter that brings
/// them back. All experts are taken to be chosen equally often.
struct RowExchange {
  GroupShape group;
  /// The bytes of the rows of all members' tokens.
  double wholeBytes = 0;
  /// The share of them that a member needs or has (windlass/Support/RowShare.h).
  double share = 1;

  /// Returns what goes over links: each pair of members exchanges equally many rows.
  CollectiveWork getMoved() const { return {"all_to_all", group, share * wholeBytes}; }
  /// Returns the bytes that a member exchanges with others. They are copied twice: once to put rows together, and once
  /// to take them apart or add them up.
  double getCopiedBytes() const {
    auto members = static_cast<double>(group.getMembers());
    return share * wholeBytes * (members - 1) / members;
  }
};

} // namespace windlass

#endif
