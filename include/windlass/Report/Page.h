// A run as one HTML page that needs nothing else: no script, no file, no network.
#ifndef WINDLASS_REPORT_PAGE_H
#define WINDLASS_REPORT_PAGE_H

#include "windlass/Report/Run.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace windlass::report {

/// A line or a set of dots. Points that are not finite are left out.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;
  bool isDots = false;
};

/// Draws an SVG chart of series over a common axis of steps; the chart says so where there is nothing to draw. Long
/// series are drawn by the means of equal numbers of neighbours.
std::string drawChart(llvm::StringRef title, llvm::ArrayRef<Series> series);

/// Draws a horizontal bar of `whole` units, cut into parts.
std::string drawBar(llvm::ArrayRef<std::pair<std::string, int64_t>> parts, int64_t whole);

/// Returns the page's HTML.
std::string writePage(const Run &run);

/// Returns a number with four digits behind the point, or words where it is not finite.
std::string formatNumber(double value);

/// Returns bytes as people read them, such as 1.5 MiB.
std::string formatBytes(int64_t bytes);

} // namespace windlass::report

#endif
