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

/// The checkpoint that a run continues. Ranks that are threads share one.
struct resumed_checkpoint {
  checkpoint_manifest manifest;
  checkpoint_index index;
};

/// The beginning of a run: step 0, or the checkpoint that it resumes.
struct run_start {
  std::string folder;                          ///< the checkpoint's; empty at step 0
  std::shared_ptr<resumed_checkpoint> resumed; ///< until its values are loaded; null at step 0
  std::uint64_t seed = 0;
  std::int64_t step = 0, next_micro_batch = 0;
  bool shuffles = false; ///< explicit batches
};

/// Finds the checkpoint that the run resumes, none where the run begins anew; restores a checkpoint that a killed save
/// was about to replace. Fails where the run's folder holds checkpoints and is not resumed. `say` gets a line for each
/// checkpoint that is skipped. For rank 0, which has locked the run's folder.
status find_checkpoint(const options &o, std::string &folder, const std::function<void(const std::string &)> &say);

/// Reads the manifest of the checkpoint in `folder`; `out` is null where `folder` is empty.
status open_resumed(const std::string &folder, std::shared_ptr<resumed_checkpoint> &out);

/// Decides where the run begins: after `resumed`, or at step 0 where that is null. Fails where a flag contradicts
/// `resumed`.
status choose_start(const options &o, std::shared_ptr<resumed_checkpoint> resumed, run_start &out);

/// The data of a run, null where it reads none, and its last step.
struct run_sources {
  std::unique_ptr<data_source> data, eval_data;
  std::int64_t steps = 0; ///< counted from the run's beginning
};

/// Opens the data and finds the last step. Fails where they do not feed the model's inputs up to that step.
status open_sources(const job &j, const options &o, const run_start &start, run_sources &out);

/// Returns whether the program can compute a loss outside of steps.
bool evaluates(const job &j);

/// Checks that the folders that the run writes into can be made. Leaves none behind that were not there.
status check_outputs(const options &o);

} // namespace windlass::rt

#endif
