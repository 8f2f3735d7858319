// The files that a run leaves to read: metrics.jsonl, TensorBoard events, a log per rank.
#ifndef WINDLASS_RT_SRC_PROGRAM_METRICS_H
#define WINDLASS_RT_SRC_PROGRAM_METRICS_H

#include "windlass/rt/communicator.h"
#include "windlass/rt/file.h"
#include "windlass/rt/status.h"

#include "text_line.h"

#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>

namespace windlass::rt {

/// The measurements of one step; `step` counts from 1, the first.
struct step_metrics {
  std::int64_t step = 0;
  float loss = 0, grad_norm = 0;
  bool has_grad_norm = true; ///< false: the update was left out
  double lr = 0, seconds = 0;
  double samples = 0;             ///< samples of the step
  double tokens = 0;              ///< tokens of the step; 0 where the inputs are not tokens
  double predicted_seconds = NAN; ///< seconds of the step by the plan's costs; NaN where none are given
  collective_bytes sent;
  const char *precision = "f32";
  double loss_scale = NAN; ///< the scale that the step used; NaN in programs that scale no loss
};

class metrics_file {
public:
  /// Opens RUN/metrics.jsonl. Rows of steps after `last_step` are removed; 0 empties it.
  status open(const std::string &run, std::int64_t last_step);
  status add(const step_metrics &row);
  status add_evaluation(std::int64_t step, double loss, std::int64_t batches);

private:
  output_file file_;
  text_line row_;
};

/// A number of a step under the name that TensorBoard shows.
struct named_value {
  const char *name;
  float value;
};

/// One file of TensorBoard's event format: records of (length, masked CRC, protobuf Event, masked CRC).
class event_file {
public:
  /// Creates RUN/events.out.tfevents.*; TensorBoard then drops what earlier files say of `first_step` and later steps.
  status open(const std::string &run, std::int64_t first_step);
  status add(std::int64_t step, std::initializer_list<named_value> values);

private:
  status record();
  output_file file_;
  // Kept, so that a step allocates nothing: the event, and parts of messages while they are built.
  std::string event_, summary_, value_, frame_;
};

/// RUN/logs/rank_00000.log: a line per event with seconds since the start.
class rank_log {
public:
  status open(const std::string &run, std::int32_t rank, bool appends);
  void line(std::string_view text);

private:
  output_file file_;
  std::string line_;
  double start_ = 0;
};

} // namespace windlass::rt

#endif
