// The traces of a run's last step, of which each rank writes one.
#ifndef WINDLASS_LIB_REPORT_TRACES_H
#define WINDLASS_LIB_REPORT_TRACES_H

#include "windlass/Report/Timeline.h"

#include <string>

namespace windlass::report {

/// Reads the traces of the first ranks in `folder` and, where a file is named, a predicted one, all without trust. The
/// kernels that take the most time are the occupations. The timeline has no lanes where there are no traces, or where
/// one cannot be read; the note says what is wrong with it.
Timeline readTraces(const std::string &folder, const std::string &predicted);

} // namespace windlass::report

#endif
