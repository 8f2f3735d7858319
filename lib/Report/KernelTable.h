// The kernels of a run by the time that they take.
#ifndef WINDLASS_LIB_REPORT_KERNELTABLE_H
#define WINDLASS_LIB_REPORT_KERNELTABLE_H

#include "windlass/Report/Run.h"

#include <string>

namespace windlass::report {

/// Returns the table of the kernels that take the most time, with their rates and the share of the roof that they
/// reach; all others are one row.
std::string writeKernels(const Run &run);

} // namespace windlass::report

#endif
