// What charts and tables show of a run's steps.
#ifndef WINDLASS_LIB_REPORT_RUNSERIES_H
#define WINDLASS_LIB_REPORT_RUNSERIES_H

#include "windlass/Report/Page.h"

namespace windlass::report {

/// Returns a value of each step as a line.
Series seriesOf(const Run &run, std::string name, double Step::*field);

/// Returns the losses of the run's evaluations as dots.
Series evaluationsOf(const Run &run, std::string name);

/// Returns the median of a value over the steps that have it; NaN where none has.
double medianOf(const Run &run, double Step::*field);

/// Returns a median of a rate as people read it.
std::string formatRate(double rate);

} // namespace windlass::report

#endif
