#include "windlass/Profile/Report.h"

#include "Fits.h"

#include <cmath>

using namespace windlass;

std::vector<FamilyReport> windlass::reportProfile(const Profile &profile) {
  CostModel analytic(profile.cluster);
  OperatorFits operators(profile, [&](const OperatorWork &work) { return analytic.getAnalyticSeconds(work); });
  CollectiveFits collectives(profile);
  std::map<std::string, FamilyReport> families;
  auto add = [&](const std::string &name, const MeasuredTime &time, double expected) -> FamilyReport & {
    FamilyReport &report = families[name];
    report.family = name;
    ++report.entries;
    report.measuredSeconds += time.medianSeconds;
    report.spreadShare += time.getErrorShare();
    report.analyticSeconds += expected;
    report.analyticErrorShare += std::abs(expected / time.medianSeconds - 1);
    return report;
  };
  for (const auto &[key, entry] : profile.commands) {
    const std::string &family = entry.work.family;
    FamilyReport &report = add(family, entry.loaded, analytic.getAnalyticSeconds(entry.work));
    report.aloneSpeed += entry.loaded.medianSeconds / entry.alone.medianSeconds - 1;
    report.fitErrorShare += operators.getErrorShare(family);
  }
  for (const auto &[key, time] : profile.collectives) {
    const auto &[kind, members, bytes] = key;
    CollectiveWork work = {kind, GroupShape::ofNeighbours(members), static_cast<double>(bytes)};
    add(kind + " of " + std::to_string(members), time, analytic.getAnalyticSeconds(work)).fitErrorShare +=
        collectives.getErrorShare(kind);
  }
  std::vector<FamilyReport> reports;
  for (auto &[name, report] : families) {
    double count = static_cast<double>(report.entries);
    report.spreadShare /= count;
    report.analyticErrorShare /= count;
    report.fitErrorShare /= count;
    report.aloneSpeed = 1 + (report.aloneSpeed - 1) / count;
    reports.push_back(report);
  }
  return reports;
}
