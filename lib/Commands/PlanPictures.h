// The page of `windlass plan --html`.
#ifndef WINDLASS_LIB_COMMANDS_PLANPICTURES_H
#define WINDLASS_LIB_COMMANDS_PLANPICTURES_H

#include "windlass/Explain/PlanReport.h"
#include "windlass/Report/PlanPage.h"

namespace windlass {

/// Gathers what the page shows of a compilation whose plan has been scheduled; `report` describes it.
report::PlanPage drawPlan(Compilation &compilation, const PlanReport &report, const PlanChoice &choice);

} // namespace windlass

#endif
