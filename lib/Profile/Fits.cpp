#include "Fits.h"

#include "windlass/Support/PortableMath.h"

#include <algorithm>
#include <cmath>

using namespace windlass;

/// The distance within which two works count as one: a factor of 1.07 in bytes.
static constexpr double kSameWork = 0.1;

static double logOf(double work) { return portableLog2(std::max(work, 1.0)); }

static Cost makeCost(double seconds, CostSource source, std::optional<double> errorShare) {
  return {toPicoseconds(seconds), source, errorShare};
}

OperatorFits::Point::Point(const OperatorWork &work, double seconds, double expected)
    : intensity(logOf(work.flops) - logOf(work.bytes)), bytes(logOf(work.bytes)), seconds(seconds),
      correction(portableLog2(seconds / expected)) {}

OperatorFits::OperatorFits(const Profile &profile, Analytic analytic) : analytic(std::move(analytic)) {
  for (const auto &[key, entry] : profile.commands) {
    double expected = this->analytic(entry.work);
    if (expected <= 0)
      continue;
    Family &family = families[entry.work.family];
    family.points.push_back(Point(entry.work, entry.loaded.medianSeconds, expected));
    family.leastRatio = std::min(family.leastRatio, entry.loaded.medianSeconds / expected);
  }
  // Predict each entry of a family from the others; long entries weigh more in the error.
  for (auto &[name, family] : families) {
    double off = 0, sum = 0;
    for (const Point &point : family.points) {
      off += point.seconds * std::abs(portableExp2(interpolate(family.points, point, &point) - point.correction) - 1);
      sum += point.seconds;
    }
    if (family.points.size() > 1)
      family.errorShare = off / sum;
  }
}

double OperatorFits::interpolate(const std::vector<Point> &points, const Point &at, const Point *except) {
  double sum = 0, weights = 0;
  for (const Point &point : points) {
    if (&point == except)
      continue;
    double intensity = point.intensity - at.intensity, bytes = point.bytes - at.bytes;
    double near = 1 / (intensity * intensity + bytes * bytes + kSameWork * kSameWork);
    sum += near * near * point.correction;
    weights += near * near;
  }
  return weights > 0 ? sum / weights : 0;
}

std::optional<Cost> OperatorFits::find(const OperatorWork &work) const {
  auto found = families.find(work.family);
  if (found == families.end())
    return std::nullopt;
  const Family &family = found->second;
  double correction = interpolate(family.points, Point(work, 1, 1), nullptr);
  return makeCost(analytic(work) * portableExp2(correction), CostSource::Fitted, family.errorShare);
}

double OperatorFits::getLeastRatio(const std::string &family) const {
  auto found = families.find(family);
  return found == families.end() ? 1 : found->second.leastRatio;
}

CollectiveFits::CollectiveFits(const Profile &profile) : hostDevices(profile.cluster.hosts.front().devices) {
  for (const auto &[key, time] : profile.collectives)
    kinds[std::get<0>(key)][std::get<1>(key)][std::get<2>(key)] = time;
  for (const auto &[kind, ladders] : kinds)
    laws[kind] = fit(kind, ladders);
}

/// Fits a law by least squares of the relative errors.
CollectiveFits::Law CollectiveFits::fit(const std::string &kind, const std::map<int64_t, Ladder> &ladders) {
  double mm = 0, mb = 0, bb = 0, m1 = 0, b1 = 0;
  auto forEach = [&](auto visit) {
    for (const auto &[members, ladder] : ladders)
      for (const auto &[bytes, time] : ladder) {
        CollectiveWork work = {kind, GroupShape::ofNeighbours(members), static_cast<double>(bytes)};
        visit(static_cast<double>(work.getRingSteps()) / time.medianSeconds, work.getRingBytes() / time.medianSeconds);
      }
  };
  forEach([&](double messages, double bytes) {
    mm += messages * messages;
    mb += messages * bytes;
    bb += bytes * bytes;
    m1 += messages;
    b1 += bytes;
  });
  Law law;
  double determinant = mm * bb - mb * mb;
  if (determinant > 0) {
    law.secondsPerMessage = (m1 * bb - b1 * mb) / determinant;
    law.secondsPerByte = (b1 * mm - m1 * mb) / determinant;
  }
  // Neither coefficient may be below 0: where one would be, it is 0 and the other is fitted alone.
  if (law.secondsPerMessage < 0)
    law = {0, b1 / bb, 0};
  else if (law.secondsPerByte < 0)
    law = {m1 / mm, 0, 0};
  double count = 0;
  forEach([&](double messages, double bytes) {
    law.errorShare += std::abs(messages * law.secondsPerMessage + bytes * law.secondsPerByte - 1);
    ++count;
  });
  law.errorShare /= std::max(count, 1.0);
  return law;
}

std::optional<Cost> CollectiveFits::find(const CollectiveWork &work) const {
  auto found = kinds.find(work.kind);
  if (found == kinds.end() || work.group.getSpan() > hostDevices)
    return std::nullopt;
  auto ladder = found->second.find(work.group.getMembers());
  if (ladder == found->second.end()) {
    const Law &law = laws.at(work.kind);
    double seconds =
        static_cast<double>(work.getRingSteps()) * law.secondsPerMessage + work.getRingBytes() * law.secondsPerByte;
    return makeCost(seconds, CostSource::Fitted, law.errorShare);
  }
  const Ladder &sizes = ladder->second;
  auto above = sizes.lower_bound(static_cast<int64_t>(work.payloadBytes));
  if (above == sizes.end()) {
    auto [bytes, time] = *sizes.rbegin();
    return makeCost(time.medianSeconds * work.payloadBytes / static_cast<double>(bytes), CostSource::Fitted,
                    time.getErrorShare());
  }
  if (above == sizes.begin())
    return makeCost(above->second.medianSeconds, CostSource::Measured, above->second.getErrorShare());
  auto below = std::prev(above);
  double share =
      (work.payloadBytes - static_cast<double>(below->first)) / static_cast<double>(above->first - below->first);
  return makeCost(below->second.medianSeconds + share * (above->second.medianSeconds - below->second.medianSeconds),
                  CostSource::Measured, std::max(below->second.getErrorShare(), above->second.getErrorShare()));
}
