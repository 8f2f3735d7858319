#include "windlass/rt/measure.h"

#include "windlass/rt/communicator.h"
#include "windlass/rt/context.h"
#include "windlass/rt/file.h"
#include "windlass/rt/host_copy.h"
#include "windlass/rt/json.h"
#include "windlass/rt/kernel_times.h"
#include "windlass/rt/transport.h"

#include "windlass/rt/detail/sample.h"

#include "rates.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <random>
#include <string>
#include <string_view>

#include <sched.h>
#include <sys/resource.h>

namespace windlass::rt {

namespace {

constexpr std::int64_t alignment = 64;
/// The least and the most repetitions of one measurement, and the seconds after which it ends before the most. The
/// clock of a device ticks finely enough for few.
constexpr int least_turns = 6, most_turns = detail::backend_has_device ? 10 : 40;
constexpr double enough_seconds = 0.05;
/// The instances of one command's operands, so that a repetition does not find its results in the cache; fewer where
/// one of them is larger than a device's cache.
constexpr std::int64_t most_instances = 8, device_cache_bytes = std::int64_t(1) << 28;
/// The seconds between two writings of what has been measured so far.
constexpr double seconds_between_writings = 5;

struct settings {
  std::string output;
  double seconds = 600; ///< of all measurements; commands that are left after that are not measured
  std::int32_t threads = 0;
};

status parse(int argc, char **argv, settings &out) {
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 >= argc)
      return status(status_code::usage, quote(name) + " needs a value");
    if (name == "-o")
      out.output = argv[i + 1];
    else if (name == "--seconds")
      out.seconds = std::strtod(argv[i + 1], nullptr);
    else if (name == "--threads")
      out.threads = static_cast<std::int32_t>(std::strtol(argv[i + 1], nullptr, 10));
    else
      return status(status_code::usage, "unknown flag " + quote(name) + "; there are -o, --seconds and --threads");
  }
  if (out.output.empty() || !(out.seconds > 0) || out.threads < 0 || out.threads > 1024)
    return status(status_code::usage, "needs -o FILE, and takes --seconds S above 0 and --threads T up to 1024");
  return {};
}

/// Random values that operands are filled with, one block of each kind.
class contents {
public:
  contents() {
    std::mt19937 engine(1);
    std::uniform_real_distribution<float> real(-1, 1);
    for (float &value : reals_)
      value = real(engine);
    for (std::uint32_t &value : bits_)
      value = static_cast<std::uint32_t>(engine());
  }

  void fill(std::byte *data, const measured_operand &operand) const {
    switch (operand.type) {
    case element_type::f32:
      return copy(reinterpret_cast<float *>(data), operand, [&](std::size_t i) { return reals_[i]; });
    case element_type::f64:
      return copy(reinterpret_cast<double *>(data), operand, [&](std::size_t i) { return double(reals_[i]); });
    case element_type::bf16:
      return copy(reinterpret_cast<std::uint16_t *>(data), operand, [&](std::size_t i) {
        std::uint32_t word;
        std::memcpy(&word, &reals_[i], sizeof word);
        return static_cast<std::uint16_t>(word >> 16);
      });
    case element_type::i64:
      return integers(reinterpret_cast<std::int64_t *>(data), operand);
    case element_type::i32:
      return integers(reinterpret_cast<std::int32_t *>(data), operand);
    case element_type::u16:
    case element_type::f16: // small enough to be a number of every kind
      return integers(reinterpret_cast<std::uint16_t *>(data), operand);
    case element_type::u8:
      return integers(reinterpret_cast<std::uint8_t *>(data), operand);
    case element_type::boolean:
      return copy(reinterpret_cast<bool *>(data), operand, [&](std::size_t i) { return (bits_[i] & 1) != 0; });
    }
  }

private:
  static constexpr std::size_t block = 1 << 14;

  template <class T, class F> static void copy(T *to, const measured_operand &operand, F value) {
    const auto n = static_cast<std::size_t>(operand.elements);
    for (std::size_t i = 0; i < std::min(n, block); ++i)
      to[i] = value(i);
    for (std::size_t i = block; i < n; i += block)
      std::memcpy(to + i, to, std::min(block, n - i) * sizeof(T));
  }
  template <class T> void integers(T *to, const measured_operand &operand) const {
    const auto limit = static_cast<std::uint64_t>(std::max<std::int64_t>(operand.limit, 1));
    copy(to, operand, [&](std::size_t i) { return static_cast<T>(bits_[i] % limit); });
  }

  float reals_[block];
  std::uint32_t bits_[block];
};

