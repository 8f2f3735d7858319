// Several runs on one HTML page that needs nothing else.
#ifndef WINDLASS_REPORT_COMPARISON_H
#define WINDLASS_REPORT_COMPARISON_H

#include "windlass/Report/Run.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>

namespace windlass::report {

/// The most runs that a page compares: as many as there are colours.
constexpr size_t kMostCompared = 8;

/// Returns the page's HTML: what the runs reached and how fast, their courses in common charts, and the settings in
/// which they differ. There are at most `kMostCompared` runs, which the page names by their folders.
std::string writeComparison(llvm::ArrayRef<Run> runs);

} // namespace windlass::report

#endif
