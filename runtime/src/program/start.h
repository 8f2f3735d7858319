// Where a run begins and what feeds it: all that can be found wrong before the program itself is needed.
#ifndef WINDLASS_RT_SRC_PROGRAM_START_H
#define WINDLASS_RT_SRC_PROGRAM_START_H

#include "windlass/rt/checkpoint.h"
#include "windlass/rt/program.h"

#include "data.h"
#include "options.h"

#include <functional>
#include <memory>
#include <string>

namespace windlass::rt {

/// Where a run begins: at step 0, or at the checkpoint that it resumes.
struct run_start {
  std::string folder;           ///< the checkpoint's; empty at step 0
  checkpoint_manifest manifest; ///< the checkpoint's
  std::uint64_t seed = 0;
  std::int64_t step = 0, next_micro_batch = 0;
  bool shuffles = false; ///< explicit batches
};

/// Finds the checkpoint that the run resumes, nothing where it begins anew. Fails where the run's folder holds
/// checkpoints and is not resumed. `say` gets a line for each checkpoint that is skipped. For rank 0.
status find_checkpoint(const options &o, std::string &folder, const std::function<void(const std::string &)> &say);

/// Reads where the run begins from the checkpoint in `folder`, which may be empty. Fails where a flag contradicts it.
status read_start(const options &o, const std::string &folder, run_start &out);

/// The data of a run, null where it reads none, and where it ends.
struct run_sources {
  std::unique_ptr<data_source> data, eval_data;
  std::int64_t steps = 0; ///< counted from the run's beginning
};

/// Opens the data and finds the last step. Fails where they do not feed the model's inputs up to that step.
status open_sources(const program &p, const options &o, const run_start &start, run_sources &out);

/// Whether the folders that the run writes into can be made. Leaves none behind that were not there.
status check_outputs(const options &o);

} // namespace windlass::rt

#endif
