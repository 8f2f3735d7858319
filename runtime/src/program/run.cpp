// The emitted program's main: flags, ranks as processes or threads, summary, exit code.
#include "windlass/rt/json.h"
#include "windlass/rt/program.h"
#include "windlass/rt/transport.h"
#include "windlass/rt/words.h"

#include "check_job.h"
#include "options.h"
#include "signals.h"
#include "trainer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

namespace windlass::rt {

namespace {

/// Returns a number that the MPI launcher put into the environment, or `otherwise`.
std::int32_t launcher_number(std::initializer_list<const char *> names, std::int32_t otherwise) {
  for (const char *name : names)
    if (const char *text = std::getenv(name))
      return static_cast<std::int32_t>(std::strtol(text, nullptr, 10));
  return otherwise;
}

std::int32_t launcher_rank() {
  return is_started_by_mpi() ? launcher_number({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, 0)
                             : launcher_number({"RANK"}, 0);
}

std::int32_t launcher_size() {
  return is_started_by_mpi() ? launcher_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"}, 1)
                             : launcher_number({"WORLD_SIZE"}, 1);
}

/// Returns whether this process speaks for its job before the ranks know each other. A rank number that no job of that
/// size has comes from a variable that something else has left behind; it must not silence an error.
bool speaks_for_job() {
  const bool is_one_of_several = is_started_by_mpi() || is_started_by_variables();
  return !is_one_of_several || launcher_rank() == 0 || launcher_rank() >= launcher_size();
}

/// The results of this process's ranks.
struct outcome {
  status result;
  run_summary summary;
};

/// Runs one rank; whatever happens, the other ranks do not wait for it afterwards. `first_error` gets the error of the
/// rank that ended the job, before the others see it.
void run_rank(const job &j, const options &o, transport &world, std::mutex &lock, status &first_error, outcome &out) {
  bool is_agreed = false;
  try {
    trainer rank(j, o, world);
    out.result = rank.run();
    out.summary = rank.summary();
    is_agreed = rank.is_agreed();
    // Before the rank's communicators go away: the other ranks may be inside a collective.
    if (!out.result.is_ok() && !is_agreed) {
      {
        std::lock_guard<std::mutex> guard(lock);
        if (first_error.is_ok())
          first_error = out.result;
      }
      world.abort(out.result);
    }
    return;
  } catch (const std::bad_alloc &) {
    out.result = internal_error("out of host memory");
  } catch (const std::exception &error) {
    out.result = internal_error(error.what());
  }
  {
    std::lock_guard<std::mutex> guard(lock);
    if (first_error.is_ok())
      first_error = out.result;
  }
  world.abort(out.result);
}

void print_error(const options &o, const status &result) {
  std::string code = diagnostic_code(result.kind());
  std::fprintf(stderr, "%s%s [%s]\n",
               result.code() == status_code::interrupted ? "" : "error: ", result.message().c_str(), code.c_str());
  if (o.json)
    std::printf("{\"error\": {\"code\": \"%s\", \"message\": %s, \"at\": null}, \"exit\": %d}\n", code.c_str(),
                json_string(result.message()).c_str(), static_cast<int>(result.code()));
}

/// Returns the bytes of a rank's device arenas in the position that has the most.
std::int64_t most_device_bytes(const job &j) {
  std::int64_t most = 0;
  for (const position_entry &position : j.positions) {
    std::int64_t bytes = 0;
    for (const arena_entry &each : position.runs->arenas)
      bytes += each.kind == memory_kind::device ? each.bytes : 0;
    most = std::max(most, bytes);
  }
  return most;
}

void print_summary(const job &j, const options &o, const run_summary &s) {
  auto rate_of = [&](double count) { return s.seconds > 0 ? count / s.seconds : 0; };
  auto json_rate = [&](double count) { return rate_of(count) > 0 ? json_number(rate_of(count)) : "null"; };
  if (o.json) {
    std::string text =
        "{\"exit_code\": 0, \"model\": " + json_string(j.model) + ", \"ranks\": " + std::to_string(count_ranks(j)) +
        ", \"first_step\": " + std::to_string(s.first_step) + ", \"last_step\": " + std::to_string(s.last_step) +
        ", \"first_loss\": " + (s.has_loss ? json_number(s.first_loss) : "null") +
        ", \"last_loss\": " + (s.has_loss ? json_number(s.last_loss) : "null") +
        ", \"eval_loss\": " + (s.has_eval ? json_number(s.eval_loss) : "null") +
        ", \"seconds\": " + json_number(s.seconds) + ", \"tokens_per_s\": " + json_rate(s.tokens) +
        ", \"samples_per_s\": " + json_rate(s.samples) + ", \"skipped_updates\": " + std::to_string(s.skipped_updates) +
        ", \"peak_memory_bytes\": " + std::to_string(s.peak_bytes) +
        ", \"arena_bytes\": " + std::to_string(most_device_bytes(j)) +
        ", \"reserve_bytes\": " + std::to_string(s.reserve_bytes) + ", \"checkpoint\": " + json_string(s.checkpoint) +
        "}\n";
    std::fputs(text.c_str(), stdout);
    return;
  }
  std::string text = "trained " + (*j.model ? quote(j.model) + " " : "") + "on " + count_of(count_ranks(j), "rank") +
                     ", steps " + std::to_string(s.first_step + 1) + " to " + std::to_string(s.last_step) + "\n";
  if (!s.has_loss)
    text = "nothing to do: step " + std::to_string(s.last_step) + " is reached\n";
  if (s.has_loss)
    text += "loss        " + short_loss(s.first_loss) + " -> " + short_loss(s.last_loss) + "\n";
  if (s.has_eval)
    text += "eval loss   " + short_loss(s.eval_loss) + "\n";
  if (rate_of(s.tokens) > 0)
    text += "tokens/s    " + short_number(rate_of(s.tokens)) + "\n";
  else if (rate_of(s.samples) > 0)
    text += "samples/s   " + short_number(rate_of(s.samples)) + "\n";
  text += "memory      " + short_bytes(static_cast<double>(s.peak_bytes)) + " resident at most per process, " +
          short_bytes(static_cast<double>(most_device_bytes(j))) + " planned arena and " +
          short_bytes(static_cast<double>(s.reserve_bytes)) + " reserve per rank\n";
  if (!s.checkpoint.empty())
    text += "checkpoint  " + s.checkpoint + "\n";
  std::fputs(text.c_str(), stdout);
}

/// Prints what the job's talking process has to say and returns the exit code.
int conclude(const job &j, const options &o, const outcome &out, bool talks) {
  if (talks && !out.result.is_ok())
    print_error(o, out.result);
  else if (talks && (o.verbosity > 0 || o.json))
    print_summary(j, o, out.summary);
  std::fflush(stdout);
  return static_cast<int>(out.result.code());
}

/// Joins the job of which this process is one rank.
status join(communicator_kind kind, std::int32_t ranks, std::unique_ptr<transport> &world) {
  if (kind == communicator_kind::mpi) {
    WINDLASS_TRY(make_mpi_transport(world));
  } else {
    launch_variables variables;
    WINDLASS_TRY(read_launch_variables(variables));
    // Another number is an error at once: the other ranks are not waited for.
    if (variables.size == ranks)
      return make_tcp_transport(variables, world);
    return bad_input("the plan is for " + count_of(ranks, "rank") + ", but WORLD_SIZE is " +
                     std::to_string(variables.size) + "; start as many processes, or plan again");
  }
  const std::int32_t started = world->size();
  return started == ranks ? ok_status()
                          : bad_input("the plan is for " + count_of(ranks, "rank") + ", but " +
                                      std::to_string(started) + (started == 1 ? " was" : " were") +
                                      " started; use mpirun -n " + std::to_string(ranks) + " or plan again");
}

int run_as_process(const job &j, const options &o) {
  outcome out;
  std::unique_ptr<transport> world;
  out.result = join(communicator_of(o), count_ranks(j), world).as(diagnostic::launch);
  // Where ranks do not know each other, none can tell for the others.
  const bool talks = !world || world->rank() == 0;
  if (!out.result.is_ok())
    return conclude(j, o, out, talks);
  std::mutex lock;
  status first_error;
  run_rank(j, o, *world, lock, first_error, out);
  ignore_signals();
  return conclude(j, o, out, talks);
}

int run_local(const job &j, const options &o) {
  std::int32_t ranks = count_ranks(j);
  std::vector<outcome> outcomes(static_cast<std::size_t>(ranks));
  status first_error;
  if (ranks > 1024) {
    outcomes[0].result = bad_input("the plan is for " + std::to_string(ranks) +
                                   " ranks, more than 1024 threads can be; "
                                   "use mpirun")
                             .as(diagnostic::launch);
    return conclude(j, o, outcomes[0], true);
  }
  std::vector<std::unique_ptr<transport>> worlds = make_local_transports(ranks);
  std::mutex lock;
  std::vector<std::thread> team;
  for (std::int32_t rank = 1; rank < ranks; ++rank) {
    std::size_t i = static_cast<std::size_t>(rank);
    try {
      team.emplace_back([&, i] { run_rank(j, o, *worlds[i], lock, first_error, outcomes[i]); });
    } catch (const std::exception &error) {
      std::lock_guard<std::mutex> guard(lock);
      first_error = internal_error("cannot start rank " + std::to_string(rank) + ": " + error.what());
      worlds[i]->abort(first_error);
      break;
    }
  }
  run_rank(j, o, *worlds[0], lock, first_error, outcomes[0]);
  for (std::thread &thread : team)
    thread.join();
  ignore_signals();
  if (!first_error.is_ok())
    outcomes[0].result = first_error;
  return conclude(j, o, outcomes[0], true);
}

} // namespace

int run_program(const job &j, int argc, char **argv) {
  options o;
  outcome out;
  const bool talks = speaks_for_job();
  out.result = parse_options(j, argc, argv, o).as(diagnostic::usage);
  if (out.result.is_ok() && (o.help || o.version)) {
    if (talks && o.help)
      std::fputs(help_text(j).c_str(), stdout);
    else if (talks)
      std::printf("windlass program%s, plan %s\n", *j.model ? (" of " + quote(j.model)).c_str() : "", j.plan_hash);
    return 0;
  }
  if (out.result.is_ok())
    out.result = check_job(j);
  const communicator_kind kind = communicator_of(o);
  if (out.result.is_ok() && kind == communicator_kind::local && is_started_by_mpi() && launcher_size() > 1)
    out.result = bad_input("--communicator local runs all ranks in one process, but " +
                           std::to_string(launcher_size()) + " processes were started; leave mpirun out")
                     .as(diagnostic::launch);
  if (!out.result.is_ok())
    return conclude(j, o, out, talks);
  watch_signals();
  job named = j;
  if (!o.model_name.empty())
    named.model = o.model_name.c_str();
  return kind == communicator_kind::local ? run_local(named, o) : run_as_process(named, o);
}

} // namespace windlass::rt
