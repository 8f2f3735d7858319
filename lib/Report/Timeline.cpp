#include "windlass/Report/Timeline.h"

#include "Html.h"
#include "Svg.h"

#include "windlass/Support/Markup.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace windlass;
using namespace windlass::report;

namespace {

constexpr double kLane = 18, kGap = 6, kAxis = 26;
/// How finely the busy share of a part shows.
constexpr int kLevels = 4;

std::string secondsText(double seconds) {
  const char *unit = seconds >= 1 ? "s" : seconds >= 1e-3 ? "ms" : "µs";
  return shortNumber(seconds * (seconds >= 1 ? 1 : seconds >= 1e-3 ? 1e3 : 1e6)) + " " + unit;
}

/// What is drawn of a part: the work that takes most of it, and how much of the part is busy.
std::pair<size_t, int> lookOf(const std::vector<double> &shares) {
  double busy = 0;
  for (double share : shares)
    busy += orZero(share);
  if (busy <= 0)
    return {0, 0};
  auto most = static_cast<size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  return {most, std::clamp(static_cast<int>(std::lround(busy * kLevels)), 1, kLevels)};
}

std::string drawLane(const Lane &lane, double y) {
  std::string svg;
  const double width = (kWidth - kLeft - kRight) / static_cast<double>(std::max<size_t>(1, lane.parts.size()));
  for (size_t i = 0, end; i < lane.parts.size(); i = end) {
    auto look = lookOf(lane.parts[i]);
    for (end = i + 1; end < lane.parts.size() && lookOf(lane.parts[end]) == look;)
      ++end;
    if (double height = kLane * look.second / kLevels; height > 0)
      svg += rectangle(look.first, kLeft + static_cast<double>(i) * width, y + kLane - height,
                       static_cast<double>(end - i) * width, height);
  }
  return svg;
}

} // namespace

std::string report::drawTimeline(const Timeline &timeline) {
  size_t shown = std::min(timeline.lanes.size(), kMostLanes);
  if (shown == 0 || !(timeline.seconds > 0))
    return "<p class=\"none\">Nothing runs.</p>\n";
  double height = static_cast<double>(shown) * (kLane + kGap) + kAxis, bottom = height - kAxis;
  std::string svg = openSvg(kWidth, height, "What each stream does in a step of " + secondsText(timeline.seconds));
  double span = kWidth - kLeft - kRight, step = roundStep(timeline.seconds, 8);
  for (double at = 0; at <= timeline.seconds; at += step) {
    double x = kLeft + at / timeline.seconds * span;
    svg +=
        gridLine(x, 0, x, bottom) + text(x, bottom + 16, at == 0 ? "start" : "middle", at == 0 ? "0" : secondsText(at));
  }
  for (size_t i = 0; i < shown; ++i) {
    double y = static_cast<double>(i) * (kLane + kGap);
    svg += text(kLeft - 8, y + kLane - 5, "end", timeline.lanes[i].name) + drawLane(timeline.lanes[i], y);
  }
  svg += "</svg><figcaption>";
  for (auto [index, name] : llvm::enumerate(timeline.occupations))
    if (llvm::any_of(timeline.lanes, [&, index = index](const Lane &lane) {
          return llvm::any_of(lane.parts, [&](const auto &part) { return index < part.size() && part[index] > 0; });
        }))
      svg += writeKey(index, name);
  svg += "</figcaption></figure>\n";
  if (shown < timeline.lanes.size())
    svg += llvm::formatv("<p class=\"none\">{0} more streams are not drawn.</p>\n", timeline.lanes.size() - shown);
  return svg + (timeline.note.empty() ? "" : "<p>" + escapeMarkup(timeline.note) + "</p>\n");
}
