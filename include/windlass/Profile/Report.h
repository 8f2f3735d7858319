// How well the cost models predict what was measured.
#ifndef WINDLASS_PROFILE_REPORT_H
#define WINDLASS_PROFILE_REPORT_H

#include "windlass/Profile/Profile.h"

#include <string>
#include <vector>

namespace windlass {

/// The figures of one family of commands, or of one kind of collectives with one number of members.
struct FamilyReport {
  std::string family;
  int64_t entries = 0;
  /// The sum of the entries' times under load, the mean spread as a share of the time, and how many times faster an
  /// entry runs alone, in the mean (1 for collectives).
  double measuredSeconds = 0, spreadShare = 0, aloneSpeed = 1;
  /// The sum that the analytic model predicts, and the mean relative error of an entry.
  double analyticSeconds = 0, analyticErrorShare = 0;
  /// The mean relative error of the fit: for commands, each entry is predicted from the family's others alone; for
  /// collectives, from the law fitted to all entries of the kind.
  double fitErrorShare = 0;
};

/// Compares the entries of `profile` with the models: one report for each family, sorted by name.
std::vector<FamilyReport> reportProfile(const Profile &profile);

} // namespace windlass

#endif
