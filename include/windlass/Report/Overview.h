// A run as a few lines of text, for a terminal.
#ifndef WINDLASS_REPORT_OVERVIEW_H
#define WINDLASS_REPORT_OVERVIEW_H

#include "windlass/Report/Run.h"

#include <optional>
#include <string>
#include <vector>

namespace windlass::report {

/// Returns the steps that the run was told to make; nothing where its record does not say.
std::optional<int64_t> countPlannedSteps(const Run &run);

/// Returns the seconds that the steps ahead will take if they are like the last ones; nothing where that is not known.
std::optional<double> estimateSecondsLeft(const Run &run);

/// Returns what one wants to know of a run that goes on: how far it is, its loss with its course, its speed, the last
/// evaluation and the newest checkpoint. Each text is a line of about `columns` characters at most.
std::vector<std::string> describeRun(const Run &run, size_t columns);

} // namespace windlass::report

#endif
