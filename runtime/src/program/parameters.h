// Initial values of a rank's parameters.
#ifndef WINDLASS_RT_SRC_PROGRAM_PARAMETERS_H
#define WINDLASS_RT_SRC_PROGRAM_PARAMETERS_H

#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "named_values.h"
#include "rank_state.h"

#include <string>

namespace windlass::rt {

struct parameter_settings {
  bool is_random = false;
  std::uint64_t seed = 0;
  std::string weights;       ///< --weights: root of external files
  std::string packed;        ///< --parameters: the packed file; empty: beside the program or one folder up
  const named_values &named; ///< --init-from: the values of the parameters that these files have
};

/// Fails where a parameter has no initial values, or where those in external files, or in a packed file that `settings`
/// names, are not what the program takes.
status check_parameters(const job &j, const parameter_settings &settings);

/// Fills this rank's part of every parameter and clears the optimizer's state.
status load_parameters(const member &its, context &c, const parameter_settings &settings);

} // namespace windlass::rt

#endif
