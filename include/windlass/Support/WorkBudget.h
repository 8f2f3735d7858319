// The work that a file may cause, counted in steps: reading the same file ends at the same place on every machine.
#ifndef WINDLASS_SUPPORT_WORKBUDGET_H
#define WINDLASS_SUPPORT_WORKBUDGET_H

#include <cstdint>

namespace windlass {

class WorkBudget {
public:
  explicit WorkBudget(int64_t steps) : limit(steps), left(steps) {}

  /// Takes `steps` from the budget and returns true; where fewer are left, takes none and returns false.
  bool spend(int64_t steps) {
    if (steps > left)
      return false;
    left -= steps;
    return true;
  }
  int64_t getLimit() const { return limit; }
  int64_t getLeft() const { return left; }

private:
  int64_t limit, left;
};

} // namespace windlass

#endif
