// What streams do over a stretch of time, as a picture.
#ifndef WINDLASS_REPORT_TIMELINE_H
#define WINDLASS_REPORT_TIMELINE_H

#include <cstddef>
#include <string>
#include <vector>

namespace windlass::report {

/// The most lanes that are drawn: more cannot be told apart.
constexpr std::size_t kMostLanes = 64;

/// A stream over equal parts of the time, each with the shares of it that each occupation takes, in [0, 1] together.
struct Lane {
  std::string name;
  std::vector<std::vector<double>> parts;
};

struct Timeline {
  double seconds = 0;
  /// What streams are busy with.
  std::vector<std::string> occupations;
  std::vector<Lane> lanes;
  /// What else is to be said of it; may be empty.
  std::string note;
};

/// Draws a timeline as SVG. Text is escaped; numbers that are not finite are drawn as 0.
std::string drawTimeline(const Timeline &timeline);

} // namespace windlass::report

#endif
