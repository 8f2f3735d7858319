#include "options.h"

#include "windlass/rt/file.h"
#include "windlass/rt/json.h"
#include "windlass/rt/transport.h"
#include "windlass/rt/words.h"

#include "box.h"
#include "schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include <glob.h>
#include <unistd.h>

namespace windlass::rt {

namespace {

status usage(std::string message) { return {status_code::usage, std::move(message)}; }

/// The flag that the parser is reading, for messages.
struct flag_value {
  std::string name;
  std::string text;
};

status not_a(const char *what, const flag_value &flag) {
  return usage(flag.name + " needs " + what + ", not " + quote(flag.text));
}

template <class T> bool parse_whole(const std::string &text, T &out) {
  auto result = std::from_chars(text.data(), text.data() + text.size(), out);
  return !text.empty() && result.ec == std::errc() && result.ptr == text.data() + text.size();
}

status parse_count(const flag_value &flag, std::int64_t low, std::int64_t high, std::int64_t &out) {
  if (!parse_whole(flag.text, out))
    return not_a("an integer", flag);
  if (out < low || out > high)
    return bad_input(flag.name + " is " + flag.text + "; it has to be from " + std::to_string(low) + " to " +
                     std::to_string(high));
  return ok_status();
}

constexpr double infinite = std::numeric_limits<double>::infinity();

/// A number of [low, high).
status parse_real(const flag_value &flag, double low, double high, double &out) {
  if (!parse_whole(flag.text, out) || !std::isfinite(out))
    return not_a("a number", flag);
  if (out < low || out >= high)
    return bad_input(flag.name + " is " + flag.text + "; it has to be at least " + json_number(low) +
                     (std::isfinite(high) ? " and below " + json_number(high) : ""));
  return ok_status();
}

status parse_scale(const flag_value &flag, double &out) {
  WINDLASS_TRY(parse_real(flag, 0, infinite, out));
  return is_loss_scale(out) ? ok_status() : bad_input(flag.name + " is " + flag.text + "; it has to be a power of two");
}

std::vector<std::string> split_list(const std::string &text) {
  std::vector<std::string> out;
  for (std::size_t at = 0;;) {
    std::size_t comma = text.find(',', at);
    out.push_back(text.substr(at, comma == std::string::npos ? comma : comma - at));
    if (comma == std::string::npos)
      return out;
    at = comma + 1;
  }
}

template <class T> struct choice {
  const char *name;
  T value;
};
template <class T, std::size_t N> status parse_choice(const flag_value &flag, const choice<T> (&choices)[N], T &out) {
  std::string names;
  for (const choice<T> &c : choices) {
    if (flag.text == c.name) {
      out = c.value;
      return ok_status();
    }
    names += (names.empty() ? "" : "|") + std::string(c.name);
  }
  return usage(flag.name + " is " + quote(flag.text) + "; it has to be one of " + names);
}

/// Adds the files that a list with commas names. A name that is no file and has *, ? or [ is a pattern; its files come
/// in the order of their names.
status parse_files(const flag_value &flag, std::vector<std::string> &out) {
  for (const std::string &path : split_list(flag.text)) {
    if (path.empty())
      return usage(flag.name + " has an empty file name in " + quote(flag.text));
    if (path.find_first_of("*?[") == std::string::npos || ::access(path.c_str(), F_OK) == 0) {
      out.push_back(path);
      continue;
    }
    ::glob_t found = {};
    const int failed = ::glob(path.c_str(), 0, nullptr, &found);
    if (failed == 0)
      out.insert(out.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (failed != 0)
      return bad_input(flag.name + ": no file has a name like " + quote(path)).as(diagnostic::data_file);
  }
  return ok_status();
}

status parse_feeds(const flag_value &flag, options &out) {
  static constexpr choice<feed> feeds[] = {{"tokens", feed::tokens}, {"next", feed::next}};
  for (const std::string &item : split_list(flag.text)) {
    std::size_t sign = item.rfind('=');
    if (sign == std::string::npos || sign == 0)
      return usage(flag.name + " needs NAME=tokens|next, not " + quote(item));
    feed value = feed::none;
    WINDLASS_TRY(parse_choice({flag.name + " " + item.substr(0, sign), item.substr(sign + 1)}, feeds, value));
    for (const auto &[name, other] : out.inputs)
      if (name == item.substr(0, sign) && other != value)
        return bad_input(flag.name + " gives input " + quote(name) + " both as tokens and as next");
    out.inputs.emplace_back(item.substr(0, sign), value);
  }
  return ok_status();
}

status parse_normalization(const flag_value &flag, options &out) {
  const std::size_t sign = flag.text.rfind('='), colon = flag.text.rfind(':');
  if (sign == std::string::npos || sign == 0 || colon == std::string::npos || colon < sign)
    return usage(flag.name + " needs NAME=MEANS:DEVIATIONS, not " + quote(flag.text));
  normalization its = {flag.text.substr(0, sign), {}, {}};
  auto parse = [&](const std::string &list, double least, std::vector<float> &values) {
    for (const std::string &item : split_list(list)) {
      double value = 0;
      WINDLASS_TRY(parse_real({flag.name + " of " + quote(its.input), item}, least, infinite, value));
      values.push_back(static_cast<float>(value));
    }
    return ok_status();
  };
  WINDLASS_TRY(parse(flag.text.substr(sign + 1, colon - sign - 1), -infinite, its.means));
  WINDLASS_TRY(parse(flag.text.substr(colon + 1), std::numeric_limits<float>::min(), its.deviations));
  if (its.means.size() != its.deviations.size())
    return usage(flag.name + " gives " + count_of(static_cast<std::int64_t>(its.means.size()), "mean") + " and " +
                 count_of(static_cast<std::int64_t>(its.deviations.size()), "deviation") + " for " + quote(its.input));
  for (const normalization &other : out.normalize)
    if (other.input == its.input)
      return usage(flag.name + " names " + quote(its.input) + " twice");
  out.normalize.push_back(std::move(its));
  return ok_status();
}

constexpr std::int64_t many = std::int64_t(1) << 40;

struct option_row {
  const char *name;     ///< without dashes; one letter: a short flag
  const char *argument; ///< nullptr: takes none; "[...]": optional
  const char *help;
  status (*set)(options &, const flag_value &);
};

constexpr choice<lr_schedule> schedules[] = {
    {"constant", lr_schedule::constant}, {"linear", lr_schedule::linear}, {"cosine", lr_schedule::cosine}};
constexpr choice<communicator_kind> communicators[] = {
    {"mpi", communicator_kind::mpi}, {"tcp", communicator_kind::tcp}, {"local", communicator_kind::local}};
constexpr choice<nan_policy> nan_policies[] = {{"stop", nan_policy::stop}, {"skip", nan_policy::skip}};
constexpr choice<graph_policy> graph_policies[] = {
    {"auto", graph_policy::automatic}, {"on", graph_policy::on}, {"off", graph_policy::off}};
constexpr choice<progress_style> progress_styles[] = {{"auto", progress_style::automatic},
                                                      {"terminal", progress_style::renewed},
                                                      {"lines", progress_style::lines},
                                                      {"off", progress_style::off}};
constexpr choice<bool> inits[] = {{"file", false}, {"random", true}};
constexpr choice<bool> bindings[] = {{"share", true}, {"none", false}};
constexpr choice<detail::instruction_set> instruction_sets[] = {{"baseline", detail::instruction_set::baseline},
                                                                {"avx512", detail::instruction_set::avx512}};

const option_row rows[] =
    {
        {"o", "RUN", "folder that the run writes (default run)",
         [](options &o, const flag_value &f) {
           o.run = f.text;
           return f.text.empty() ? usage("-o needs a folder") : ok_status();
         }},
        {"data", "F", "training data; repeat it, or give a list with commas or a quoted pattern such as 'part-*.npz'",
         [](options &o, const flag_value &f) { return parse_files(f, o.data); }},
        {"bytes", nullptr, "data files are plain bytes, each byte a token",
         [](options &o, const flag_value &) { return o.bytes = true, ok_status(); }},
        {"inputs", "A=tokens,B=next", "which inputs get a window of tokens, which the tokens that follow",
         [](options &o, const flag_value &f) { return parse_feeds(f, o); }},
        {"normalize", "NAME=M,..:D,..",
         "samples of this input become (value - M) / D, with one M and D or those of each channel; repeat it for "
         "others",
         [](options &o, const flag_value &f) { return parse_normalization(f, o); }},
        {"steps", "N", "the run ends after step N, counted from its beginning (default 100)",
         [](options &o, const flag_value &f) { return parse_count(f, 0, many, o.steps); }},
        {"epochs", "E",
         "passes over the data; without --steps the run ends with them (default 1 for explicit batches, no end for "
         "tokens and samples)",
         [](options &o, const flag_value &f) { return parse_count(f, 1, many, o.epochs.emplace()); }},
        {"shuffle", nullptr,
         "explicit batches in another order each epoch, as windows of token files and samples always are",
         [](options &o, const flag_value &) { return o.shuffle = true, ok_status(); }},
        {"lr", "X", "learning rate (default 0.001)",
         [](options &o, const flag_value &f) { return parse_real(f, 0, infinite, o.lr); }},
        {"betas", "B1,B2", "AdamW, Adam, LAMB and Muon (default 0.9,0.999), Lion (default 0.9,0.99)",
         [](options &o, const flag_value &f) {
           std::vector<std::string> parts = split_list(f.text);
           if (parts.size() != 2)
             return not_a("two numbers B1,B2", f);
           beta_pair &betas = o.betas.emplace();
           WINDLASS_TRY(parse_real({f.name, parts[0]}, 0, 1, betas[0]));
           return parse_real({f.name, parts[1]}, 0, 1, betas[1]);
         }},
        {"eps", "X", "AdamW, Adam and Muon (default 1e-8), LAMB (default 1e-6), Adafactor (default 1e-3)",
         [](options &o, const flag_value &f) { return parse_real(f, 0, infinite, o.epsilon.emplace()); }},
        {"momentum", "X", "SGD (default 0), Muon (default 0.95)",
         [](options &o, const flag_value &f) { return parse_real(f, 0, 1, o.momentum.emplace()); }},
        {"weight-decay", "X", "(default 0.01 with AdamW and LAMB, 0.1 with Muon, 0 with the others)",
         [](options &o, const flag_value &f) { return parse_real(f, 0, infinite, o.weight_decay.emplace()); }},
        {"clip-norm", "V", "gradients are scaled down to this global norm (default 1, in programs compiled to clip)",
         [](options &o, const flag_value &f) {
           WINDLASS_TRY(parse_real(f, 0, infinite, o.clip_norm));
           return o.clip_norm > 0 ? ok_status() : bad_input("--clip-norm is 0; it has to be above 0");
         }},
        {"ema-decay", "X",
         "the share of its old value that the moving average of weights keeps (default 0.999, in programs that have "
         "one)",
         [](options &o, const flag_value &f) { return parse_real(f, 0, 1, o.ema_decay); }},
        {"loss-scale", "X", "f16: what the loss is multiplied with at the start, a power of two (default 65536)",
         [](options &o, const flag_value &f) { return parse_scale(f, o.scaling.initial); }},
        {"loss-scale-window", "N", "f16: updates in a row after which the loss scale doubles (default 1000)",
         [](options &o, const flag_value &f) { return parse_count(f, 1, many, o.scaling.window); }},
        {"loss-scale-hysteresis", "N",
         "f16: from the Nth overflow since it last doubled, each one halves it (default 2)",
         [](options &o, const flag_value &f) { return parse_count(f, 1, many, o.scaling.hysteresis); }},
        {"loss-scale-floor", "X", "f16: the run stops where the loss scale had to fall below it (default 1)",
         [](options &o, const flag_value &f) { return parse_scale(f, o.scaling.floor); }},
        {"lr-schedule", "constant|linear|cosine", "after the warm-up (default constant)",
         [](options &o, const flag_value &f) { return parse_choice(f, schedules, o.schedule); }},
        {"schedule-steps", "S", "the step at which linear and cosine reach 0 (default the last step)",
         [](options &o, const flag_value &f) { return parse_count(f, 1, many, o.schedule_steps.emplace()); }},
        {"warmup", "W", "steps in which the learning rate rises (default 0)",
         [](options &o, const flag_value &f) { return parse_count(f, 0, many, o.warmup); }},
        {"seed", "N", "of initial values and data order (default 0; after --resume the checkpoint's)",
         [](options &o, const flag_value &f) {
           return parse_whole(f.text, o.seed.emplace()) ? ok_status() : not_a("a natural number below 2^64", f);
         }},
        {"weights", "ROOT", "folder below which external initial values lie",
         [](options &o, const flag_value &f) { return o.weights = f.text, ok_status(); }},
        {"parameters", "F", "packed initial values (default params.safetensors beside the program or one folder up)",
         [](options &o, const flag_value &f) { return o.parameters = f.text, ok_status(); }},
        {"init", "file|random", "where initial values come from (default file)",
         [](options &o, const flag_value &f) { return parse_choice(f, inits, o.random_init); }},
        {"init-from", "F",
         "safetensors files, or the index of several, whose tensors are the values of the parameters with their names; "
         "repeat it or give a list with commas",
         [](options &o, const flag_value &f) { return parse_files(f, o.init_from); }},
        {"resume", "[DIR]", "continue from the checkpoint DIR (default the newest valid one of RUN)",
         [](options &o, const flag_value &f) {
           o.resumes = true;
           o.resume_from = f.text;
           return ok_status();
         }},
        {"checkpoint-every", "K", "steps between checkpoints; the last step always has one (default 0: only that)",
         [](options &o, const flag_value &f) { return parse_count(f, 0, many, o.checkpoint_every); }},
        {"checkpoint-initial", nullptr, "save step-000000 before the first step",
         [](options &o, const flag_value &) { return o.checkpoint_initial = true, ok_status(); }},
        {"no-checkpoint", nullptr, "save nothing, for runs that only measure",
         [](options &o, const flag_value &) { return o.no_checkpoint = true, ok_status(); }},
        {"async-save", nullptr,
         "write checkpoints while the next steps run, from a copy that each rank keeps in the host's memory",
         [](options &o, const flag_value &) { return o.async_save = true, ok_status(); }},
        {"disk", "FOLDER",
         "where each rank keeps what a plan with --offload disk has on the disk, in a file that has no name (default "
         ".)",
         [](options &o, const flag_value &f) { return o.disk = f.text, ok_status(); }},
        {"keep", "K", "keep the newest K checkpoints (default 0: all)",
         [](options &o, const flag_value &f) { return parse_count(f, 0, many, o.keep); }},
        {"eval-data", "F", "data that is evaluated and not trained on",
         [](options &o, const flag_value &f) { return parse_files(f, o.eval_data); }},
        {"eval-every", "K", "steps between evaluations (default 0: after the last step)",
         [](options &o, const flag_value &f) { return parse_count(f, 0, many, o.eval_every); }},
        {"eval-batches", "K", "micro-batches of an evaluation (default 10)",
         [](options &o, const flag_value &f) { return parse_count(f, 1, many, o.eval_batches); }},
        {"threads", "T", "of each rank (default the processors of this host divided by its ranks)",
         [](options &o, const flag_value &f) {
           std::int64_t value = 0;
           WINDLASS_TRY(parse_count(f, 1, 1024, value));
           o.threads = static_cast<std::int32_t>(value);
           return ok_status();
         }},
        {"bind", "share|none",
         "each process to its share of the processors that its host's ranks may use (default share, unless they are "
         "bound)",
         [](options &o, const flag_value &f) { return parse_choice(f, bindings, o.binds); }},
        {"instructions", "baseline|avx512",
         "the most that kernels may use, of what all hosts have; baseline is AVX2 on x86-64 (default avx512)",
         [](options &o, const flag_value &f) { return parse_choice(f, instruction_sets, o.instructions); }},
        {"communicator", "mpi|tcp|local",
         "processes or threads as ranks (default mpi under mpirun, tcp where RANK, WORLD_SIZE, MASTER_ADDR and "
         "MASTER_PORT are set as by torchrun, else local)",
         [](options &o, const flag_value &f) {
           return f.text == "nccl"
                      ? bad_input("--communicator nccl needs a program built for cuda; this one is for cpu")
                      : parse_choice(f, communicators, o.communicator);
         }},
        {"dump-gradients", "F", "write the first step's gradients, whole tensors, to a safetensors file",
         [](options &o, const flag_value &f) {
           o.dump_gradients = f.text;
           return f.text.empty() ? usage("--dump-gradients needs a file") : ok_status();
         }},
        {"predicted-seconds", "S", "of a step, as the plan's costs say: goes into the rows of metrics.jsonl",
         [](options &o, const flag_value &f) { return parse_real(f, 0, infinite, o.predicted_seconds.emplace()); }},
        {"model-name", "NAME", "what the run calls the model (default the name of its graph)",
         [](options &o, const flag_value &f) { return o.model_name = f.text, ok_status(); }},
        {"profile", nullptr,
         "write RUN/profile.json, seconds by kind of action, RUN/kernels.json, by kernel, and RUN/traces, the last "
         "step",
         [](options &o, const flag_value &) { return o.profile = true, ok_status(); }},
        {"on-nan", "stop|skip",
         "at a loss or gradient that is not finite: stop, or leave the update out (default stop)",
         [](options &o, const flag_value &f) { return parse_choice(f, nan_policies, o.on_nan); }},
        {"graphs", "auto|on|off",
         "GPUs: actions of a step run from recorded graphs; auto: on one rank, where that is measured to be faster "
         "(default auto)",
         [](options &o, const flag_value &f) { return parse_choice(f, graph_policies, o.graphs); }},
        {"progress", "auto|terminal|lines|off",
         "shown as a line that renews itself, or as lines (default auto: the former where standard error is a "
         "terminal)",
         [](options &o, const flag_value &f) { return parse_choice(f, progress_styles, o.progress); }},
        {"config", "F", "a JSON object that holds any of these settings; flags win",
         [](options &o, const flag_value &f) {
           o.config = f.text;
           return f.text.empty() ? usage("--config needs a file") : ok_status();
         }},
        {"json", nullptr, "the summary as one JSON object",
         [](options &o, const flag_value &) { return o.json = true, ok_status(); }},
        {"v", nullptr, "say more", [](options &o, const flag_value &) { return o.verbosity = 2, ok_status(); }},
        {"q", nullptr, "say only errors", [](options &o, const flag_value &) { return o.verbosity = 0, ok_status(); }},
        {"help", nullptr, "this text", [](options &o, const flag_value &) { return o.help = true, ok_status(); }},
        {"version", nullptr, "model and plan of this program",
         [](options &o, const flag_value &) { return o.version = true, ok_status(); }},
};

std::string dashed(const char *name) { return (name[1] == '\0' ? "-" : "--") + std::string(name); }

/// Settings that the emission fixed: the same value is accepted, any other named with the compiled-in one.
status check_compiled_in(const job &j, const flag_value &flag, bool &known) {
  known = true;
  std::string have;
  if (flag.name == "--micro-batches")
    have = std::to_string(j.micro_batches);
  else if (flag.name == "--average")
    have = averages_tokens(j) ? "tokens" : "micro-batches";
  else if (flag.name == "--optimizer")
    have = facts_of(j.kind).name;
  else if (flag.name == "-n")
    have = std::to_string(count_ranks(j));
  else if (flag.name == "--precision")
    have = j.precision;
  else
    known = false;
  if (!known || flag.text == have)
    return ok_status();
  return bad_input(flag.name + " is " + quote(flag.text) + ", but this program is compiled for '" + have +
                   "'; emit it again to change that")
      .as(diagnostic::contradiction);
}

constexpr const char *compiled_in_flags[] = {"--average", "--micro-batches", "--optimizer", "-n", "--precision"};
/// These are fixed as well, but not recorded in the program, so that no value can be compared.
constexpr const char *planner_flags[] = {"--accept-altered-parameters",
                                         "--bf16-gradients",
                                         "--cluster",
                                         "--costs",
                                         "--decay-scale",
                                         "--dim",
                                         "--freeze",
                                         "--loss",
                                         "--lr-scale",
                                         "--memory-limit",
                                         "--merge",
                                         "--no-decay",
                                         "--offload",
                                         "--onnx-pins",
                                         "--pin",
                                         "--plan",
                                         "--reserve",
                                         "--schedule",
                                         "--stages",
                                         "--strategy",
                                         "--strict",
                                         "--train"};

std::size_t edit_distance(const std::string &a, const std::string &b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t next = std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])});
      diagonal = row[j + 1];
      row[j + 1] = next;
    }
  }
  return row[b.size()];
}

