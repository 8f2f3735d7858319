// A plan as one HTML page that needs nothing else: no script, no file, no network.
#ifndef WINDLASS_REPORT_PLANPAGE_H
#define WINDLASS_REPORT_PLANPAGE_H

#include "windlass/Report/MemoryPicture.h"
#include "windlass/Report/Run.h"
#include "windlass/Report/Timeline.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace windlass::report {

/// Devices that run the same part of the model.
struct Stage {
  std::string name;
  /// The mesh axes of its devices with their sizes, major to minor.
  std::vector<std::pair<std::string, int64_t>> axes;
};

/// Operators of one kind and how they are split.
struct SplitRow {
  std::string operators;
  int64_t count = 1;
  /// The factors that are split, each with its axes.
  std::vector<std::pair<std::string, std::vector<std::string>>> splits;
  std::string weight;
};

struct PlanPage {
  std::string title;
  /// What `windlass plan` prints, line by line: a name and what is said of it.
  Facts facts;
  std::vector<Stage> stages;
  std::vector<SplitRow> rows;
  /// The rows of the table that are left out.
  int64_t moreRows = 0;
  /// The predicted step.
  Timeline timeline;
  /// For each stream, the shares of the whole step that its commands take in each window, such as "forward".
  std::vector<std::string> windows;
  std::vector<std::pair<std::string, std::vector<double>>> shares;
  MemoryPicture memory;
};

/// Returns the page's HTML. Text is escaped; numbers that are not finite are drawn as 0.
std::string writePlanPage(const PlanPage &page);

} // namespace windlass::report

#endif
