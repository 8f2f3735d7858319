// One rank's part of a training run, from the set-up to the last checkpoint.
#ifndef WINDLASS_RT_SRC_PROGRAM_TRAINER_H
#define WINDLASS_RT_SRC_PROGRAM_TRAINER_H

#include "windlass/rt/context.h"
#include "windlass/rt/host_copy.h"
#include "windlass/rt/program.h"

#include "action_graphs.h"
#include "async_save.h"
#include "control.h"
#include "kernel_report.h"
#include "label_counter.h"
#include "local_input.h"
#include "messages.h"
#include "metrics.h"
#include "operator_names.h"
#include "options.h"
#include "progress.h"
#include "rank_state.h"
#include "record.h"
#include "run_lock.h"
#include "saving.h"
#include "schedule.h"
#include "start.h"
#include "step_scalars.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace windlass::rt {

/// The summary that rank 0 reports when a run ends.
struct run_summary {
  std::int64_t first_step = 0, last_step = 0; ///< steps done before and after this execution
  float first_loss = 0, last_loss = 0;
  double eval_loss = 0;
  bool has_loss = false, has_eval = false;
  double seconds = 0, samples = 0, tokens = 0; ///< of the steps
  std::int64_t peak_bytes = 0;                 ///< resident memory of the largest process
  std::int64_t reserve_bytes = 0;              ///< of each rank
  std::int64_t skipped_updates = 0;
  std::string checkpoint;
};

class trainer {
public:
  trainer(const job &j, const options &o, transport &world);
  /// Runs to the end, or to an error. One that `is_agreed` is known to every rank; any other one has to abort the job.
  status run();
  bool is_agreed() const { return is_agreed_; }
  const run_summary &summary() const { return summary_; }

private:
  status set_up();
  /// Runs all steps and saves.
  status train();
  status find_start();
  status open_data();
  /// Allocates what inputs and scalars need on their way to a device.
  status open_inputs();
  status open_outputs();
  /// Agrees on the ranks' statuses: all get the first error.
  status together(const status &mine);
  /// Notes that an error is known to every rank, unless it says that one is lost.
  status agreed(status all);

  /// Counts the labels of the next step over all ranks, where its loss is the mean over them.
  status count_labels(std::int64_t &all);
  status step(std::int64_t s, step_metrics &row);
  /// Runs the position's table.
  status run_actions();
  status run_action(const action &what, std::int64_t micro_batch);
  /// Runs a function of the step.
  status compute(const action &what);
  /// Fills the inputs of a chunk in one of its slots with those of merged micro-batches.
  status write_inputs(data_source &from, const micro_batch_range &which, std::int32_t chunk, std::int32_t slot);
  /// Reads the first inputs of the next step while a device works on this one.
  void read_ahead();
  /// Returns the micro-batches of the data that the position computes at once as its number `number` of a step, whose
  /// micro-batches begin with `first`.
  micro_batch_range find_micro_batch(std::int64_t first, std::int64_t number) const;
  /// Reads the loss of a step, from the position that has it.
  status read_loss(float &loss);
  /// Finds what must be known before the update: the gradients to dump, and with --on-nan skip whether they are finite.
  status before_update();
  status find_bad_gradient(bool &is_bad);
  /// Agrees, after a step, on requests to stop and on NaN.
  status after_step(std::int64_t s, const step_metrics &row, bool &stops);

  status evaluate(std::int64_t step);
  /// Computes the loss of the micro-batch whose inputs are in slot 0 of each chunk.
  status run_evaluation();
  /// Saves; with --async-save, unless `waits`, only as far as the values may change again.
  status save(std::int64_t step, bool waits);
  /// Waits for a save that was started, if any.
  status finish_save();
  /// Says where the checkpoint of a step is, and removes older ones.
  status note_checkpoint(std::int64_t step);
  status finish();
  status write_profile();
  /// Returns the number of streams that functions use: messages have streams of their own, behind them.
  std::int32_t count_function_streams() const;
  /// Gives the operators' names of the timeline's commands, by stream, from the project's file; none where the file has
  /// none.
  status name_operators(operator_names &names, std::vector<std::vector<std::string_view>> &out) const;
  /// Sets whether kernels of all streams add their times, and whether each command is kept too.
  void count_kernels(bool on, bool keeps = false);
  void say(std::string_view text);

  const job &j_;
  const member its_;
  const program &p_; ///< that this rank runs
  options o_;
  transport &world_;
  std::int32_t threads_ = 1;
  control ranks_;
  position_messages messages_; // before the context, whose streams may still use it when they end
  context context_;
  action_graphs graphs_; // after what the graphs work on
  std::optional<async_save> async_save_;
  run_start start_;
  run_sources sources_;
  std::optional<label_counter> labels_;
  std::vector<local_input> inputs_;
  step_scalars scalars_;
  std::vector<std::int64_t> gradient_elements_; ///< of this rank's part of each gradient
  run_lock lock_;                               ///< of rank 0
  metrics_file metrics_;
  event_file events_;
  rank_log log_;
  text_line line_;
  progress progress_;
  run_summary summary_;
  run_record record_;

  std::int32_t groups_ = 1, group_ = 0; ///< P and j
  std::int64_t next_micro_batch_ = 0, saved_step_ = -1, evaluated_step_ = -1;
  update_history past_;
  bool is_traced_ = false;             ///< this step's timeline is wanted, so that nothing waits in its middle
  std::vector<const action *> traced_; ///< that step's actions
  bool is_reduced_ = false;            ///< all chunks of the position are, in this step
  bool skips_update_ = false, is_agreed_ = false, dumps_ = false;
  static constexpr std::size_t activities = 11; ///< what a profile tells apart
  double action_seconds_[activities] = {};
  std::vector<kernel_times> kernel_times_; ///< one per stream
  kernel_report kernels_;
};

} // namespace windlass::rt

#endif
