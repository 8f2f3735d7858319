// The settings of one run of an emitted program, from its flags.
#ifndef WINDLASS_RT_SRC_PROGRAM_OPTIONS_H
#define WINDLASS_RT_SRC_PROGRAM_OPTIONS_H

#include "windlass/rt/detail/instructions.h"
#include "windlass/rt/flags.h"
#include "windlass/rt/loss_scale.h"
#include "windlass/rt/program.h"
#include "windlass/rt/status.h"

#include "optimizers.h"
#include "progress.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace windlass::rt {

enum class lr_schedule { constant, linear, cosine };
enum class communicator_kind { automatic, mpi, tcp, local };
enum class nan_policy { stop, skip };
enum class graph_policy { automatic, on, off };

/// Means and deviations by which the elements of an input are normalized: one of each, or one for each channel.
struct normalization {
  std::string input;
  std::vector<float> means, deviations;
};

struct options {
  std::string run = "run";
  std::vector<std::string> data, eval_data;
  std::vector<std::pair<std::string, feed>> inputs;
  std::vector<normalization> normalize; ///< of samples
  std::int64_t steps = 100;
  std::optional<std::int64_t> epochs;
  bool ends_with_epochs = false; ///< the run has the steps that they give, not `steps`
  bool shuffle = false;          ///< explicit batches
  double lr = 1e-3, clip_norm = 1, ema_decay = 0.999;
  std::optional<beta_pair> betas;     ///< default: the optimizer's
  loss_scale_settings scaling;        ///< of programs that scale their loss
  std::optional<double> epsilon;      ///< default: the optimizer's
  std::optional<double> momentum;     ///< default: the optimizer's
  std::optional<double> weight_decay; ///< default: the optimizer's
  lr_schedule schedule = lr_schedule::constant;
  std::optional<std::int64_t> schedule_steps; ///< default: steps
  std::int64_t warmup = 0;
  std::optional<std::uint64_t> seed; ///< default 0, after a resume the checkpoint's
  std::string weights, parameters;
  std::string disk = "."; ///< the folder for what the plan keeps on the disk
  std::vector<std::string> init_from;
  bool random_init = false;
  bool resumes = false;
  std::string resume_from; ///< empty: the newest of `run`
  std::int64_t checkpoint_every = 0, keep = 0;
  bool checkpoint_initial = false, no_checkpoint = false, async_save = false;
  std::int64_t eval_every = 0, eval_batches = 10;
  std::int32_t threads = 0; ///< 0: the rank's share of the processors that its host's ranks may use
  bool binds = true;        ///< ranks that are processes to their shares
  detail::instruction_set instructions = detail::instruction_set::avx512; ///< at most
  communicator_kind communicator = communicator_kind::automatic;
  std::optional<double> predicted_seconds;
  std::string model_name; ///< empty: the program's own
  std::string dump_gradients, config;
  bool profile = false, bytes = false, json = false, help = false, version = false;
  nan_policy on_nan = nan_policy::stop;
  graph_policy graphs = graph_policy::automatic;
  progress_style progress = progress_style::automatic;
  int verbosity = 1; ///< 0 quiet, 2 verbose
};

/// Reads the flags and compares those of compiled-in settings with `j`.
status parse_options(const job &j, int argc, const char *const *argv, options &out);
/// Returns how ranks reach each other. What is left open follows from who started the program.
communicator_kind communicator_of(const options &o);
/// Returns every setting that a --config file may hold: flags without their dashes.
std::vector<std::string> setting_names();
/// Returns the text of --help, with defaults and what is compiled in.
std::string help_text(const job &j);

} // namespace windlass::rt

#endif
