#include "metrics.h"

#include "windlass/rt/json.h"
#include "windlass/rt/kernel_times.h"

#include <cmath>
#include <cstdio>

namespace windlass::rt {

status metrics_file::open(const std::string &run, std::int64_t last_step) {
  const std::string name = "metrics.jsonl";
  constexpr std::size_t longest_row = 1 << 16;
  folder in;
  output_file kept;
  WINDLASS_TRY(in.open(run));
  WINDLASS_TRY(kept.replace(in, name));
  if (last_step > 0 && in.holds_file(name)) {
    input_file rows;
    WINDLASS_TRY(rows.open(in, name));
    std::string buffer;
    WINDLASS_TRY(for_each_line(rows, longest_row, [&](std::string_view line) -> status {
      json row;
      const json *step = parse_json(line, row).is_ok() ? row.find("step") : nullptr;
      // A line that a killed run left half-written is dropped with the steps after the checkpoint.
      if (!step || !step->is_integer || step->integer > last_step)
        return ok_status();
      buffer.append(line).append("\n");
      if (buffer.size() < longest_row)
        return ok_status();
      status written = kept.write(buffer);
      buffer.clear();
      return written;
    }));
    WINDLASS_TRY(kept.write(buffer));
  }
  WINDLASS_TRY(kept.finish());
  return file_.append(in, name);
}

status metrics_file::add(const step_metrics &row) {
  auto rate_of = [&](double count) { return row.seconds > 0 && count > 0 ? count / row.seconds : NAN; };
  const float grad_norm = row.has_grad_norm ? row.grad_norm : NAN;
  row_.start() << "{\"step\": " << row.step << ", \"loss\": " << row.loss << ", \"grad_norm\": " << grad_norm
               << ", \"lr\": " << row.lr << ", \"seconds\": " << row.seconds
               << ", \"tokens_per_s\": " << rate_of(row.tokens) << ", \"samples_per_s\": " << rate_of(row.samples)
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
  folder in;
  WINDLASS_TRY(in.open(run));
  WINDLASS_TRY(in.enter("logs", in));
  return appends ? file_.append(in, name) : file_.create(in, name);
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