/// Returns the processor time of the calling thread: what the system gave its core to meanwhile does not count.
double thread_seconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::int64_t count_interruptions() {
  rusage used = {};
  return getrusage(RUSAGE_SELF, &used) == 0 ? used.ru_nivcsw : 0;
}

class rank_measuring {
public:
  rank_measuring(const measuring &m, const settings &s, transport &world, std::int32_t threads)
      : m_(m), s_(s), world_(world), threads_(threads) {}

  status run() {
    WINDLASS_TRY(create());
    start_ = clock_seconds();
    std::string text = "{\n \"version\": 1,\n \"threads\": " + std::to_string(threads_);
    if (is_profile())
      WINDLASS_TRY(describe_machine(text));
    text += ",\n \"collectives\": [";
    const char *separator = "\n  ";
    for (std::int32_t group = 0; m_.measures_collectives && group < static_cast<std::int32_t>(sizes_.size()); ++group)
      for (const collective_kind kind :
           {collective_kind::all_reduce, collective_kind::all_gather, collective_kind::reduce_scatter,
            collective_kind::all_to_all, collective_kind::permute})
        for (std::int64_t bytes = least_bytes; bytes <= most_bytes; bytes *= 4) {
          sample result;
          WINDLASS_TRY(measure(kind, group, bytes, result));
          text += separator + ("{\"kind\": " + json_string(collective_names[static_cast<std::size_t>(kind)])) +
                  ", \"members\": " + std::to_string(sizes_[static_cast<std::size_t>(group)]) +
                  ", \"bytes\": " + std::to_string(bytes) + ", " + write(result) + "}";
          separator = ",\n  ";
        }
    text += is_profile() ? "],\n \"commands\": {" : "],\n \"commands\": [";
    separator = "\n  ";
    std::int64_t done = 0;
    for (const std::int64_t i : order()) {
      sample loaded, alone;
      WINDLASS_TRY(measure(m_.commands[i], loaded, alone));
      if (loaded.turns == 0)
        break; // the time is over, and all ranks know
      text += separator + describe(i) + ", \"loaded\": {" + write(loaded) + "}, \"alone\": {" + write(alone) + "}}";
      separator = ",\n  ";
      ++done;
      if (const double now = clock_seconds(); done < m_.commands.size && now - written_ >= seconds_between_writings) {
        written_ = now;
        WINDLASS_TRY(write_file(text, done));
      }
    }
    WINDLASS_TRY(write_file(text, done));
    return all_->barrier();
  }

private:
  static constexpr std::int64_t least_bytes = 256, most_bytes = std::int64_t(64) << 20;

  bool is_profile() const { return m_.cluster != nullptr; }

  /// Returns the commands in the order in which they are measured: first those between whose ways a profile chooses.
  std::vector<std::int64_t> order() const {
    std::vector<std::int64_t> all;
    for (const bool wants_choices : {true, false})
      for (std::int64_t i = 0; i < m_.commands.size; ++i) {
        const std::string_view family = m_.commands[i].family;
        if (wants_choices == (family.rfind("matmul", 0) == 0 || family.rfind("attention", 0) == 0))
          all.push_back(i);
      }
    return all;
  }

  /// Writes what has been measured so far, as a whole file; a run that is killed leaves the last one.
  status write_file(std::string text, std::int64_t done) {
    if (world_.rank() != 0)
      return {};
    text += is_profile() ? "}" : "]";
    if constexpr (detail::backend_has_device)
      if (is_profile())
        text += write_products() + write_attentions();
    std::fprintf(stderr, "windlass: measured %lld of %lld commands in %.0f s\n", static_cast<long long>(done),
                 static_cast<long long>(m_.commands.size), clock_seconds() - start_);
    return replace_file(s_.output, text + "\n}\n");
  }

  std::string write(const sample &s) const {
    return std::string(is_profile() ? "\"median_seconds\": " : "\"seconds\": ") + json_number(s.median) +
           ", \"spread_seconds\": " + json_number(s.spread) + ", \"turns\": " + std::to_string(s.turns);
  }

  /// Returns the beginning of a command's entry.
  std::string describe(std::int64_t i) const {
    const measured_command &command = m_.commands[i];
    if (!is_profile())
      return "{\"command\": " + std::to_string(i);
    return json_string(command.key) + ": {\"family\": " + json_string(command.family) +
           ", \"flops\": " + json_number(command.flops) + ", \"bytes\": " + json_number(command.bytes) +
           ", \"narrow_products\": " + (command.is_narrow ? "true" : "false");
  }

