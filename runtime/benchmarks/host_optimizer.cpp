// The optimizer's steps on the host against the rate of memory, and beside a copy on another core.
//
// usage: windlass_host_optimizer [MOST_PARAMETERS [TURNS]]
//
// A triad reads and writes as many arrays of the same types as a step: x * a + b for each array that the step updates,
// where b is the gradient, and a 16-bit array that is only written. Steps and triads run in turns. Rates count each
// operand's bytes once; times are those of the processor, without what it gave to other programs, divided by the
// threads that had work. Threads that wait must sleep for that (OMP_WAIT_POLICY=passive). Medians are over the half of
// the pairs of neighbouring turns that other programs interrupted least.
#include "windlass/rt/context.h"
#include "windlass/rt/kernels.h"
#include "windlass/rt/streams.h"

#include "windlass/rt/detail/team.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/resource.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

using namespace windlass::rt;

namespace {

double seconds_of(clockid_t clock) {
  timespec t = {};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// The operands of one parameter, one behind the other in an arena as those of a program.
class operands {
public:
  static constexpr std::int64_t bytes_of_one = 4 * 4 + 2;
  // Arrays a multiple of 4 KiB apart would take each other's places in caches and buffers.
  static constexpr std::int64_t gap = 5 * 64;

  static std::int64_t bytes(std::int64_t n) { return n * bytes_of_one + 5 * (gap + 64); }
  status allocate(std::int64_t n, std::int32_t threads) {
    WINDLASS_TRY(memory_.allocate(bytes(n), "benchmark's", memory_kind::pinned, threads));
    step_ = n;
    for (std::int64_t i = 0; i < n; ++i) {
      w()[i] = static_cast<float>(i % 1009 - 504) * 1e-3f;
      m()[i] = static_cast<float>(i % 997 - 498) * 1e-4f;
      v()[i] = g()[i] = static_cast<float>(i % 499 + 1) * 1e-4f;
    }
    return {};
  }
  float *w() const { return floats(0); }
  float *m() const { return floats(1); }
  float *v() const { return floats(2); }
  float *g() const { return floats(3); }
  std::byte *rounded() const { return memory_.at(4 * apart()); }

private:
  std::int64_t apart() const { return (step_ * 4 + 63) / 64 * 64 + gap; }
  float *floats(int k) const { return reinterpret_cast<float *>(memory_.at(k * apart())); }
  arena memory_;
  std::int64_t step_ = 0;
};

/// A step by its kind: of AdamW with two tensors of state or of SGD with one, and the type of its rounded weight.
struct kind {
  const char *name;
  int states;
  element_type rounded;
  std::int64_t bytes() const { return 4 * (2 * states + 3) + (rounded == element_type::f32 ? 0 : 2); }
};
constexpr kind kinds[] = {{"adamw f32", 2, element_type::f32},   {"adamw + bf16", 2, element_type::bf16},
                          {"adamw + f16", 2, element_type::f16}, {"sgd f32", 1, element_type::f32},
                          {"sgd + bf16", 1, element_type::bf16}, {"sgd + f16", 1, element_type::f16}};

/// Hyperparameters of both steps.
class scalars {
public:
  view one() const { return of(one_); }
  view rate() const { return of(rate_); }
  view tenth() const { return of(tenth_); }

private:
  static view of(const float &value) {
    return dense_view(reinterpret_cast<std::byte *>(const_cast<float *>(&value)), element_type::f32, {});
  }
  float one_ = 1, rate_ = 1e-3f, tenth_ = 0.1f;
};
const scalars hyper;

view part_of(float *data, std::int64_t begin, std::int64_t n) {
  return dense_view(reinterpret_cast<std::byte *>(data + begin), element_type::f32, {n});
}

/// Updates elements [begin, begin + n).
status update(stream &s, const kind &k, const operands &o, std::int64_t begin, std::int64_t n) {
  const view w = part_of(o.w(), begin, n), m = part_of(o.m(), begin, n), v = part_of(o.v(), begin, n),
             g = part_of(o.g(), begin, n);
  const view rounded = k.rounded == element_type::f32 ? view() : dense_view(o.rounded() + 2 * begin, k.rounded, {n});
  if (k.states == 1)
    return sgd(s, w, m, rounded, g, hyper.rate(), hyper.tenth(), hyper.tenth(), hyper.one(), true);
  return adamw(s, w, m, v, rounded, g, hyper.rate(), hyper.tenth(), hyper.tenth(), hyper.rate(), hyper.tenth(),
               hyper.one(), hyper.one(), hyper.one(), decay_mode::decoupled);
}

/// Updates `count` parameters of `each` elements by one command.
status update_joined(stream &s, const kind &k, const operands &o, std::int32_t count, std::int64_t each) {
  updated_parameters list;
  list.rounded = k.rounded;
  for (; list.count < count; ++list.count) {
    const std::int64_t at = list.count * each;
    list.of[list.count] = {
        each, o.w() + at, o.m() + at, o.v() + at, reinterpret_cast<std::byte *>(o.g() + at), o.rounded() + 2 * at};
  }
  return adamw_list(s, list, hyper.rate(), hyper.tenth(), hyper.tenth(), hyper.rate(), hyper.tenth(), hyper.one(),
                    hyper.one(), hyper.one(), decay_mode::decoupled);
}

/// Writes 64 bytes that are not read again soon.
inline void write_line(std::byte *to, const float *from) {
#if defined(__SSE2__)
  for (int k = 0; k < 4; ++k)
    _mm_stream_ps(reinterpret_cast<float *>(to) + 4 * k, _mm_loadu_ps(from + 4 * k));
#else
  std::memcpy(to, from, 64);
#endif
}

/// The least elements for which a thread is started, as in a step.
constexpr std::int64_t grain = 8192;

/// Moves what a step moves, with the least arithmetic.
template <int states, bool rounds>
void triad_part(float *w, float *m, float *v, const float *g, std::byte *rounded, std::int64_t begin,
                std::int64_t end) {
  constexpr std::int64_t block = 32;
  const auto run = [=](std::int64_t from, std::int64_t to) {
    WINDLASS_SIMD
    for (std::int64_t i = from; i < to; ++i) {
      const float x = g[i];
      w[i] = w[i] * 0.5f + x;
      m[i] = m[i] * 0.5f + x;
      if constexpr (states == 2)
        v[i] = v[i] * 0.5f + x;
    }
  };
  if constexpr (!rounds)
    return run(begin, end);
  for (std::int64_t i = begin; i + block <= end; i += block) {
    run(i, i + block);
    write_line(rounded + 2 * i, w + i);
  }
}

void triad(const kind &k, const operands &o, std::int64_t n, std::int32_t threads) {
  const bool rounds = k.rounded != element_type::f32;
  constexpr std::int64_t block = 32;
  detail::parallel(threads, n / block, grain / block, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    const auto run = [&](auto part) { part(o.w(), o.m(), o.v(), o.g(), o.rounded(), begin * block, end * block); };
    if (k.states == 2)
      rounds ? run(triad_part<2, true>) : run(triad_part<2, false>);
    else
      rounds ? run(triad_part<1, true>) : run(triad_part<1, false>);
  });
}

/// The quartiles of some numbers.
struct quartiles {
  double first, median, third;
  explicit quartiles(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    const auto at = [&](std::size_t quarter) { return all[(all.size() - 1) * quarter / 4]; };
    first = at(1), median = at(2), third = at(3);
  }
};

void expect(const status &done) {
  if (done.is_ok())
    return;
  std::fprintf(stderr, "error: %s\n", done.message().c_str());
  std::exit(1);
}

/// Returns the seconds that all processors together need for one run.
double seconds_of_run(const std::function<void()> &run, int repeats) {
  const double start = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < repeats; ++i)
    run();
  return (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - start) / repeats;
}

