// What measured times say about work that was not measured.
#ifndef WINDLASS_LIB_PROFILE_FITS_H
#define WINDLASS_LIB_PROFILE_FITS_H

#include "windlass/Profile/CostModel.h"
#include "windlass/Profile/Profile.h"

#include <functional>
#include <limits>
#include <optional>

namespace windlass {

/// Predicts times as those of the analytic model times a factor that measured entries of the same family have for
/// similar work. Plans claim costs, so these are the same bits on every machine: no function of the C library is used
/// whose last bits differ (`PortableMath.h`).
class OperatorFits {
public:
  using Analytic = std::function<double(const OperatorWork &)>;
  OperatorFits(const Profile &profile, Analytic analytic);

  /// Returns the cost of `work`; nothing where the family has no entry.
  std::optional<Cost> find(const OperatorWork &work) const;
  /// Returns the relative error of the family's fit; 1 for a family of one entry, which no other entry predicts.
  double getErrorShare(const std::string &family) const { return families.at(family).errorShare.value_or(1); }
  /// Returns the least ratio of measured to analytic seconds in a family; 1 where the family has no entry.
  double getLeastRatio(const std::string &family) const;

private:
  struct Point {
    /// The base-2 logarithms of FLOPs per byte and of bytes.
    double intensity, bytes;
    double seconds;
    /// The base-2 logarithm of measured over analytic seconds.
    double correction;
    Point(const OperatorWork &work, double seconds, double analyticSeconds);
  };
  struct Family {
    std::vector<Point> points;
    std::optional<double> errorShare;
    double leastRatio = std::numeric_limits<double>::infinity();
  };
  /// Returns the mean of corrections, with larger weights for nearer points; `except` is left out. (Shepard: A
  /// two-dimensional interpolation function for irregularly-spaced data, 1968.)
  static double interpolate(const std::vector<Point> &points, const Point &at, const Point *except);

  Analytic analytic;
  std::map<std::string, Family> families;
};

/// Predicts collectives from their measured ladders of sizes; for numbers of members that were not measured, from a
/// latency per message and a rate, fitted to all ladders of the kind (Hockney, 1994).
class CollectiveFits {
public:
  explicit CollectiveFits(const Profile &profile);
  /// Returns the cost of `work`; nothing where the kind was not measured or the group is not within a host.
  std::optional<Cost> find(const CollectiveWork &work) const;
  double getErrorShare(const std::string &kind) const { return laws.at(kind).errorShare; }

private:
  struct Law {
    double secondsPerMessage = 0, secondsPerByte = 0, errorShare = 0;
  };
  using Ladder = std::map<int64_t, MeasuredTime>;
  static Law fit(const std::string &kind, const std::map<int64_t, Ladder> &ladders);

  int64_t hostDevices;
  std::map<std::string, std::map<int64_t, Ladder>> kinds;
  std::map<std::string, Law> laws;
};

} // namespace windlass

#endif
