// The kernels of a run against what the machine can do.
#ifndef WINDLASS_LIB_REPORT_ROOFLINE_H
#define WINDLASS_LIB_REPORT_ROOFLINE_H

#include "windlass/Report/Run.h"

#include <string>

namespace windlass::report {

/// Draws the roofline of the machine (S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009) and each kernel as a
/// dot: operations per byte of memory to the right, operations per second upwards, both by powers of ten, and an area
/// that stands for its share of the time. Returns nothing where no kernel computes or the machine's rates are unknown.
std::string drawRoofline(const Run &run);

} // namespace windlass::report

#endif
