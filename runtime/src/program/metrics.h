// What a run leaves to read: metrics.jsonl, TensorBoard events, a log per rank.
#ifndef WINDLASS_RT_SRC_PROGRAM_METRICS_H
#define WINDLASS_RT_SRC_PROGRAM_METRICS_H

#include "windlass/rt/file.h"
#include "windlass/rt/status.h"

#include <string>
#include <vector>

namespace windlass::rt {

/// The measurements of one step; `step` counts from 1, the first.
struct step_metrics {
  std::int64_t step = 0;
  float loss = 0, grad_norm = 0;
  bool has_grad_norm = true; ///< false: the update was left out
  double lr = 0, seconds = 0;
  double tokens = 0; ///< of the step; 0 where the inputs are no tokens
};

class metrics_file {
public:
  /// Opens RUN/metrics.jsonl. Rows of steps after `last_step` are cut; 0 empties it.
  status open(const std::string &run, std::int64_t last_step);
  status add(const step_metrics &row);
  status add_evaluation(std::int64_t step, double loss, std::int64_t batches);

private:
  output_file file_;
};

/// One file of TensorBoard's event format: records of (length, masked CRC, protobuf Event, masked CRC).
class event_file {
public:
  /// Creates RUN/events.out.tfevents.*; `first_step` makes TensorBoard drop what earlier files say of it and later.
  status open(const std::string &run, std::int64_t first_step);
  status add(std::int64_t step, const std::vector<std::pair<const char *, float>> &values);

private:
  status record(const std::string &event);
  output_file file_;
};

/// RUN/logs/rank_00000.log: a line per event with seconds since the start.
class rank_log {
public:
  status open(const std::string &run, std::int32_t rank, bool appends);
  void line(const std::string &text);

private:
  output_file file_;
  double start_ = 0;
};

} // namespace windlass::rt

#endif
