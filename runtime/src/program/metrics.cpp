#include "metrics.h"

#include "windlass/rt/json.h"
#include "windlass/rt/kernel_times.h"

#include <cmath>
#include <cstdio>

namespace windlass::rt {

status metrics_file::open(const std::string &run, std::int64_t last_step) {
  std::string path = join_path(run, "metrics.jsonl"), kept;
  if (last_step > 0 && is_file(path)) {
    std::string text;
    WINDLASS_TRY(read_text(path, std::int64_t(1) << 30, text));
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = std::string_view(text).substr(at, end - at);
      json row;
      const json *step = parse_json(line, row).is_ok() ? row.find("step") : nullptr;
      // A line that a killed run left half-written is dropped with the steps after the checkpoint.
      if (step && step->is_integer && step->integer <= last_step)
        kept.append(line).append("\n");
      at = end + 1;
    }
  }
  WINDLASS_TRY(replace_file(path, kept));
  return file_.create(path, true);
}

status metrics_file::add(const step_metrics &row) {
  double rate = row.seconds > 0 && row.tokens > 0 ? row.tokens / row.seconds : NAN;
  const float grad_norm = row.has_grad_norm ? row.grad_norm : NAN;
  row_.start() << "{\"step\": " << row.step << ", \"loss\": " << row.loss << ", \"grad_norm\": " << grad_norm
               << ", \"lr\": " << row.lr << ", \"seconds\": " << row.seconds << ", \"tokens_per_s\": " << rate
               << ", \"predicted_seconds\": " << row.predicted_seconds << ", \"precision\": \"" << row.precision
               << "\"";
  if (!std::isnan(row.loss_scale))
    row_ << ", \"loss_scale\": " << row.loss_scale;
  row_ << ", \"collective_bytes\": {";
  for (std::size_t k = 0; k < collective_kinds; ++k)
    row_ << (k > 0 ? ", \"" : "\"") << collective_names[k]
         << "\": " << static_cast<std::int64_t>(std::llround(row.sent.of[k]));
  row_ << "}}\n";
  return file_.write(row_.text());
}

status metrics_file::add_evaluation(std::int64_t step, double loss, std::int64_t batches) {
  row_.start() << "{\"step\": " << step << ", \"eval_loss\": " << loss << ", \"eval_batches\": " << batches << "}\n";
  return file_.write(row_.text());
}

status rank_log::open(const std::string &run, std::int32_t rank, bool appends) {
  char name[32];
  std::snprintf(name, sizeof name, "rank_%05d.log", static_cast<int>(rank));
  start_ = clock_seconds();
  line_.reserve(512);
  return file_.create(join_path(join_path(run, "logs"), name), appends);
}

void rank_log::line(std::string_view text) {
  if (!file_.is_open())
    return;
  char time[32];
  std::snprintf(time, sizeof time, "%10.3f ", clock_seconds() - start_);
  line_.assign(time).append(text).append("\n");
  // A log that cannot be written is no reason to end a run.
  static_cast<void>(file_.write(line_).is_ok());
}

} // namespace windlass::rt
