// RUN/kernels.json and its table: where the time of the steps went, kernel by kernel, next to what the machine could
// do.
#ifndef WINDLASS_RT_SRC_PROGRAM_KERNEL_REPORT_H
#define WINDLASS_RT_SRC_PROGRAM_KERNEL_REPORT_H

#include "windlass/rt/kernel_times.h"

#include <string>

namespace windlass::rt {

struct kernel_report {
  kernel_times times;      ///< of rank 0
  std::int64_t steps = 0;  ///< the steps that the times cover
  double step_seconds = 0; ///< of these steps together
  double peak_rate = 0;    ///< multiply-adds with operands in registers, operations per second, all threads
  double flops_rate = 0;   ///< multiply-adds with operands from L1, operations per second, all threads
  double bytes_rate = 0;   ///< of memory, bytes per second, all threads

  /// Returns the least seconds for `what`: max(flops / flops_rate, bytes / bytes_rate). Data that the caches hold may
  /// be faster.
  double roof(const work &what) const;
  std::string json() const;
  /// Returns one line per kernel name, the longest time first, and their sum.
  std::string table() const;
};

} // namespace windlass::rt

#endif
