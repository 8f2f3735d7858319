// SVG by hand: a few lines, axes with round numbers, and a legend.
#include "windlass/Report/Page.h"

#include "Html.h"

#include "windlass/Support/Markup.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace windlass;
using namespace windlass::report;

namespace {

constexpr double kWidth = 720, kHeight = 260, kLeft = 64, kRight = 12, kTop = 12, kBottom = 34;
/// The most points of a line: more than a screen has columns show nothing more.
constexpr size_t kMostPoints = 700;
/// The most ticks of an axis; there are far fewer unless the numbers are absurd.
constexpr int kMostTicks = 20;
/// The largest value that is drawn, so that spans of values stay finite.
constexpr double kLargest = 1e150;

struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool isEmpty() const { return low > high; }
};

/// Widens a range to round ends. A range of one value gets room around it.
double roundEnds(Range &range) {
  if (range.high - range.low <= 1e-12 * std::max(std::abs(range.high), std::abs(range.low))) {
    double room = range.high == 0 ? 1 : std::abs(range.high) * 0.1;
    range.low -= room;
    range.high += room;
  }
  double step = roundStep(range.high - range.low, 5);
  range.low = std::floor(range.low / step) * step;
  range.high = std::ceil(range.high / step) * step;
  return step;
}

using Points = std::vector<std::pair<double, double>>;

Points thin(const Points &points) {
  Points kept;
  for (auto point : points)
    if (std::isfinite(point.first) && std::abs(point.second) < kLargest)
      kept.push_back(point);
  if (kept.size() <= kMostPoints)
    return kept;
  size_t group = (kept.size() + kMostPoints - 1) / kMostPoints;
  Points means;
  for (size_t i = 0; i < kept.size(); i += group) {
    size_t end = std::min(kept.size(), i + group);
    double x = 0, y = 0;
    for (size_t j = i; j < end; ++j) {
      x += kept[j].first / double(end - i);
      y += kept[j].second / double(end - i);
    }
    means.emplace_back(x, y);
  }
  return means;
}

} // namespace

std::string report::drawChart(llvm::StringRef title, llvm::ArrayRef<Series> series) {
  std::vector<Points> drawn;
  Range x, y;
  for (const Series &each : series) {
    drawn.push_back(thin(each.points));
    for (auto [px, py] : drawn.back()) {
      x.add(px);
      y.add(py);
    }
  }
  if (x.isEmpty())
    return "<p class=\"none\">" + escapeMarkup(title) + ": nothing was recorded.</p>\n";
  double yStep = roundEnds(y);
  if (x.low == x.high) {
    x.low -= 0.5;
    x.high += 0.5;
  }
  auto atX = [&](double value) { return kLeft + (value - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight); };
  auto atY = [&](double value) {
    return kHeight - kBottom - (value - y.low) / (y.high - y.low) * (kHeight - kTop - kBottom);
  };
  std::string svg = llvm::formatv("<figure><svg viewBox=\"0 0 {0} {1}\" role=\"img\"><title>{2}</title>\n", int(kWidth),
                                  int(kHeight), escapeMarkup(title));
  for (int i = 0; i < kMostTicks && y.low + i * yStep <= y.high + yStep / 2; ++i) {
    double tick = y.low + i * yStep;
    std::string at = coordinate(atY(tick));
    // A sum of steps that should be zero is not quite.
    std::string label = shortNumber(std::abs(tick) < yStep / 1e6 ? 0 : tick);
    svg += llvm::formatv("<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>"
                         "<text x=\"{3}\" y=\"{4}\" text-anchor=\"end\">{5}</text>\n",
                         int(kLeft), int(kWidth - kRight), at, int(kLeft - 6), coordinate(atY(tick) + 4), label);
  }
  double xStep = std::max(1.0, roundStep(x.high - x.low, 6));
  double first = std::ceil(x.low / xStep) * xStep;
  for (int i = 0; i < kMostTicks && first + i * xStep <= x.high; ++i)
    svg += llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"middle\">{2:f0}</text>\n",
                         coordinate(atX(first + i * xStep)), int(kHeight - kBottom + 16), first + i * xStep);
  svg += llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"end\">step</text>\n", int(kWidth - kRight),
                       int(kHeight - 3));
  for (auto [index, points] : llvm::enumerate(drawn)) {
    if (series[index].isDots || points.size() == 1) {
      for (auto [px, py] : points)
        svg += llvm::formatv("<circle class=\"dot s{0}\" cx=\"{1}\" cy=\"{2}\" r=\"3\"/>\n", index, coordinate(atX(px)),
                             coordinate(atY(py)));
      continue;
    }
    std::string path;
    for (auto [px, py] : points)
      path += (path.empty() ? "" : " ") + coordinate(atX(px)) + "," + coordinate(atY(py));
    svg += llvm::formatv("<polyline class=\"line s{0}\" points=\"{1}\"/>\n", index, path);
  }
  svg += "</svg><figcaption>";
  for (auto [index, each] : llvm::enumerate(series))
    if (!drawn[index].empty())
      svg += writeKey(index, each.name);
  return svg + "</figcaption></figure>\n";
}

std::string report::drawBar(llvm::ArrayRef<std::pair<std::string, int64_t>> parts, int64_t whole) {
  std::string svg = "<figure><svg viewBox=\"0 0 720 28\" role=\"img\"><title>memory by use</title>\n", keys;
  double at = 0;
  for (auto [index, part] : llvm::enumerate(parts)) {
    if (part.second <= 0 || whole <= 0)
      continue;
    double width = 720.0 * double(part.second) / double(whole);
    svg += llvm::formatv("<rect class=\"part s{0}\" x=\"{1}\" y=\"0\" width=\"{2}\" height=\"28\"/>\n", index,
                         coordinate(at), coordinate(std::min(width, 720 - at)));
    keys += writeKey(index, part.first + " " + formatBytes(part.second));
    at = std::min(720.0, at + width);
  }
  return svg + "</svg><figcaption>" + keys + "</figcaption></figure>\n";
}
