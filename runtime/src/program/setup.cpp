// The part of a run before its first step.
#include "trainer.h"

#include "windlass/rt/file.h"
#include "windlass/rt/words.h"

#include "check_job.h"
#include "parameters.h"
#include "placement.h"
#include "signals.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

namespace windlass::rt {

namespace {

/// Fails where `run` is not the folder that rank 0 has written run.json into, as where each host has a disk of its own:
/// checkpoints would lack this rank's part.
status check_is_shared(control &ranks, const transport &world, const std::string &run) {
  if (world.is_one_host())
    return ok_status();
  constexpr std::int64_t most_bytes = 16 << 20;
  constexpr int most_looks = 100;
  const std::string path = join_path(run, "run.json");
  std::string written, seen;
  status read;
  if (world.rank() == 0)
    read = read_text(path, most_bytes, written);
  WINDLASS_TRY(ranks.agree(read));
  WINDLASS_TRY(ranks.share(written));
  // Network file systems may show a new file a few seconds late.
  for (int look = 0; look < most_looks; ++look) {
    if (read_text(path, most_bytes, seen).is_ok() && seen == written)
      return ok_status();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return bad_input("-o " + quote(run) + " on the host " + quote(describe_rank().host) +
                   " is not the folder that rank 0 writes; name one that all hosts share, such as one on NFS");
}

} // namespace

trainer::trainer(const job &j, const options &o, transport &world)
    : j_(j), its_(j, world.rank()), p_(its_.p), o_(o), world_(world) {}

void trainer::say(std::string_view text) {
  log_.line(text);
  if (world_.rank() != 0 || o_.verbosity == 0)
    return;
  progress_.clear();
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

status trainer::together(const status &mine) { return agreed(ranks_.agree(mine)); }

status trainer::agreed(status all) {
  is_agreed_ |= !all.is_ok() && all.code() != status_code::stopped;
  return all;
}

/// Decides where the run starts: at its beginning, or at a checkpoint that rank 0 has verified.
status trainer::find_start() {
  status found;
  std::string folder;
  if (world_.rank() == 0) {
    found = check_outputs(o_);
    // The lock is taken before anything in the folder is read; a folder that is still to be made is locked when it is
    // made.
    if (found.is_ok() && is_folder(o_.run))
      found = lock_.take(o_.run);
    if (found.is_ok())
      found = find_checkpoint(o_, folder, [&](const std::string &line) { say(line); });
  }
  WINDLASS_TRY(together(found));
  WINDLASS_TRY(ranks_.share(folder));
  // Threads share what one of them has read.
  std::shared_ptr<resumed_checkpoint> resumed;
  const bool reads = !world_.is_one_process() || world_.rank() == 0;
  WINDLASS_TRY(together(reads ? open_resumed(folder, resumed).as(diagnostic::checkpoint) : ok_status()));
  if (world_.is_one_process()) {
    span<const std::shared_ptr<resumed_checkpoint> *> all;
    WINDLASS_TRY(ranks_.gather(static_cast<const std::shared_ptr<resumed_checkpoint> *>(&resumed), all));
    if (world_.rank() != 0)
      resumed = *all[0];
    WINDLASS_TRY(ranks_.barrier()); // before rank 0 may let go of it
  }
  WINDLASS_TRY(together(choose_start(o_, resumed, start_).as(diagnostic::checkpoint)));
  next_micro_batch_ = start_.next_micro_batch;
  if (scales_loss(j_))
    past_.scale = loss_scale::start(o_.scaling);
  if (!resumed)
    return ok_status();
  past_.skipped = resumed->manifest.skipped_updates;
  if (scales_loss(j_) && resumed->manifest.scale)
    past_.scale = *resumed->manifest.scale;
  return ok_status();
}

status trainer::open_data() {
  groups_ = count_replicas(its_.position.axes);
  group_ = replica_of(its_.position.axes, its_.number);
  for (const gradient_entry &row : p_.gradients)
    gradient_elements_.push_back(
        local_part(sizes_of(j_.parameters[row.parameter].sizes), row.splits, its_.position.axes, its_.number)
            .elements());
  for (const input_placement &row : p_.inputs)
    inputs_.emplace_back(
        j_, row, local_part(merged_sizes(j_, j_.inputs[row.input]), row.splits, its_.position.axes, its_.number));
  labels_.emplace(j_);
  WINDLASS_TRY(open_sources(j_, o_, start_, sources_));
  o_.steps = sources_.steps;
  return ok_status();
}

status trainer::open_inputs() {
  for (local_input &each : inputs_)
    WINDLASS_TRY(each.open(context_, find_chunk(p_, each.chunk())->slots, threads_));
  return scalars_.open(context_, p_.scalars, threads_);
}

/// Rank 0 makes the folders and cuts what lies after the start; then every rank opens its log.
status trainer::open_outputs() {
  status made;
  if (world_.rank() == 0) {
    folder run, inner;
    made = run.make(o_.run);
    if (made.is_ok())
      made = lock_.take(o_.run);
    for (const char *name : {"checkpoints", "logs"})
      if (made.is_ok())
        made = run.make(name, inner);
    if (made.is_ok())
      made = run.remove_temporaries();
    if (made.is_ok())
      made = sweep_checkpoints(o_.run);
    if (made.is_ok())
      made = set_aside_later(o_.run, start_.step, [&](const std::string &line) { say(line); });
    if (made.is_ok())
      made = metrics_.open(o_.run, start_.step);
    if (made.is_ok())
      made = events_.open(o_.run, start_.step + 1);
    record_ = {sources_.data ? sources_.data->describe() : "",
               start_.seed,
               start_.step,
               threads_,
               std::time(nullptr),
               -1,
               {},
               {}};
    record_.beside_arenas = reserve_of(j_, position_of(j_, its_.rank), world_, threads_);
    summary_.reserve_bytes = record_.beside_arenas.total();
    if (made.is_ok())
      made = write_record(j_, o_, record_);
    if (made.is_ok())
      made = keep_memory_file(o_.run);
  }
  WINDLASS_TRY(together(std::move(made).as(diagnostic::output)));
  WINDLASS_TRY(together(check_is_shared(ranks_, world_, o_.run).as(diagnostic::output)));
  WINDLASS_TRY(together(log_.open(o_.run, world_.rank(), start_.step > 0).as(diagnostic::output)));
  log_.line("rank " + std::to_string(world_.rank()) + " of " + std::to_string(world_.size()) + ", " +
            count_of(threads_, "thread") + " on processors " + describe_processors() + ", seed " +
            std::to_string(start_.seed) + ", model " + quote(j_.model));
  return ok_status();
}

status trainer::set_up() {
  WINDLASS_TRY(ranks_.create(world_));
  WINDLASS_TRY(take_place(ranks_, !world_.is_one_process(), o_, threads_));
  WINDLASS_TRY(together(check_job(j_)));
  WINDLASS_TRY(together(check_checkpoints(j_, world_.rank()).as(diagnostic::checkpoint)));
  WINDLASS_TRY(find_start());
  WINDLASS_TRY(together(open_data()));
  // Errors are not agreed on here: the set-up inside makes communicators together, so an error on one rank leaves the
  // others waiting.
  WINDLASS_TRY(context_.create(j_, world_, threads_, o_.disk));
  if constexpr (detail::backend_has_device)
    if (p_.attentions.size > 0) { // before anything lies in the arena
      arena &memory = context_.get_arena(0);
      say(detail::choose_attentions(context_.compute(), p_.attentions, memory.at(0), memory.size()));
    }
  WINDLASS_TRY(together(graphs_.open(context_, p_, o_.graphs, o_.profile, world_)));
  messages_.open(its_, context_);
  WINDLASS_TRY(together(open_inputs()));
  named_values named;
  if (!o_.init_from.empty() && !start_.resumed) {
    WINDLASS_TRY(together(named.open(o_.init_from, j_).as(diagnostic::initial_values)));
    say(named.describe(j_));
  }
  parameter_settings settings = {o_.random_init, start_.seed, o_.weights, o_.parameters, named};
  WINDLASS_TRY(together(start_.resumed
                            ? load_checkpoint(its_, context_, start_.resumed->index).as(diagnostic::checkpoint)
                            : load_parameters(its_, context_, settings).as(diagnostic::initial_values)));
  start_.resumed.reset();
  WINDLASS_TRY(open_outputs());
  if (o_.async_save) {
    async_save_.emplace(j_, context_, ranks_, o_.run);
    WINDLASS_TRY(together(async_save_->open(threads_)));
    say("--async-save keeps a copy of " + short_bytes(static_cast<double>(async_save_->copy_bytes())) +
        " on rank 0's host, beside what is planned");
  }
  if (!start_.folder.empty())
    say("resuming from " + quote(start_.folder) + " after step " + std::to_string(start_.step));
  if (sources_.data) {
    log_.line("data: " + sources_.data->describe());
    if (o_.verbosity > 1)
      say("data: " + sources_.data->describe());
  }
  if constexpr (detail::backend_has_device) {
    if (p_.products.device != nullptr)
      say(detail::choose_products(context_.compute(), p_.products));
  }
  for (const chunk_entry &chunk : p_.chunks)
    if (chunk.init)
      WINDLASS_TRY(chunk.init(context_));
  return context_.synchronize();
}

} // namespace windlass::rt