status unknown_flag(const std::string &name) {
  std::string nearest;
  std::size_t best = std::string::npos;
  if (name.size() <= 64) {
    for (const option_row &row : rows)
      if (std::size_t distance = edit_distance(name, dashed(row.name)); distance < best)
        best = distance, nearest = dashed(row.name);
  }
  return usage("unknown flag " + quote(name) +
               (nearest.empty() ? "; see --help" : "; did you mean " + nearest + "? See --help"));
}

status lacks_average(const std::string &flag) {
  return bad_input(flag + " is given, but this program keeps no moving average of its weights; emit it with --ema")
      .as(diagnostic::contradiction);
}

} // namespace

/// The facts that the checks after the parsing ask about: flags that only some programs take, and --steps.
struct given_flags {
  bool clip_norm = false, ema_decay = false;
  bool steps = false;
  std::string loss_scale; ///< one of those of the loss scale
};

/// Reads a list of flags on top of what `out` holds.
static status parse_flags(const job &j, const std::vector<std::string> &args, options &out, given_flags &given) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    flag_value flag = {args[i], ""};
    if (flag.name.size() < 2 || flag.name[0] != '-')
      return usage("unexpected argument " + quote(flag.name) + "; see --help");
    std::size_t sign = flag.name.find('=');
    bool has_value = flag.name[1] == '-' && sign != std::string::npos;
    if (has_value) {
      flag.text = flag.name.substr(sign + 1);
      flag.name.resize(sign);
    }
    if (flag.name == "-h")
      flag.name = "--help";
    auto take_value = [&] {
      if (!has_value && i + 1 < args.size())
        flag.text = args[++i], has_value = true;
      return has_value ? ok_status() : usage(flag.name + " needs a value");
    };
    if (flag.name == "--clip") {
      if (!j.clips)
        return bad_input("--clip is given, but this program is compiled without clipping; emit it with --clip")
            .as(diagnostic::contradiction);
      continue;
    }
    if (flag.name == "--ema") {
      if (!keeps_ema(j))
        return lacks_average(flag.name);
      continue;
    }
    bool is_compiled_in = false;
    for (const char *name : compiled_in_flags)
      is_compiled_in |= flag.name == name;
    if (is_compiled_in) {
      WINDLASS_TRY(take_value());
      WINDLASS_TRY(check_compiled_in(j, flag, is_compiled_in));
      continue;
    }
    for (const char *name : planner_flags)
      if (flag.name == name)
        return bad_input(flag.name + " is fixed when a program is emitted; give it to windlass plan or emit")
            .as(diagnostic::contradiction);
    if (flag.name == "--hosts")
      return bad_input("--hosts is fixed when ranks are started; give it to run.sh, in front of all other flags")
          .as(diagnostic::contradiction);
    const option_row *found = std::find_if(std::begin(rows), std::end(rows),
                                           [&](const option_row &row) { return flag.name == dashed(row.name); });
    if (found == std::end(rows))
      return unknown_flag(flag.name);
    if (!found->argument) {
      if (has_value)
        return usage(flag.name + " takes no value, but " + quote(flag.text) + " is given");
    } else if (found->argument[0] == '[') {
      if (!has_value && i + 1 < args.size() && !args[i + 1].empty() && args[i + 1][0] != '-')
        flag.text = args[++i];
    } else {
      WINDLASS_TRY(take_value());
    }
    WINDLASS_TRY(found->set(out, flag));
    given.clip_norm |= flag.name == "--clip-norm";
    given.ema_decay |= flag.name == "--ema-decay";
    given.steps |= flag.name == "--steps";
    if (flag.name.compare(0, 12, "--loss-scale") == 0)
      given.loss_scale = flag.name;
    if (out.help || out.version)
      return ok_status();
  }
  return ok_status();
}

