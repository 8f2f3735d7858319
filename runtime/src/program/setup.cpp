// The part of a run before its first step.
#include "trainer.h"

#include "windlass/rt/words.h"

#include "parameters.h"
#include "placement.h"
#include "signals.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace windlass::rt {

trainer::trainer(const program &p, const options &o, transport &world) : p_(p), o_(o), world_(world) {}

void trainer::say(std::string_view text) {
  log_.line(text);
  if (world_.rank() != 0 || o_.verbosity == 0)
    return;
  progress_.clear();
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

status trainer::together(const status &mine) {
  status first = ranks_.agree(mine);
  is_agreed_ |= !first.is_ok() && first.code() != status_code::stopped;
  return first;
}

/// Decides where the run starts: at its beginning, or at a checkpoint that rank 0 has verified.
status trainer::find_start() {
  status found;
  std::string text;
  if (world_.rank() == 0) {
    std::vector<checkpoint_listing> held;
    // Before anything in it is read; a folder that is still to be made is taken then.
    if (is_folder(o_.run))
      found = lock_.take(o_.run);
    if (found.is_ok())
      found = list_checkpoints(o_.run, held).as(diagnostic::checkpoint);
    if (found.is_ok() && o_.resumes) {
      checkpoint_manifest manifest;
      found = find_resume(o_.run, o_.resume_from, text, manifest, [&](const std::string &line) {
                say(line);
              }).as(diagnostic::checkpoint);
      std::error_code error;
      bool is_own = std::filesystem::equivalent(parent_path(text), join_path(o_.run, "checkpoints"), error);
      if (found.is_ok() && !is_own && !held.empty())
        found = bad_input("-o " + quote(o_.run) + " already holds checkpoints of another run than --resume " +
                          quote(text) + "; choose another folder")
                    .as(diagnostic::run_in_use);
    } else if (found.is_ok() && !held.empty()) {
      found = bad_input("-o " + quote(o_.run) + " already holds a checkpoint, " + quote(checkpoint_name(held[0].step)) +
                        "; continue it with --resume or choose another folder")
                  .as(diagnostic::run_in_use);
    }
  }
  WINDLASS_TRY(together(found));
  WINDLASS_TRY(ranks_.share(text));
  resume_folder_ = text;
  seed_ = o_.seed.value_or(0);
  if (scales_loss(p_))
    past_.scale = loss_scale::start(o_.scaling);
  if (resume_folder_.empty())
    return ok_status();
  status read = read_manifest(resume_folder_, resumed_);
  if (read.is_ok() && o_.seed.value_or(resumed_.seed) != resumed_.seed)
    read = bad_input("--seed is " + std::to_string(*o_.seed) + ", but checkpoint " + quote(resume_folder_) +
                     " was made with " + std::to_string(resumed_.seed));
  if (read.is_ok() && resumed_.step > o_.steps)
    read = bad_input("checkpoint " + quote(resume_folder_) + " is of step " + std::to_string(resumed_.step) +
                     ", but --steps is " + std::to_string(o_.steps) + "; it counts from the run's beginning");
  seed_ = resumed_.seed;
  start_step_ = resumed_.step;
  next_micro_batch_ = resumed_.next_micro_batch;
  past_.skipped = resumed_.skipped_updates;
  if (scales_loss(p_) && resumed_.scale)
    past_.scale = *resumed_.scale;
  return together(std::move(read).as(diagnostic::checkpoint));
}

status trainer::open_sources() {
  if (p_.data_axis >= 0) {
    groups_ = p_.axes[p_.data_axis].size;
    group_ = mesh_coordinates(p_.axes, world_.rank())[static_cast<std::size_t>(p_.data_axis)];
  }
  for (const stored_tensor &gradient : gradient_tensors(p_))
    gradient_elements_.push_back(stored_part(p_, gradient, world_.rank()).elements());
  for (const input_entry &input : p_.inputs)
    input_parts_.push_back(local_part(sizes_of(input.tensor), input.tensor.splits, p_.axes, world_.rank()));
  data_settings settings = {o_.data, o_.inputs, o_.bytes, true, seed_};
  std::int64_t steps = o_.steps - start_step_, count = 0;
  if (steps > 0) {
    WINDLASS_TRY(open_data(p_, settings, data_).as(diagnostic::data_file));
    if (__builtin_mul_overflow(steps, static_cast<std::int64_t>(p_.micro_batches), &count) ||
        __builtin_add_overflow(count, next_micro_batch_, &count))
      return bad_input("--steps " + std::to_string(o_.steps) + " is too large").as(diagnostic::usage);
    WINDLASS_TRY(data_->check(next_micro_batch_, count - next_micro_batch_).as(diagnostic::data_short));
  }
  if (!o_.eval_data.empty()) {
    if (!p_.evaluate)
      return bad_input("--eval-data is given, but this program is compiled without evaluation")
          .as(diagnostic::contradiction);
    settings.files = o_.eval_data;
    settings.shuffles = false;
    WINDLASS_TRY(open_data(p_, settings, eval_data_).as(diagnostic::data_file));
    if (eval_data_->micro_batches() < 1)
      return eval_data_->check(0, 1).as(diagnostic::data_short);
  }
  return ok_status();
}

/// Rank 0 makes the folders and cuts what lies after the start; then every rank opens its log.
status trainer::open_outputs() {
  status made;
  if (world_.rank() == 0) {
    made = make_folders(join_path(o_.run, "checkpoints"));
    if (made.is_ok())
      made = make_folders(join_path(o_.run, "logs"));
    if (made.is_ok())
      made = lock_.take(o_.run);
    if (made.is_ok())
      made = remove_partial_checkpoints(o_.run);
    if (made.is_ok())
      made = set_aside_later(o_.run, start_step_, [&](const std::string &line) { say(line); });
    if (made.is_ok())
      made = metrics_.open(o_.run, start_step_);
    if (made.is_ok())
      made = events_.open(o_.run, start_step_ + 1);
    record_ = {data_ ? data_->describe() : "", seed_, start_step_, threads_, std::time(nullptr), -1, {}, {}};
    record_.beside_arenas = reserve_of(p_, world_, threads_);
    summary_.reserve_bytes = record_.beside_arenas.total();
    if (made.is_ok())
      made = write_record(p_, o_, record_);
  }
  WINDLASS_TRY(together(std::move(made).as(diagnostic::output)));
  WINDLASS_TRY(together(log_.open(o_.run, world_.rank(), start_step_ > 0).as(diagnostic::output)));
  log_.line("rank " + std::to_string(world_.rank()) + " of " + std::to_string(world_.size()) + ", " +
            count_of(threads_, "thread") + " on processors " + describe_processors() + ", seed " +
            std::to_string(seed_) + ", model " + quote(p_.model));
  return ok_status();
}

status trainer::set_up() {
  WINDLASS_TRY(ranks_.create(world_));
  WINDLASS_TRY(take_place(ranks_, !world_.is_one_process(), o_, threads_));
  WINDLASS_TRY(together(check_program(p_)));
  WINDLASS_TRY(find_start());
  WINDLASS_TRY(together(open_sources()));
  // Not agreed on: the set-up inside makes communicators together, so an error on one rank leaves the others waiting.
  WINDLASS_TRY(context_.create(p_, world_, threads_));
  WINDLASS_TRY(together(graphs_.open(context_, p_, o_.graphs, o_.profile, world_)));
  for (std::size_t i = 0; i < input_parts_.size(); ++i) {
    const tensor_entry &input = p_.inputs[static_cast<std::int64_t>(i)].tensor;
    input_copies_.emplace_back(context_, input.offset, input_parts_[i].elements() * size_of(input.type));
  }
  parameter_settings settings = {o_.random_init, seed_, o_.weights, o_.parameters};
  WINDLASS_TRY(together(resume_folder_.empty()
                            ? load_parameters(p_, context_, settings).as(diagnostic::initial_values)
                            : load_checkpoint(p_, context_, resume_folder_, resumed_).as(diagnostic::checkpoint)));
  WINDLASS_TRY(open_outputs());
  if (!resume_folder_.empty())
    say("resuming from " + quote(resume_folder_) + " after step " + std::to_string(start_step_));
  if (data_) {
    log_.line("data: " + data_->describe());
    if (o_.verbosity > 1)
      say("data: " + data_->describe());
  }
  if constexpr (detail::backend_has_device) {
    if (p_.products.device != nullptr)
      say(detail::choose_products(context_.get_stream(0), p_.products));
    if (p_.attentions.choices.size > 0)
      say(detail::choose_attentions(context_.get_stream(0), p_.attentions));
  }
  if (p_.init)
    WINDLASS_TRY(p_.init(context_));
  return context_.synchronize();
}

} // namespace windlass::rt
