#include "record.h"

#include "windlass/rt/backend.h"
#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

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

/// Bytes of a rank's part of a tensor; all ranks' are of one size.
std::int64_t local_bytes(const program &p, const tensor_entry &tensor, span<split> splits, element_type type) {
  return local_part(sizes_of(tensor), splits, p.axes, 0).elements() * size_of(type);
}

/// The device arena by what it holds.
std::string describe_memory(const program &p) {
  std::int64_t parameters = 0, masters = 0, gradients = 0, states = 0, inputs = 0;
  for (const parameter_entry &row : p.parameters) {
    parameters += local_bytes(p, row.tensor, row.tensor.splits, row.tensor.type);
    if (has_own_master(row))
      masters += local_bytes(p, row.tensor, row.master_splits, element_type::f32);
  }
  for (const gradient_entry &row : p.gradients)
    gradients += local_bytes(p, p.parameters[row.parameter].tensor, row.splits, element_type::f32);
  for (const state_entry &row : p.states) {
    const parameter_entry &of = p.parameters[row.parameter];
    states += local_bytes(p, of.tensor, of.master_splits, element_type::f32);
  }
  for (const input_entry &row : p.inputs)
    inputs += local_bytes(p, row.tensor, row.tensor.splits, row.tensor.type);
  object out(" ");
  out.add("arena", p.device_bytes);
  out.add("parameters", parameters);
  out.add("master_parameters", masters); // those that are not the parameters themselves
  out.add("gradients", gradients);
  out.add("optimizer_state", states);
  out.add("inputs", inputs);
  out.add("pinned", p.pinned_bytes);
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

std::string describe_settings(const program &p, const options &o, const run_record &record) {
  const char *const schedules[] = {"constant", "linear", "cosine"};
  object out(" ");
  out.add("optimizer", p.kind == optimizer::adamw ? "adamw" : "sgd");
  out.add("micro_batches", p.micro_batches);
  out.add("average", averages_tokens(p) ? "tokens" : "micro-batches");
  out.raw("lr", json_number(o.lr));
  out.add("lr_schedule", schedules[static_cast<int>(o.schedule)]);
  out.add("warmup", o.warmup);
  if (p.clips)
    out.raw("clip_norm", json_number(o.clip_norm));
  out.add("precision", p.precision);
  if (scales_loss(p)) {
    out.raw("loss_scale", json_number(o.scaling.initial));
    out.add("loss_scale_window", o.scaling.window);
    out.add("loss_scale_hysteresis", o.scaling.hysteresis);
    out.raw("loss_scale_floor", json_number(o.scaling.floor));
  }
  out.add("steps", o.steps);
  out.add("seed", std::to_string(record.seed));
  out.add("data", record.data);
  out.add("threads", record.threads);
  out.add("communicator", uses_mpi(o) ? "mpi" : "local");
  return out.finish();
}

} // namespace

/// Resident memory of this process at most, in bytes. What getrusage tells may be that of the process that started this
/// one, from before it became this program.
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

status write_record(const program &p, const options &o, const run_record &record) {
  object out("");
  out.add("version", 1);
  out.add("model", p.model);
  out.add("plan_hash", p.plan_hash);
  object mesh(" ");
  for (const axis &each : p.axes)
    mesh.add(each.name, each.size);
  out.add("ranks", mesh_size(p.axes));
  out.raw("mesh", p.axes.size ? mesh.finish() : "{}");
  out.raw("settings", describe_settings(p, o, record));
  out.raw("machine", describe_machine());
  out.raw("device_memory", describe_memory(p));
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

} // namespace windlass::rt