/// Returns how often the system gave a core of this process to something else.
long count_interruptions() {
  rusage used = {};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_nivcsw;
}

/// Runs step and triad in turns and prints how they compare.
void compare(const std::string &name, const kind &k, std::int64_t n, std::int32_t threads, int turns,
             const std::function<void()> &step, const std::function<void()> &stream) {
  constexpr double least_turn = 2e-3, most_seconds = 4;
  stream(), step(); // pages and caches as in the turns
  const double once = seconds_of_run(stream, 1) + seconds_of_run(step, 1);
  const int repeats = std::max(1, static_cast<int>(least_turn / once));
  turns = std::clamp(static_cast<int>(most_seconds / (once * repeats)), 9, turns);
  struct pair {
    long interruptions;
    double triad, step;
  };
  std::vector<pair> pairs;
  for (int turn = 0; turn < turns; ++turn) {
    const long before = count_interruptions();
    const double of_triad = seconds_of_run(stream, repeats), of_step = seconds_of_run(step, repeats);
    pairs.push_back({count_interruptions() - before, of_triad, of_step});
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const pair &a, const pair &b) { return a.interruptions < b.interruptions; });
  pairs.resize((pairs.size() + 1) / 2);
  const double bytes = static_cast<double>(k.bytes() * n * detail::part_count(n, grain, threads)) * 1e-9;
  std::vector<double> ratios, rates, triad_rates;
  for (const pair &each : pairs) {
    ratios.push_back(each.triad / each.step);
    rates.push_back(bytes / each.step);
    triad_rates.push_back(bytes / each.triad);
  }
  const quartiles ratio(ratios);
  std::printf("%5d %10lld  %-24s %7.1f %7.1f   %5.3f   %5.3f to %5.3f\n", threads, static_cast<long long>(n),
              name.c_str(), quartiles(rates).median, quartiles(triad_rates).median, ratio.median, ratio.first,
              ratio.third);
  std::fflush(stdout);
}

