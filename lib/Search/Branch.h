// Branch and bound, the subproblem of the least bound first.
#ifndef WINDLASS_LIB_SEARCH_BRANCH_H
#define WINDLASS_LIB_SEARCH_BRANCH_H

#include "Fixing.h"

#include <memory>

namespace windlass::search {

/// The open subproblems of a search.
class BranchAndBound {
public:
  /// Begins with the messages, prices and bans of `root`.
  BranchAndBound(const Dual &root, int64_t seed);

  struct Open;
  /// Takes the subproblems that are worked on at once. Each is worked on alone, so that the number of threads changes
  /// nothing.
  std::vector<std::shared_ptr<Open>> takeBatch();
  /// Bounds a subproblem and splits it; may improve the incumbent.
  void process(Open &open, Dual &worker, Incumbent &incumbent, Meter &meter) const;
  /// Takes back a processed subproblem; the caller keeps the order of the batch.
  void put(const std::shared_ptr<Open> &open, const Incumbent &incumbent);

  /// Returns the least bound of all open subproblems.
  double bound() const;
  bool isDone() const { return queue.empty(); }
  int64_t processedCount() const { return processed; }

private:
  void push(std::shared_ptr<Open> open);

  std::vector<std::shared_ptr<Open>> queue;
  int64_t seed, sequence = 0, processed = 0;
  size_t bytes = 0;
};

/// Bounds, messages, prices and bans that the two halves of a split share.
struct BranchState {
  std::vector<float> messages; // any messages are valid, also rounded ones
  std::vector<double> prices;
  std::vector<bool> banned;
};

struct BranchAndBound::Open {
  double bound = 0;
  int64_t number = 0;
  std::shared_ptr<const BranchState> state;
  /// The node of which more labels are banned than in `state`, and these labels.
  int32_t node = -1;
  std::vector<int32_t> labels;
  /// The halves of the split, once the subproblem is processed.
  std::vector<std::shared_ptr<Open>> children;
  bool isProcessed = false;
};

} // namespace windlass::search

#endif