  /// Returns the algorithms that commands were measured with, as JSON; empty where none was found.
  std::string write_products() {
    stream &compute = context_.compute();
    if (detail::tuned_products(compute).empty() && epilogues_.empty())
      return "";
    std::string text = ",\n \"products\": {\"device\": " + json_string(detail::device_name()) +
                       ", \"library\": " + json_string(detail::product_library(compute)) + ", \"choices\": {";
    const char *separator = "\n  ";
    for (const detail::tuned_product &each : detail::tuned_products(compute)) {
      text += separator + json_string(each.product) + ": {\"seconds\": " + json_number(each.seconds) +
              ", \"first_seconds\": " + json_number(each.first_seconds) + ", \"algorithm\": ";
      const char *comma = "[";
      for (const std::int32_t number : each.algorithm.numbers) {
        text += comma + std::to_string(number);
        comma = ", ";
      }
      text += "]}";
      separator = ",\n  ";
    }
    text += "}";
    separator = ", \"epilogues\": {\n  ";
    for (const auto &[key, times] : epilogues_) {
      text += separator + json_string(key) + ": {\"seconds\": " + json_number(times.seconds) +
              ", \"apart_seconds\": " + json_number(times.apart_seconds) + "}";
      separator = ",\n  ";
    }
    return text + (epilogues_.empty() ? "}" : "}}");
  }

  std::string write_attentions() {
    if (attentions_.empty())
      return "";
    std::string text = ",\n \"attention\": {\"device\": " + json_string(detail::device_name()) +
                       ", \"library\": " + json_string(detail::attention_library_name(context_.compute())) +
                       ", \"choices\": {";
    const char *separator = "\n  ";
    for (const auto &[key, times] : attentions_) {
      text += separator + json_string(key) + ": {\"seconds\": " + json_number(times.seconds) +
              ", \"own_seconds\": " + json_number(times.own_seconds) +
              ", \"workspace_bytes\": " + std::to_string(times.workspace_bytes) + "}";
      separator = ",\n  ";
    }
    return text + "}}";
  }

  status describe_machine(std::string &text) {
    std::string name;
    if constexpr (detail::backend_has_device)
      name = detail::device_name();
    std::vector<machine_rate> rates;
    // The other ranks wait: a host has one disk and one memory.
    if (world_.rank() == 0)
      WINDLASS_TRY(measure_rates(context_, threads_, parent_path(s_.output), rates));
    WINDLASS_TRY(all_->barrier());
    text += ",\n \"machine\": " + json_string(name) + ",\n \"cluster\": " + m_.cluster + ",\n \"rates\": {";
    const char *separator = "\n  ";
    for (const machine_rate &rate : rates) {
      text += separator + json_string(rate.name) + ": " + json_number(rate.per_second);
      separator = ",\n  ";
    }
    text += "}";
    return {};
  }

  /// Treats the ranks as a mesh with an axis for each prime factor: groups are those of its last axes.
  status create() {
    std::vector<std::int32_t> everyone(static_cast<std::size_t>(m_.ranks));
    for (std::int32_t i = 0; i < m_.ranks; ++i)
      everyone[static_cast<std::size_t>(i)] = i;
    WINDLASS_TRY(world_.make_communicator(everyone, all_));
    for (std::int32_t rest = m_.ranks, prime = 2; rest > 1;)
      if (rest % prime == 0) {
        axes_.push_back({"ranks", prime});
        rest /= prime;
      } else {
        ++prime;
      }
    const auto count = static_cast<std::int32_t>(axes_.size());
    std::int32_t size = 1;
    for (std::int32_t first = count; first-- > 0;) {
      size *= axes_[static_cast<std::size_t>(first)].size;
      sizes_.push_back(size);
      groups_.emplace_back();
      for (std::int32_t axis = first; axis < count; ++axis)
        groups_.back().push_back(axis);
    }
    std::vector<stream_entry> streams = {{stream_kind::compute, "compute"}};
    for (const std::vector<std::int32_t> &group : groups_) {
      const auto stream = static_cast<std::int32_t>(streams.size());
      entries_.push_back({{group.data(), static_cast<std::int64_t>(group.size())}, stream, /*exchanges=*/true});
      streams.push_back({stream_kind::communicator, "collectives"});
    }
    const arena_entry arenas[] = {{memory_kind::device, std::max(m_.arena_bytes, 2 * most_bytes), "device"}};
    program p = {};
    p.arenas = {arenas, 1};
    p.scratch_bytes = m_.scratch_bytes;
    p.streams = {streams.data(), static_cast<std::int64_t>(streams.size())};
    p.events = 2;
    p.communicators = {entries_.data(), count};
    const position_entry position = {{axes_.data(), count}, 0, world_.size(), &p};
    job j = {};
    j.precision = m_.precision;
    j.positions = {&position, 1};
    WINDLASS_TRY(context_.create(j, world_, threads_));
    // Tuning happens in the first turn of a command, which does not count.
    if constexpr (detail::backend_has_device) {
      detail::tune_products(context_.compute());
      const std::string said = detail::tune_attentions(context_.compute());
      if (world_.rank() == 0 && is_profile())
        std::fprintf(stderr, "windlass: %s\n", said.c_str());
    }
    return {};
  }

