#include "record.h"

#include "windlass/rt/backend.h"
#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

#include "program_files.h"
#include "rank_state.h"
#include "schedule.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace windlass::rt {

namespace {

/// Builds a JSON object line by line.
class object {
public:
  explicit object(std::string indent) : indent_(std::move(indent)) {}
  void raw(const char *key, const std::string &value) {
    text_ += (text_.empty() ? "{\n" : ",\n") + indent_ + " " + json_string(key) + ": " + value;
  }
  void add(const char *key, const std::string &value) { raw(key, json_string(value)); }
  void add(const char *key, std::int64_t value) { raw(key, std::to_string(value)); }
  std::string finish() const { return text_ + "\n" + indent_ + "}"; }

private:
  std::string indent_, text_;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, 10, "model name") == 0)
      if (std::size_t colon = line.find(": "); colon != std::string::npos)
        return line.substr(colon + 2);
  return "";
}

/// Returns the bytes of a rank's part of a tensor; those of all ranks of a position are of one size.
std::int64_t local_bytes(const position_entry &position, span<std::int64_t> sizes, span<split> splits,
                         element_type type) {
  return local_part(sizes_of(sizes), splits, position.axes, 0).elements() * size_of(type);
}

/// Describes the arenas of a position's ranks by what they hold.
std::string describe_memory(const job &j, const position_entry &position, const std::string &indent) {
  const program &p = *position.runs;
  std::int64_t parameters = 0, masters = 0, gradients = 0, states = 0, inputs = 0, arenas[3] = {};
  for (const parameter_placement &row : p.parameters) {
    const parameter_entry &of = j.parameters[row.parameter];
    parameters += local_bytes(position, of.sizes, row.splits, row.type);
    if (has_own_master(row))
      masters += local_bytes(position, of.sizes, row.master_splits, of.type);
  }
  for (const gradient_entry &row : p.gradients)
    gradients += local_bytes(position, j.parameters[row.parameter].sizes, row.splits, row.type);
  for (const stored_tensor &tensor : stored_tensors(j))
    if (tensor.is_state && tensor.position == &position)
      states += stored_part(tensor, position.first_rank).elements() * size_of(tensor.type);
  for (const input_placement &row : p.inputs)
    inputs += local_bytes(position, j.inputs[row.input].sizes, row.splits, j.inputs[row.input].type);
  for (const arena_entry &each : p.arenas)
    arenas[static_cast<std::size_t>(each.kind)] += each.bytes;
  object out(indent);
  out.add("arena", arenas[static_cast<std::size_t>(memory_kind::device)]);
  out.add("parameters", parameters);
  out.add("master_parameters", masters); // those that are not the parameters themselves
  out.add("gradients", gradients);
  out.add("optimizer_state", states);
  out.add("inputs", inputs);
  out.add("pinned", arenas[static_cast<std::size_t>(memory_kind::pinned)]);
  out.add("disk", arenas[static_cast<std::size_t>(memory_kind::disk)]);
  return out.finish();
}

std::string describe_mesh(const position_entry &position, const std::string &indent) {
  object mesh(indent);
  for (const axis &each : position.axes)
    mesh.add(each.name, each.size);
  return position.axes.size ? mesh.finish() : "{}";
}

/// Describes what differs between positions.
std::string describe_position(const job &j, const position_entry &position) {
  object out("  ");
  out.add("first_rank", position.first_rank);
  out.add("ranks", position.ranks);
  out.raw("mesh", describe_mesh(position, "  "));
  out.raw("device_memory", describe_memory(j, position, "  "));
  return out.finish();
}

std::string describe_reserve(const reserve &bytes) {
  object out(" ");
  for (const auto &[cause, its] : bytes.causes())
    out.add(cause, its);
  out.add("total", bytes.total());
  return out.finish();
}

std::string describe_machine() {
  object out(" ");
  utsname system = {};
  if (uname(&system) == 0)
    out.add("system", std::string(system.sysname) + " " + system.release + " " + system.machine);
  out.add("host", describe_rank().host);
  out.add("processor", processor_name());
  out.add("processors", sysconf(_SC_NPROCESSORS_ONLN));
  out.add("memory_bytes", static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE));
  backend_facts backend = describe_backend();
  out.add("backend", backend.name);
  out.add("gemm", backend.gemm);
#if defined(__clang__)
  out.add("compiler", "clang " __clang_version__);
#else
  out.add("compiler", "gcc " __VERSION__);