status parse_options(const job &j, int argc, const char *const *argv, options &out) {
  std::vector<std::string> args(argv + std::min(argc, 1), argv + argc), settings;
  given_flags given;
  options flags;
  WINDLASS_TRY(parse_flags(j, args, flags, given));
  if (!flags.config.empty() && !flags.help && !flags.version) {
    // The file's settings first, then the flags on top of them; a list given as a flag takes the place of the file's.
    out = options();
    WINDLASS_TRY(read_config(flags.config, settings).as(diagnostic::settings_file));
    if (status read = parse_flags(j, settings, out, given); !read.is_ok())
      return bad_input(quote(flags.config) + ": " + read.message())
          .as(read.kind() == diagnostic::contradiction ? read.kind() : diagnostic::settings_file);
    if (!flags.data.empty())
      out.data.clear();
    if (!flags.eval_data.empty())
      out.eval_data.clear();
    if (!flags.inputs.empty())
      out.inputs.clear();
    if (!flags.normalize.empty())
      out.normalize.clear();
    WINDLASS_TRY(parse_flags(j, args, out, given));
  } else {
    out = flags;
  }
  if (out.help || out.version)
    return ok_status();
  if (!given.loss_scale.empty() && !scales_loss(j))
    return bad_input(given.loss_scale + " is given, but this program computes in " + j.precision +
                     ", which needs no loss scale; emit it with --precision f16")
        .as(diagnostic::contradiction);
  if (out.scaling.initial < out.scaling.floor)
    return bad_input("--loss-scale is " + json_number(out.scaling.initial) + ", below --loss-scale-floor " +
                     json_number(out.scaling.floor));
  if (given.clip_norm && !j.clips)
    return bad_input("--clip-norm is given, but this program is compiled without clipping; emit it with --clip")
        .as(diagnostic::contradiction);
  if (given.ema_decay && !keeps_ema(j))
    return lacks_average("--ema-decay");
  out.ends_with_epochs = out.epochs && !given.steps;
  if (out.data.empty() && (out.steps > 0 || out.ends_with_epochs))
    return usage("--data is missing; give the training data");
  if (out.no_checkpoint && (out.checkpoint_every > 0 || out.checkpoint_initial))
    return usage(std::string(out.checkpoint_initial ? "--checkpoint-initial" : "--checkpoint-every") +
                 " saves checkpoints, --no-checkpoint saves none; give one of them");
  if (out.async_save && out.checkpoint_every == 0 && !out.checkpoint_initial)
    return usage("--async-save writes checkpoints while later steps run, but none is wanted then; give "
                 "--checkpoint-every");
  if (out.eval_every > 0 && out.eval_data.empty())
    return usage("--eval-every needs --eval-data");
  return ok_status();
}