  /// Gives every rank the decision of rank 0 whether to go on.
  status decide(bool mine, bool &goes_on) {
    auto word = static_cast<std::byte>(mine);
    WINDLASS_TRY(all_->broadcast(&word, 1, 0));
    goes_on = word != std::byte(0);
    return {};
  }

  /// Runs `turn` on the ranks that take part, until rank 0 has seen enough by `clock`, or by the time that the turn
  /// reports for the device.
  template <class Prepare, class Turn>
  status repeat(bool takes_part, double (*clock)(), Prepare prepare, Turn turn, sample &result) {
    std::vector<turn_time> turns;
    double sum = 0;
    // The first turn loads code and pages, and does not count.
    for (int i = 0; i <= most_turns; ++i) {
      if (takes_part)
        WINDLASS_TRY(prepare(i));
      WINDLASS_TRY(all_->barrier());
      if (takes_part) {
        const std::int64_t interruptions = count_interruptions();
        const double start = clock();
        device_seconds_ = -1;
        WINDLASS_TRY(turn(i));
        const double taken = device_seconds_ >= 0 ? device_seconds_ : clock() - start;
        if (i > 0) {
          turns.push_back({taken, count_interruptions() - interruptions});
          sum += taken;
        }
      }
      bool goes_on;
      WINDLASS_TRY(decide(i < least_turns || sum < enough_seconds, goes_on));
      if (!goes_on)
        break;
    }
    result = summarize(std::move(turns), least_turns);
    return {};
  }

  status fill(std::int64_t offset, const measured_operand &operand) {
    host_copy memory(context_, {0, offset}, operand.elements * size_of(operand.type));
    contents_.fill(memory.data(), operand);
    return memory.store();
  }