void compare_all(const operands &o, std::int64_t most, std::int32_t threads, int turns) {
  const std::unique_ptr<stream> s = make_inline_stream(threads, nullptr, 0);
  for (std::int64_t n : {std::int64_t(10'000), std::int64_t(1'000'000), std::int64_t(10'000'000),
                         std::int64_t(100'000'000), std::int64_t(250'000'000)}) {
    if (n > most)
      break;
    n = n / 32 * 32; // whole lines of the 16-bit array
    for (const kind &k : kinds)
      compare(k.name, k, n, threads, turns, [&] { expect(update(*s, k, o, 0, n)); }, [&] { triad(k, o, n, threads); });
  }
  for (const std::int64_t each : {768, 1 << 16}) {
    constexpr std::int32_t count = updated_parameters::most;
    if (each * count > most)
      break;
    for (const kind &k : kinds)
      if (k.states == 2)
        compare(
            std::string(k.name) + ", " + std::to_string(count) + " joined", k, each * count, threads, turns,
            [&] { expect(update_joined(*s, k, o, count, each)); }, [&] { triad(k, o, each * count, threads); });
  }
}

/// Does a part of some work and returns the bytes that it moved.
using command = std::function<std::int64_t(stream &)>;

/// One run of a command.
struct piece {
  double begin, end;
  std::int64_t bytes;
  bool is_whole; ///< no other program had the core meanwhile
};

/// Commands that run at once, each again and again on a core of its own.
class experiment {
public:
  experiment(std::vector<command> commands, std::vector<int> cores)
      : commands_(std::move(commands)), cores_(std::move(cores)), rates_(commands_.size()) {}

  /// Runs the commands for a while and notes the rates of those pieces that nothing disturbed, on no core.
  void run() {
    std::vector<std::vector<piece>> pieces(commands_.size());
    std::vector<std::thread> team;
    for (std::size_t t = 0; t < commands_.size(); ++t)
      team.emplace_back([&, t] { pieces[t] = run_on_core(commands_[t], cores_[t]); });
    for (std::thread &each : team)
      each.join();
    for (std::size_t t = 0; t < pieces.size(); ++t)
      for (const piece &each : pieces[t]) {
        bool counts = true;
        for (const std::vector<piece> &other : pieces)
          counts = counts && has_core(other, each);
        if (counts)
          rates_[t].push_back(static_cast<double>(each.bytes) / (each.end - each.begin) * 1e-9);
      }
  }
  bool has_enough() const {
    return std::all_of(rates_.begin(), rates_.end(), [](const auto &of_one) { return of_one.size() >= wanted; });
  }
  /// The gigabytes per second of a command.
  quartiles of(std::size_t i) const { return quartiles(rates_[i]); }
  double sum() const {
    double all = 0;
    for (std::size_t i = 0; i < rates_.size(); ++i)
      all += of(i).median;
    return all;
  }

private:
  static std::vector<piece> run_on_core(const command &run, int core) {
    constexpr double seconds = 0.2, least_share = 0.97;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(static_cast<unsigned>(core), &own);
    sched_setaffinity(0, sizeof(own), &own);
    const std::unique_ptr<stream> s = make_inline_stream(1, nullptr, 0);
    std::vector<piece> pieces;
    double now = seconds_of(CLOCK_MONOTONIC), used = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    for (const double last = now + seconds; now < last;) {
      piece next = {now, 0, run(*s), false};
      next.end = now = seconds_of(CLOCK_MONOTONIC);
      const double used_before = std::exchange(used, seconds_of(CLOCK_THREAD_CPUTIME_ID));
      next.is_whole = used - used_before > least_share * (next.end - next.begin);
      pieces.push_back(next);
    }
    return pieces;
  }
  /// Returns whether the thread that ran `pieces`, which follow each other without gaps, had its core during `time`.
  static bool has_core(const std::vector<piece> &pieces, const piece &time) {
    auto at = std::lower_bound(pieces.begin(), pieces.end(), time.begin,
                               [](const piece &p, double begin) { return p.end <= begin; });
    if (at == pieces.end() || at->begin > time.begin || pieces.back().end < time.end)
      return false;
    bool has = true;
    for (; at != pieces.end() && at->begin < time.end; ++at)
      has = has && at->is_whole;
    return has;
  }

  static constexpr std::size_t wanted = 200;
  std::vector<command> commands_;
  std::vector<int> cores_;
  std::vector<std::vector<double>> rates_;
};

/// Prints how an update and a copy on two cores slow each other down, and what shared memory predicts.
///
/// The model: two cores that both update move U bytes per second together, two that both copy C. Update and copy at the
/// rates u and c that each has alone would use memory for u / U + c / C of the time. Above 1 this is how many times
/// slower both are.
void compare_with_copy(const operands &o, std::int64_t most) {
  std::vector<int> cores;
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  for (int i = 0; i < CPU_SETSIZE && cores.size() < 2; ++i)
    if (CPU_ISSET(static_cast<unsigned>(i), &allowed))
      cores.push_back(i);
  constexpr std::int64_t slice = 1 << 17, least_slices = 256;
  const std::int64_t slices = most / 2 / slice; // of each of two cores, which go over them in turns
  if (cores.size() < 2 || slices < least_slices)
    return static_cast<void>(std::printf("no two cores, or memory, for a copy beside an update\n"));
  std::int64_t places[2] = {};
  const auto next = [&](std::int64_t half) { return (half * slices + places[half]++ % slices) * slice; };
  const auto updates = [&](std::int64_t half) -> command {
    return [&, half](stream &s) {
      expect(update(s, kinds[0], o, next(half), slice));
      return kinds[0].bytes() * slice;
    };
  };
  const auto copies = [&](std::int64_t half) -> command {
    return [&, half](stream &s) {
      const std::int64_t at = next(half);
      expect(copy(s, part_of(o.w(), at, slice), part_of(o.g(), at, slice)));
      return 2 * 4 * slice;
    };
  };
  experiment update_alone({updates(0)}, {cores[0]}), copy_alone({copies(1)}, {cores[1]}),
      both({updates(0), copies(1)}, cores), two_updates({updates(0), updates(1)}, cores),
      two_copies({copies(0), copies(1)}, cores);
  experiment *const all[] = {&update_alone, &copy_alone, &both, &two_updates, &two_copies};
  constexpr int least_turns = 5, most_turns = 100;
  const auto is_done = [&] {
    return std::all_of(std::begin(all), std::end(all), [](const experiment *each) { return each->has_enough(); });
  };
  for (int turn = 0; turn < least_turns || (turn < most_turns && !is_done()); ++turn)
    for (experiment *each : all)
      each->run();
  if (!is_done())
    return static_cast<void>(std::printf("other programs leave no time for a copy beside an update\n"));
  const double u = update_alone.of(0).median, c = copy_alone.of(0).median;
  const double slower = std::max(1.0, u / two_updates.sum() + c / two_copies.sum());
  std::printf("adamw f32 on one core and a copy on another, in GB/s\n"
              "alone %.1f and %.1f; two updates %.1f, two copies %.1f; so at once both are %.2f times slower\n",
              u, c, two_updates.sum(), two_copies.sum(), slower);
  const auto print = [](const char *what, double predicted, const quartiles &measured) {
    std::printf("%-6s at once: predicted %5.1f, measured %5.1f, quartiles %5.1f to %5.1f, ratio %.3f\n", what,
                predicted, measured.median, measured.first, measured.third, measured.median / predicted);
  };
  print("update", u / slower, both.of(0));
  print("copy", c / slower, both.of(1));
}

} // namespace

int main(int argc, char **argv) {
  const std::int64_t most = argc > 1 ? std::atoll(argv[1]) : 100'000'000;
  const int turns = argc > 2 ? std::atoi(argv[2]) : 101;
  if (most < 10'000 || most > 1'000'000'000'000 || turns < 9)
    return std::fprintf(stderr, "usage: windlass_host_optimizer [MOST_PARAMETERS [TURNS]]     (9 turns or more)\n"), 2;
  const auto cores = static_cast<std::int32_t>(std::thread::hardware_concurrency());
  operands o;
  expect(o.allocate(most, cores));
  std::printf("%5s %10s  %-24s %7s %7s   %5s   %14s\n", "cores", "parameters", "step", "GB/s", "triad", "ratio",
              "quartiles");
  compare_all(o, most, 1, turns);
  if (cores > 1)
    compare_all(o, most, cores, turns);
  compare_with_copy(o, most);
  return 0;
}
