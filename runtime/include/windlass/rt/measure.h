// Measuring programs: they run the commands of step programs one by one, and collectives, and write how long each
// takes. With a cluster file compiled in, they write a whole profile.
#ifndef WINDLASS_RT_MEASURE_H
#define WINDLASS_RT_MEASURE_H

#include "windlass/rt/program.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

namespace windlass::rt {

/// An operand of a measured command, as a range of memory: every element between the first and the last of a view
/// counts.
struct measured_operand {
  element_type type;
  std::int64_t elements;
  std::int64_t limit; ///< integers read from it are in [0, limit)
  bool is_read;
};

struct measured_command {
  bool adds; ///< adds to what its results hold, as in a later micro-batch
  span<measured_operand> operands;
  /// Runs the command. `offsets` are bytes into the device arena, one for each operand.
  status (*run)(context &, const std::int64_t *offsets, bool adds);
  // The command's entry in a profile.
  const char *key, *family;
  double flops, bytes;
  bool is_narrow;
};

struct measuring {
  std::int32_t ranks;
  bool measures_collectives;
  std::int64_t arena_bytes;   ///< at least as many as the largest command needs
  std::int64_t scratch_bytes; ///< of the compute stream, for one thread
  span<measured_command> commands;
  const char *precision; ///< the precision of the programs that the commands come from
  const char *cluster;   ///< JSON: the results are a profile for it; null: `windlass profile` reads them
};

/// Runs as the `main` of a measuring program: reads flags, joins the ranks, measures, and lets rank 0 write the
/// results. Each command runs with its operands just written, as those of a step are. Under load, all ranks run the
/// command at the same time; alone, one rank runs it while the others sleep. Returns the exit code.
int run_measuring(const measuring &m, int argc, char **argv);

} // namespace windlass::rt

#endif