communicator_kind communicator_of(const options &o) {
  if (o.communicator != communicator_kind::automatic)
    return o.communicator;
  if (is_started_by_mpi())
    return communicator_kind::mpi;
  // A container may have the variables of a job of one.
  const char *size = std::getenv("WORLD_SIZE");
  return is_started_by_variables() && std::string_view(size) != "1" ? communicator_kind::tcp : communicator_kind::local;
}

std::vector<program_flag> program_flags() {
  std::vector<program_flag> out;
  for (const option_row &row : rows)
    out.push_back({row.name, row.argument ? row.argument : "", row.help});
  return out;
}

status check_flag(const std::string &name, const std::string &text) {
  options scratch;
  for (const option_row &row : rows)
    if (name == row.name)
      return row.set(scratch, {dashed(row.name), text});
  return unknown_flag("--" + name);
}

std::vector<std::string> setting_names() {
  std::vector<std::string> out = {"average", "micro-batches", "optimizer", "n", "precision", "clip", "ema"};
  for (const option_row &row : rows)
    if (std::string name = row.name; name != "help" && name != "version" && name != "config")
      out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

std::string help_text(const job &j) {
  std::string out = "Trains " + (*j.model ? "the model " + quote(j.model) : std::string("a model")) +
                    " as planned.\n\nusage: train --data F [flags]\n\n";
  for (const option_row &row : rows) {
    std::string left = "  " + dashed(row.name) + (row.argument ? " " + std::string(row.argument) : "");
    out += left + std::string(left.size() < 32 ? 32 - left.size() : 1, ' ') + row.help + "\n";
  }
  out += "\nCompiled in: " + count_of(count_ranks(j), "rank") + ", --micro-batches " + std::to_string(j.micro_batches) +
         (j.merge > 1 ? ", --merge " + std::to_string(j.merge) : "") + ", --average " +
         (averages_tokens(j) ? "tokens" : "micro-batches") + ", --precision " + j.precision + ", --optimizer " +
         facts_of(j.kind).name + (j.clips ? ", clipping" : ", no clipping") +
         (keeps_ema(j) ? ", a moving average of weights" : "") + ".\n";
  out += "Exit codes: 0 done, 1 bad input, 2 usage, 6 training stopped, 7 interrupted and saved, 70 internal error.\n";
  return out;
}

} // namespace windlass::rt
