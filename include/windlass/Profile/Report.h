// How well the models of costs say what was measured.
#ifndef WINDLASS_PROFILE_REPORT_H
#define WINDLASS_PROFILE_REPORT_H

#include "windlass/Profile/Profile.h"

#include <string>
#include <vector>

namespace windlass {

/// Of all entries of a family of commands, or of a kind of collectives among so many members.
struct FamilyReport {
  std::string family;
  int64_t entries = 0;
  /// Under load; the mean of the spreads' shares, and how many times faster an entry is alone (1 for collectives).
  double measuredSeconds = 0, spreadShare = 0, aloneSpeed = 1;
  /// What public figures say of the sum, and the mean of the errors' shares.
  double analyticSeconds = 0, analyticErrorShare = 0;
  /// How far the fit is off in the mean where an entry is said by the others alone.
  double fitErrorShare = 0;
};

std::vector<FamilyReport> reportProfile(const Profile &profile);

} // namespace windlass

#endif
