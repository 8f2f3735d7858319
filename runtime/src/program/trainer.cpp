#include "trainer.h"

#include "expand_actions.h"
#include "program_files.h"
#include "schedule.h"
#include "signals.h"
#include "timeline.h"

#include "windlass/rt/detail/half.h"
#include "windlass/rt/detail/machine_rates.h"
#include "windlass/rt/json.h"
#include "windlass/rt/words.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

namespace windlass::rt {

namespace {

/// Names of a step's action kinds in profiles, in the order of the enumeration; inputs and waiting follow.
constexpr const char *activity_names[] = {"repeat", "forward", "backward", "weight_gradient",
                                          "send",   "receive", "reduce",   "update",
                                          "inputs", "wait",    "save"};
constexpr std::size_t inputs_activity = 8, wait_activity = 9, save_activity = 10;

/// Returns whether `activity` occurs only in programs with several positions.
bool is_of_pipeline(std::size_t activity) {
  return activity == static_cast<std::size_t>(action_kind::send) ||
         activity == static_cast<std::size_t>(action_kind::receive) ||
         activity == static_cast<std::size_t>(action_kind::weight_gradient);
}

/// Adds the seconds of its life to a counter.
class stopwatch {
public:
  explicit stopwatch(double &sum) : sum_(sum), start_(clock_seconds()) {}
  ~stopwatch() { sum_ += clock_seconds() - start_; }

private:
  double &sum_;
  double start_;
};

/// Returns the tokens of one micro-batch: the elements of the first input that is integers of [batch, tokens].
double tokens_per_micro_batch(const job &j) {
  for (const input_entry &input : data_inputs(j))
    if (input.sizes.size == 2 && is_integer(input.type))
      return static_cast<double>(input.sizes[0]) * static_cast<double>(input.sizes[1]);
  return 0;
}

/// Returns the samples of one micro-batch: dim 0 of every input.
double samples_per_micro_batch(const job &j) {
  const span<input_entry> inputs = data_inputs(j);
  return inputs.size > 0 && inputs[0].sizes.size > 0 ? static_cast<double>(inputs[0].sizes[0]) : 0;
}

} // namespace

status trainer::write_inputs(data_source &from, const micro_batch_range &which, std::int32_t chunk, std::int32_t slot) {
  stopwatch watch(action_seconds_[inputs_activity]);
  for (local_input &each : inputs_)
    if (each.chunk() == chunk)
      WINDLASS_TRY(each.write(from, start_.seed, which, slot));
  return ok_status();
}

void trainer::read_ahead() {
  stopwatch watch(action_seconds_[inputs_activity]);
  for (local_input &each : inputs_) {
    const auto forward = std::find_if(p_.actions.begin(), p_.actions.end(), [&](const action &what) {
      return what.kind == action_kind::forward && what.chunk == each.chunk();
    });
    if (forward != p_.actions.end())
      each.read_ahead(*sources_.data, start_.seed,
                      find_micro_batch(next_micro_batch_ + j_.micro_batches, forward->micro_batch));
  }
}

micro_batch_range trainer::find_micro_batch(std::int64_t first, std::int64_t number) const {
  return {first + (number * groups_ + group_) * j_.merge};
}

status trainer::read_loss(float &loss) {
  loss = 0;
  if (!p_.loss.is_absent())
    WINDLASS_TRY(read_scalar(context_, p_.loss, loss));
  if (j_.positions.size == 1)
    return ok_status();
  span<float> all;
  WINDLASS_TRY(ranks_.gather(loss, all));
  for (const position_entry &position : j_.positions)
    if (!position.runs->loss.is_absent())
      loss = all[position.first_rank];
  return ok_status();
}

status trainer::find_bad_gradient(bool &is_bad) {
  float loss = 0;
  if (!p_.loss.is_absent())
    WINDLASS_TRY(read_scalar(context_, p_.loss, loss));
  is_bad = !std::isfinite(loss);
  double sum = 0; // infinite or NaN as soon as one gradient is
  const auto add_squares = [&](const auto *values, std::int64_t n) {
    for (std::int64_t i = 0; i < n && !is_bad; ++i) {
      const double value = static_cast<float>(values[i]);
      sum += value * value;
    }
  };
  for (std::int64_t g = 0; g < p_.gradients.size; ++g) {
    const std::int64_t n = gradient_elements_[static_cast<std::size_t>(g)];
    const gradient_entry &row = p_.gradients[g];
    host_copy gradient(context_, row.at, n * size_of(row.type));
    WINDLASS_TRY(gradient.load());
    if (row.type == element_type::bf16)
      add_squares(gradient.as<const detail::bf16>(), n);
    else
      add_squares(gradient.as<const float>(), n);
  }
  span<double> sums;
  WINDLASS_TRY(ranks_.gather(is_bad ? std::numeric_limits<double>::infinity() : sum, sums));
  double total = 0;
  for (double s : sums)
    total += s;
  // The program computes the norm in f32, where it overflows first.
  is_bad = !(total <= static_cast<double>(std::numeric_limits<float>::max()));
  return ok_status();
}

status trainer::before_update() {
  // Updates of a scaled loss find overflows on the device.
  const bool looks = o_.on_nan == nan_policy::skip && !scales_loss(j_);
  if (!dumps_ && !looks)
    return ok_status();
  WINDLASS_TRY(context_.synchronize());
  if (dumps_) {
    dumps_ = false;
    const float factor = static_cast<float>(1 / past_.scale.value);
    WINDLASS_TRY(
        agreed(dump_tensors(context_, ranks_, gradient_tensors(j_), factor, o_.dump_gradients).as(diagnostic::output)));
  }
  return looks ? find_bad_gradient(skips_update_) : ok_status();
}

status trainer::run_action(const action &what, std::int64_t micro_batch) {
  if (what.kind == action_kind::forward)
    WINDLASS_TRY(write_inputs(*sources_.data, find_micro_batch(next_micro_batch_, micro_batch), what.chunk, what.slot));
  if (what.kind == action_kind::update) {
    if (!std::exchange(is_reduced_, true))
      WINDLASS_TRY(before_update());
    if (skips_update_)
      return ok_status();
  }
  stopwatch watch(action_seconds_[static_cast<std::size_t>(what.kind)]);
  const detail::named_range range(activity_names[static_cast<std::size_t>(what.kind)]);
  status result =
      what.kind == action_kind::send || what.kind == action_kind::receive ? messages_.move(what) : compute(what);
  // A profile charges each action with what it started.
  if (o_.profile && !is_traced_ && result.is_ok())
    result = context_.synchronize();
  return result;
}

status trainer::compute(const action &what) {
  if (is_traced_)
    traced_.push_back(&what);
  const bool reads_messages = what.kind == action_kind::forward || what.kind == action_kind::backward;
  const bool has_slot = reads_messages || what.kind == action_kind::weight_gradient;
  const bool adds = !what.is_first;
  const chunk_entry &chunk = *find_chunk(p_, what.chunk);
  if (reads_messages)
    WINDLASS_TRY(messages_.begin(what));
  WINDLASS_TRY(graphs_.run(what, [&]() -> status {
    switch (what.kind) {
    case action_kind::forward:
      return chunk.forward(context_, adds, what.slot);
    case action_kind::backward:
      return chunk.backward(context_, adds, what.slot, what.handed_slot, what.is_last);
    case action_kind::weight_gradient:
      return chunk.weight_gradient(context_, adds, what.slot, what.handed_slot, what.is_last);
    case action_kind::reduce:
      return chunk.reduce(context_);
    default:
      return chunk.update(context_);
    }
  }));
  return has_slot ? messages_.end(what) : ok_status();
}

status trainer::run_evaluation() {
  for (const action &what : p_.evaluation) {
    if (what.kind != action_kind::evaluate) {
      WINDLASS_TRY(messages_.move(what));
      continue;
    }
    WINDLASS_TRY(messages_.begin(what));
    WINDLASS_TRY(find_chunk(p_, what.chunk)->evaluate(context_));
    WINDLASS_TRY(messages_.end(what));
  }
  return context_.synchronize();
}

status trainer::run_actions() {
  return expand_actions(p_.actions, [&](const action &what, std::int32_t turn) {
    return run_action(what, what.micro_batch + static_cast<std::int64_t>(turn) * what.per_turn);
  });
}

status trainer::count_labels(std::int64_t &all) {
  if (!averages_tokens(j_))
    return ok_status();
  stopwatch watch(action_seconds_[inputs_activity]);
  std::int64_t mine = 0;
  for (std::int64_t k = group_; k < j_.micro_batches; k += groups_) {
    std::int64_t labels;
    WINDLASS_TRY(labels_->count(*sources_.data, next_micro_batch_ + k, labels));
    mine += labels;
  }
  span<std::int64_t> counts;
  WINDLASS_TRY(ranks_.gather(mine, counts));
  all = 0;
  for (std::int64_t count : counts)
    all += count;
  // All members of a replica have counted the same labels.
  all /= counts.size / groups_;
  return ok_status();
}

status trainer::step(std::int64_t s, step_metrics &row) {
  const detail::named_range range("step");
  double start = clock_seconds();
  skips_update_ = is_reduced_ = false;
  std::int64_t labels = 0;
  WINDLASS_TRY(count_labels(labels));
  graphs_.take_sent(); // of evaluation, before the step
  graphs_.begin_step();
  for (std::int64_t i = 0; i < p_.scalars.size; ++i)
    scalars_.set(i, static_cast<float>(scalar_value(j_, o_, p_.scalars[i].kind, s, past_, labels)));
  WINDLASS_TRY(scalars_.write());
  WINDLASS_TRY(run_actions());
  if (s + 1 < o_.steps)
    read_ahead();
  {
    stopwatch watch(action_seconds_[wait_activity]);
    WINDLASS_TRY(context_.synchronize());
  }
  next_micro_batch_ += j_.micro_batches;
  row.step = s + 1;
  WINDLASS_TRY(read_loss(row.loss));
  row.has_grad_norm = !skips_update_;
  row.grad_norm = 0;
  if (!skips_update_)
    WINDLASS_TRY(read_scalar(context_, p_.grad_norm, row.grad_norm));
  if (scales_loss(j_)) {
    row.loss_scale = past_.scale.value;
    skips_update_ = !std::isfinite(row.grad_norm);
    row.has_grad_norm = !skips_update_;
  }
  row.lr = learning_rate(o_, s);
  row.seconds = clock_seconds() - start;
  row.sent = graphs_.take_sent();
  row.samples = samples_per_micro_batch(j_) * j_.micro_batches;
  row.tokens = tokens_per_micro_batch(j_) * j_.micro_batches;
  return ok_status();
}

status trainer::after_step(std::int64_t s, const step_metrics &row, bool &stops) {
  const bool is_bad = !std::isfinite(row.loss) || (row.has_grad_norm && !std::isfinite(row.grad_norm));
  const bool is_saving = async_save_ && async_save_->is_running();
  span<std::int32_t> flags;
  WINDLASS_TRY(ranks_.gather(
      (requested_stop() != 0 ? 1 : 0) | (is_bad ? 2 : 0) | (is_saving && !async_save_->is_written() ? 4 : 0), flags));
  std::int32_t all = 0;
  for (std::int32_t flag : flags)
    all |= flag;
  stops = (all & 1) != 0;
  if (is_saving && (all & 4) == 0)
    WINDLASS_TRY(finish_save());
  auto stop = [&](const std::string &why) {
    is_agreed_ = true;
    return status(status_code::stopped, "step " + std::to_string(s + 1) + " gave " + why).as(diagnostic::not_finite);
  };
  // No text before it is wanted: a step allocates nothing.
  constexpr const char *advice = "; lower --lr, or leave such steps out with --on-nan skip";
  if ((all & 2) != 0 && !skips_update_)
    return stop("loss " + std::to_string(row.loss) + " and gradient norm " + std::to_string(row.grad_norm) + advice);
  // A loss that is not finite is not its scale's doing.
  const bool is_loss_finite = (all & 2) == 0;
  if (scales_loss(j_) && !is_loss_finite && o_.on_nan == nan_policy::stop)
    return stop("loss " + std::to_string(row.loss) + advice);
  summary_.skipped_updates += skips_update_;
  past_.skipped += skips_update_;
  const double scale = past_.scale.value;
  if (scales_loss(j_) && is_loss_finite && !past_.scale.advance(!skips_update_, o_.scaling))
    return stop("a gradient that is not finite with the loss scale " + json_number(scale) +
                ", which --loss-scale-floor " + json_number(o_.scaling.floor) +
                " does not let fall; lower --lr, or train with --precision bf16");
  if (skips_update_)
    say("step " + std::to_string(s + 1) + " left its update out: its loss is " + std::to_string(row.loss) +
        (std::isfinite(row.loss) ? ", its gradient is not finite" : "") +
        (scale != past_.scale.value ? "; the loss scale is now " + json_number(past_.scale.value) : ""));
  return ok_status();
}

status trainer::evaluate(std::int64_t step) {
  if (!sources_.eval_data || evaluated_step_ == step)
    return ok_status();
  evaluated_step_ = step;
  std::int64_t count = std::min(o_.eval_batches, sources_.eval_data->micro_batches());
  struct partial {
    double loss = 0, weight = 0;
  } mine;
  for (std::int64_t first = 0; first < count; first += groups_ * j_.merge) {
    // Every replica takes part in every evaluation, because evaluation may communicate; surplus micro-batches have no
    // weight.
    const micro_batch_range which = {first + group_ * j_.merge, count};
    for (const chunk_entry &chunk : p_.chunks)
      WINDLASS_TRY(write_inputs(*sources_.eval_data, which, chunk.chunk, 0));
    WINDLASS_TRY(run_evaluation());
    const std::int64_t end = p_.evaluated.is_absent() ? 0 : std::min(which.first + j_.merge, count);
    for (std::int64_t k = which.first; k < end; ++k) {
      float loss;
      std::int64_t weight;
      const place its = {p_.evaluated.arena, p_.evaluated.offset + (k - which.first) * 4};
      WINDLASS_TRY(read_scalar(context_, its, loss));
      WINDLASS_TRY(labels_->count(*sources_.eval_data, k, weight));
      // The mean over no labels is NaN, and its weight is 0.
      if (weight > 0)
        mine.loss += loss * static_cast<double>(weight);
      mine.weight += static_cast<double>(weight);
    }
  }
  span<partial> all;
  WINDLASS_TRY(ranks_.gather(mine, all));
  partial sum;
  for (const partial &one : all)
    sum.loss += one.loss, sum.weight += one.weight;
  summary_.eval_loss = sum.loss / sum.weight;
  summary_.has_eval = true;
  status written;
  if (context_.rank() == 0) {
    written = metrics_.add_evaluation(step, summary_.eval_loss, count);
    if (written.is_ok())
      written = events_.add(step, {{"eval_loss", static_cast<float>(summary_.eval_loss)}});
    if (o_.verbosity > 1)
      say((line_.start() << "step " << step << " eval_loss " << short_loss(summary_.eval_loss)).text());
  }
  return together(std::move(written).as(diagnostic::output));
}

status trainer::save(std::int64_t step, bool waits) {
  if (saved_step_ == step || o_.no_checkpoint)
    return ok_status();
  WINDLASS_TRY(finish_save()); // of an earlier step
  stopwatch watch(action_seconds_[save_activity]);
  const save_point at = {step, next_micro_batch_, start_.seed, start_.shuffles, past_};
  const bool is_started = async_save_ && !waits;
  WINDLASS_TRY(agreed((is_started ? async_save_->start(at) : save_checkpoint(j_, context_, ranks_, o_.run, at))
                          .as(diagnostic::output)));
  saved_step_ = step;
  return is_started ? ok_status() : note_checkpoint(step);
}

status trainer::finish_save() {
  if (!async_save_ || !async_save_->is_running())
    return ok_status();
  stopwatch watch(action_seconds_[save_activity]);
  WINDLASS_TRY(agreed(async_save_->finish().as(diagnostic::output)));
  return note_checkpoint(async_save_->step());
}

status trainer::note_checkpoint(std::int64_t step) {
  summary_.checkpoint = join_path(join_path(o_.run, "checkpoints"), checkpoint_name(step));
  log_.line("saved " + summary_.checkpoint);
  return together(context_.rank() == 0 && o_.keep > 0 ? prune_checkpoints(o_.run, o_.keep) : ok_status());
}

status trainer::run() {
  status result = train();
  // A checkpoint that was started before an error which all ranks know is as good as any.
  if (!result.is_ok() && is_agreed_)
    static_cast<void>(finish_save().is_ok());
  if (result.kind() == diagnostic::rank_lost)
    return status(result.code(), result.message() + "; " + describe_way_on(o_.run)).as(diagnostic::rank_lost);
  return result;
}

status trainer::train() {
  WINDLASS_TRY(set_up());
  summary_.first_step = summary_.last_step = start_.step;
  dumps_ = !o_.dump_gradients.empty();
  saved_step_ = start_.folder.empty() ? -1 : start_.step;
  summary_.checkpoint = start_.folder;
  // With -v each step says more than that.
  progress_.open(context_.rank() == 0 && o_.verbosity == 1 ? o_.progress : progress_style::off, o_.steps);
  if (start_.folder.empty() && (o_.checkpoint_initial || o_.steps == 0))
    WINDLASS_TRY(save(0, o_.steps == 0));
  if (start_.step == o_.steps)
    WINDLASS_TRY(evaluate(start_.step));
  bool stops = false;
  for (std::int64_t s = start_.step; s < o_.steps && !stops; ++s) {
    step_metrics row;
    row.precision = j_.precision;
    row.predicted_seconds = o_.predicted_seconds.value_or(NAN);
    // The first step of several warms the caches up and is left out of the kernels' times.
    const bool is_profiled = o_.profile && (s > start_.step || s + 1 == o_.steps);
    is_traced_ = o_.profile && s + 1 == o_.steps;
    count_kernels(is_profiled, is_traced_);
    WINDLASS_TRY(step(s, row));
    count_kernels(false);
    std::string chosen;
    WINDLASS_TRY(graphs_.end_step(ranks_, row.seconds, chosen));
    if (!chosen.empty())
      say(chosen);
    kernels_.steps += is_profiled;
    kernels_.step_seconds += is_profiled ? row.seconds : 0;
    status written;
    if (context_.rank() == 0) {
      written = metrics_.add(row);
      const named_value loss = {"loss", row.loss}, lr = {"lr", static_cast<float>(row.lr)};
      if (written.is_ok())
        written = row.has_grad_norm ? events_.add(row.step, {loss, lr, {"grad_norm", row.grad_norm}})
                                    : events_.add(row.step, {loss, lr});
      progress_.show(row, clock_seconds());
      if (o_.verbosity > 1)
        say((line_.start() << "step " << row.step << " loss " << short_loss(row.loss) << " grad_norm " << row.grad_norm
                           << " lr " << row.lr)
                .text());
    }
    log_.line((line_.start() << "step " << row.step << " loss " << row.loss << " grad_norm " << row.grad_norm
                             << " seconds " << row.seconds)
                  .text());
    // Only rank 0 writes rows; a full disk there ends the run on all ranks by the abort of its error.
    WINDLASS_TRY(std::move(written).as(diagnostic::output));
    if (!summary_.has_loss)
      summary_.first_loss = row.loss;
    summary_.has_loss = true;
    summary_.last_loss = row.loss;
    summary_.last_step = s + 1;
    summary_.seconds += row.seconds;
    summary_.samples += row.samples;
    summary_.tokens += row.tokens;
    WINDLASS_TRY(after_step(s, row, stops));
    bool is_last = s + 1 == o_.steps;
    if (is_last || (o_.eval_every > 0 && (s + 1) % o_.eval_every == 0))
      if (!stops || is_last)
        WINDLASS_TRY(evaluate(s + 1));
    if (is_last || stops || (o_.checkpoint_every > 0 && (s + 1) % o_.checkpoint_every == 0))
      WINDLASS_TRY(save(s + 1, is_last || stops));
  }
  WINDLASS_TRY(finish());
  if (stops && summary_.last_step < o_.steps) {
    is_agreed_ = true;
    return {status_code::interrupted, "interrupted after step " + std::to_string(summary_.last_step) + "; saved " +
                                          (o_.no_checkpoint ? "nothing, as --no-checkpoint says"
                                                            : quote(summary_.checkpoint) + ", continue with --resume")};
  }
  return ok_status();
}

status trainer::finish() {
  progress_.clear();
  span<rank_facts> ranks;
  WINDLASS_TRY(ranks_.gather(describe_rank(), ranks));
  record_.ranks.assign(ranks.begin(), ranks.end());
  for (const rank_facts &rank : record_.ranks)
    summary_.peak_bytes = std::max(summary_.peak_bytes, rank.peak_bytes);
  log_.line("done after step " + std::to_string(summary_.last_step));
  if constexpr (detail::backend_has_device)
    log_.line(detail::describe_products(context_.compute()));
  record_.last_step = summary_.last_step;
  WINDLASS_TRY(together(context_.rank() == 0 ? write_record(j_, o_, record_).as(diagnostic::output) : ok_status()));
  return o_.profile ? write_profile() : ok_status();
}

void trainer::count_kernels(bool on, bool keeps) {
  kernel_times_.resize(static_cast<std::size_t>(p_.streams.size));
  if (on) // what a device has measured is read when it ends
    for (kernel_times &times : kernel_times_)
      times.keep_commands(keeps);
  for (std::int32_t i = 0; i < p_.streams.size; ++i)
    context_.get_stream(i).count_times(on ? &kernel_times_[static_cast<std::size_t>(i)] : nullptr);
}

std::int32_t trainer::count_function_streams() const {
  return static_cast<std::int32_t>(std::count_if(
      p_.streams.begin(), p_.streams.end(), [](const stream_entry &row) { return row.kind != stream_kind::peer; }));
}

status trainer::name_operators(operator_names &names, std::vector<std::vector<std::string_view>> &out) const {
  constexpr std::int64_t max_bytes = 1 << 28;
  std::string path, text;
  WINDLASS_TRY(find_program_file("operators.json", path));
  WINDLASS_TRY(read_text(path, max_bytes, text));
  WINDLASS_TRY(names.read(text, position_of(j_, context_.rank()), count_function_streams()));
  for (std::size_t i = 0; i < kernel_times_.size(); ++i) {
    if (p_.streams[static_cast<std::int64_t>(i)].kind == stream_kind::peer) {
      out.emplace_back(); // messages are of no operator
      continue;
    }
    std::vector<std::string_view> of = names.of(i, traced_);
    if (const std::size_t ran = kernel_times_[i].commands().size(); ran != of.size())
      return bad_input(quote(path) + " names the operators of " +
                       count_of(static_cast<std::int64_t>(of.size()), "command") + ", " + std::to_string(ran) + " ran");
    out.push_back(std::move(of));
  }
  return ok_status();
}

status trainer::write_profile() {
  static_assert(std::size(activity_names) == activities);
  // All ranks measure at once, as they compute.
  kernels_.peak_rate = detail::multiply_add_rate(threads_, false, 10);
  kernels_.flops_rate = detail::multiply_add_rate(threads_, true, 10);
  kernels_.bytes_rate = detail::memory_rate(threads_, 3);
  struct seconds {
    double of[activities];
  } mine;
  std::copy(std::begin(action_seconds_), std::end(action_seconds_), mine.of);
  span<seconds> all;
  WINDLASS_TRY(ranks_.gather(mine, all));
  operator_names names;
  std::vector<std::vector<std::string_view>> operators;
  if (status named = name_operators(names, operators); !named.is_ok()) {
    operators.clear();
    say("the timeline has no names of operators: " + named.message());
  }
  operators.resize(kernel_times_.size());
  folder traces;
  status traced = traces.open(o_.run);
  if (traced.is_ok())
    traced = traces.make("traces", traces);
  if (traced.is_ok())
    traced = replace_file(traces, timeline_name(context_.rank()),
                          timeline_text(context_.rank(), p_.streams, kernel_times_, operators));
  WINDLASS_TRY(together(std::move(traced).as(diagnostic::output)));
  if (context_.rank() != 0)
    return together(ok_status());
  std::string text = "{\n \"steps\": " + std::to_string(summary_.last_step - summary_.first_step) +
                     ",\n \"step_seconds\": " + json_number(summary_.seconds) + ",\n \"ranks\": [";
  for (std::int64_t rank = 0; rank < all.size; ++rank) {
    text += rank ? ",\n  {" : "\n  {";
    for (std::size_t i = 1; i < activities; ++i)
      if (j_.positions.size > 1 || !is_of_pipeline(i))
        text += std::string(i > 1 ? ", " : "") + "\"" + activity_names[i] + "\": " + json_number(all[rank].of[i]);
    text += "}";
  }
  status written = replace_file(join_path(o_.run, "profile.json"), text + "]\n}\n");
  for (const kernel_times &times : kernel_times_)
    kernels_.times.add(times);
  if (written.is_ok())
    written = replace_file(join_path(o_.run, "kernels.json"), kernels_.json());
  if (written.is_ok() && o_.verbosity > 0)
    say(kernels_.table());
  return together(std::move(written).as(diagnostic::output));
}

} // namespace windlass::rt