#endif
  return out.finish();
}

std::string describe_settings(const job &j, const options &o, const run_record &record) {
  const char *const schedules[] = {"constant", "linear", "cosine"};
  object out(" ");
  const optimizer_facts facts = facts_of(j.kind);
  out.add("optimizer", facts.name);
  if (facts.has_betas()) {
    const beta_pair betas = betas_of(j, o);
    out.raw("beta1", json_number(betas[0]));
    out.raw("beta2", json_number(betas[1]));
  }
  if (facts.epsilon > 0)
    out.raw("eps", json_number(scalar_value(j, o, scalar::epsilon, 0)));
  if (facts.momentum)
    out.raw("momentum", json_number(scalar_value(j, o, scalar::momentum, 0)));
  out.raw("weight_decay", json_number(scalar_value(j, o, scalar::weight_decay, 0)));
  out.add("micro_batches", j.micro_batches);
  if (j.merge > 1)
    out.add("merge", j.merge);
  out.add("average", averages_tokens(j) ? "tokens" : "micro-batches");
  out.raw("lr", json_number(o.lr));
  out.add("lr_schedule", schedules[static_cast<int>(o.schedule)]);
  out.add("warmup", o.warmup);
  if (j.clips)
    out.raw("clip_norm", json_number(o.clip_norm));
  if (keeps_ema(j))
    out.raw("ema_decay", json_number(o.ema_decay));
  out.add("precision", j.precision);
  if (scales_loss(j)) {
    out.raw("loss_scale", json_number(o.scaling.initial));
    out.add("loss_scale_window", o.scaling.window);
    out.add("loss_scale_hysteresis", o.scaling.hysteresis);
    out.raw("loss_scale_floor", json_number(o.scaling.floor));
  }
  out.add("steps", o.steps);
  out.add("seed", std::to_string(record.seed));
  out.add("data", record.data);
  out.add("threads", record.threads);
  const communicator_kind kind = communicator_of(o);
  out.add("communicator", kind == communicator_kind::mpi ? "mpi" : kind == communicator_kind::tcp ? "tcp" : "local");
  return out.finish();
}

} // namespace

/// Returns the peak of this process's resident memory, in bytes. getrusage may return that of the process that started
/// this one, from before it became this program.
static std::int64_t peak_resident_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, 6, "VmHWM:") == 0)
      return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

rank_facts describe_rank() {
  rank_facts out;
  // A name that is too long comes without its end, so the last byte stays zero.
  if (gethostname(out.host, sizeof out.host - 1) != 0)
    std::snprintf(out.host, sizeof out.host, "unknown");
  out.peak_bytes = peak_resident_bytes();
  return out;
}

status write_record(const job &j, const options &o, const run_record &record) {
  object out("");
  out.add("version", 1);
  out.add("model", j.model);
  out.add("plan_hash", j.plan_hash);
  const position_entry &first = j.positions[0];
  out.add("ranks", count_ranks(j));
  out.raw("mesh", describe_mesh(first, " "));
  out.raw("settings", describe_settings(j, o, record));
  out.raw("machine", describe_machine());
  out.raw("device_memory", describe_memory(j, first, " "));
  if (j.positions.size > 1) {
    std::string rows;
    for (const position_entry &each : j.positions)
      rows += (rows.empty() ? "[\n  " : ",\n  ") + describe_position(j, each);
    out.raw("positions", rows + "]");
  }
  out.raw("reserve", describe_reserve(record.beside_arenas));
  out.add("started", record.started);
  out.add("first_step", record.first_step);
  if (record.last_step >= 0) {
    out.add("last_step", record.last_step);
    std::string rows;
    for (const rank_facts &rank : record.ranks)
      rows += (rows.empty() ? "[\n  " : ",\n  ") + std::string("{\"host\": ") + json_string(rank.host) +
              ", \"peak_bytes\": " + std::to_string(rank.peak_bytes) + "}";
    out.raw("processes", rows + "]");
  }
  return replace_file(join_path(o.run, "run.json"), out.finish() + "\n");
}

status keep_memory_file(const std::string &run) {
  constexpr std::int64_t most_bytes = 32 << 20;
  std::string path, text;
  if (!find_program_file("memory.json", path).is_ok() || !read_text(path, most_bytes, text).is_ok())
    return ok_status();
  return replace_file(join_path(run, "memory.json"), text);
}

} // namespace windlass::rt
