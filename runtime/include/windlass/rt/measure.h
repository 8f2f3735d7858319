// Measuring programs: they run the commands of step programs one by one, and collectives, and write how long each
// takes. With a cluster they need nothing else to make a profile.
#ifndef WINDLASS_RT_MEASURE_H
#define WINDLASS_RT_MEASURE_H

#include "windlass/rt/program.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

namespace windlass::rt {

/// Memory that a command names. Every element between the first and the last of a view counts.
struct measured_operand {
  element_type type;
  std::int64_t elements;
  std::int64_t limit; ///< integers read from it are in [0, limit)
  bool is_read;
};

struct measured_command {
  bool adds; ///< as of a later micro-batch
  span<measured_operand> operands;
  /// `offsets` are bytes into the device arena, one for each operand.
  status (*run)(context &, const std::int64_t *offsets, bool adds);
  // As the command stands in a profile.
  const char *key, *family;
  double flops, bytes;
  bool is_narrow;
};

struct measuring {
  std::int32_t ranks;
  bool measures_collectives;
  std::int64_t arena_bytes;   ///< at least what the largest command needs
  std::int64_t scratch_bytes; ///< of the compute stream for one thread
  span<measured_command> commands;
  const char *precision; ///< of the programs whose commands they are
  const char *cluster;   ///< JSON: the results are a profile for it; null: they are for `windlass profile` to read
};

/// The `main` of a measuring program: reads flags, joins the ranks, measures, and lets rank 0 write the results. Each
/// command runs with its operands just written, as a step's are; under load, all ranks run it at the same time; alone,
/// the others sleep.
int run_measuring(const measuring &m, int argc, char **argv);

} // namespace windlass::rt

#endif