  status measure(const measured_command &command, sample &loaded, sample &alone) {
    bool goes_on;
    WINDLASS_TRY(decide(clock_seconds() - start_ < s_.seconds, goes_on));
    if (!goes_on)
      return {};
    const auto count = static_cast<std::size_t>(command.operands.size);
    std::vector<std::int64_t> places(count), offsets(count);
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const measured_operand &operand = command.operands[static_cast<std::int64_t>(i)];
      places[i] = bytes;
      bytes += (operand.elements * size_of(operand.type) + alignment - 1) / alignment * alignment;
    }
    if (bytes > context_.get_arena(0).size())
      return internal_error("a measured command needs " + std::to_string(bytes) + " bytes, the arena has " +
                            std::to_string(context_.get_arena(0).size()));
    const std::int64_t each = std::max<std::int64_t>(bytes, 1);
    std::int64_t wanted = most_instances;
    if (detail::backend_has_device)
      wanted = std::clamp<std::int64_t>(device_cache_bytes / each, 2, most_instances);
    const std::int64_t instances = std::clamp<std::int64_t>(context_.get_arena(0).size() / each, 1, wanted);
    const auto prepare = [&](int turn) -> status {
      // A device does not keep what the host writes in its caches, and filling takes longer than the command: there
      // each instance is filled once.
      const bool fills = !detail::backend_has_device || turn < instances;
      for (std::size_t i = 0; i < count; ++i) {
        const measured_operand &operand = command.operands[static_cast<std::int64_t>(i)];
        offsets[i] = places[i] + turn % instances * bytes;
        if (operand.is_read && fills)
          WINDLASS_TRY(fill(offsets[i], operand));
      }
      return {};
    };
    const auto turn = [&](int) -> status {
      stream &compute = context_.compute();
      kernel_times times;
      // A device says how long its part took; the host's time would be that of a launch.
      if (detail::backend_has_device)
        compute.count_times(&times);
      WINDLASS_TRY(command.run(context_, offsets.data(), command.adds));
      WINDLASS_TRY(compute.synchronize());
      if (detail::backend_has_device) {
        compute.count_times(nullptr);
        device_seconds_ = 0;
        for (const kernel_times::row &row : times.rows())
          device_seconds_ += row.seconds;
      }
      return {};
    };
    // The compute stream runs on this thread.
    WINDLASS_TRY(repeat(true, thread_seconds, prepare, turn, loaded));
    if constexpr (detail::backend_has_device) {
      detail::tuned_attention times;
      if (detail::take_tuned_attention(context_.compute(), times))
        attentions_[command.key] = times;
      detail::tuned_epilogue epilogue;
      if (detail::take_tuned_epilogue(context_.compute(), epilogue))
        epilogues_[command.key] = epilogue;
    }
    alone = loaded;
    return m_.ranks > 1 ? repeat(world_.rank() == 0, thread_seconds, prepare, turn, alone) : status();
  }

  /// Events order the communicator's stream after the compute stream and back, as in step programs.
  status measure(collective_kind kind, std::int32_t group, std::int64_t bytes, sample &result) {
    stream &compute = context_.compute(), &side = context_.get_stream(entries_[static_cast<std::size_t>(group)].stream);
    communicator &members = context_.get_communicator(group);
    const std::int64_t size = members.size(), whole = std::max(bytes / 4 / size, std::int64_t(1)) * size;
    const auto at = [&](std::int64_t offset, std::int64_t elements) {
      return dense_view(context_.get_arena(0).at(offset), element_type::f32, {elements});
    };
    const auto prepare = [&](int) -> status { return fill(0, {element_type::f32, whole, 0, true}); };
    const auto issue = [&]() -> status {
      switch (kind) {
      case collective_kind::all_gather:
        return all_gather(side, members, at(most_bytes, whole), at(0, whole / size));
      case collective_kind::reduce_scatter:
        return reduce_scatter(side, members, at(most_bytes, whole / size), at(0, whole));
      case collective_kind::all_to_all:
        return all_to_all(side, members, at(most_bytes, whole), at(0, whole));
      case collective_kind::permute:
        return side.submit(
            [&members, out = context_.get_arena(0).at(most_bytes), in = context_.get_arena(0).at(0), whole, size] {
              return members.permute(out, in, whole * 4, static_cast<std::int32_t>((members.index() + 1) % size),
                                     static_cast<std::int32_t>((members.index() + size - 1) % size));
            });
      default:
        return all_reduce(side, members, at(0, whole), reduction::sum);
      }
    };
    const auto turn = [&](int) -> status {
      WINDLASS_TRY(compute.record(context_.get_event(0)));
      WINDLASS_TRY(side.wait(context_.get_event(0)));
      WINDLASS_TRY(issue());
      WINDLASS_TRY(side.record(context_.get_event(1)));
      WINDLASS_TRY(compute.wait(context_.get_event(1)));
      return side.synchronize();
    };
    return repeat(true, clock_seconds, prepare, turn, result);
  }

  const measuring &m_;
  const settings &s_;
  transport &world_;
  std::int32_t threads_;
  contents contents_;
  context context_;
  std::unique_ptr<communicator> all_;
  std::vector<axis> axes_;
  std::vector<std::vector<std::int32_t>> groups_;
  std::vector<communicator_entry> entries_;
  std::vector<std::int32_t> sizes_;
  // The results of tuning by the keys of their commands.
  std::map<std::string, detail::tuned_attention> attentions_;
  std::map<std::string, detail::tuned_epilogue> epilogues_;
  double start_ = 0, written_ = 0;
  double device_seconds_ = -1; ///< of the turn that runs; negative where the device does not say
};

std::int32_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

status run_rank(const measuring &m, const settings &s, transport &world) {
  if (world.size() != m.ranks)
    return bad_input("the program measures " + std::to_string(m.ranks) + " ranks, but " + std::to_string(world.size()) +
                     " were started");
  const std::int32_t threads = s.threads > 0 ? s.threads : std::max(1, available_processors() / m.ranks);
  // On the heap: large blocks of random values do not fit on the stack.
  return std::make_unique<rank_measuring>(m, s, world, threads)->run();
}

} // namespace

int run_measuring(const measuring &m, int argc, char **argv) {
  settings s;
  status result = parse(argc, argv, s);
  std::unique_ptr<transport> world;
  if (result.is_ok() && m.ranks > 1) {
    result = make_mpi_transport(world).as(diagnostic::launch);
  } else if (result.is_ok()) {
    world = std::move(make_local_transports(1).front());
  }
  if (result.is_ok())
    result = run_rank(m, s, *world);
  if (result.is_ok())
    return 0;
  std::fprintf(stderr, "error: %s [%s]\n", result.message().c_str(), diagnostic_code(result.kind()).c_str());
  if (world)
    world->abort(result);
  return static_cast<int>(result.code());
}

} // namespace windlass::rt
