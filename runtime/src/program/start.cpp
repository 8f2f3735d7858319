#include "start.h"

#include "windlass/rt/file.h"

#include "saving.h"

#include <filesystem>
#include <system_error>

#include <unistd.h>

namespace windlass::rt {

status find_checkpoint(const options &o, std::string &folder, const std::function<void(const std::string &)> &say) {
  std::vector<checkpoint_listing> held;
  WINDLASS_TRY(restore_replaced(o.run).as(diagnostic::output));
  WINDLASS_TRY(list_checkpoints(o.run, held).as(diagnostic::checkpoint));
  if (!o.resumes && !held.empty())
    return bad_input("-o " + quote(o.run) + " already holds a checkpoint, " + quote(checkpoint_name(held[0].step)) +
                     "; continue it with --resume or choose another folder")
        .as(diagnostic::run_in_use);
  if (!o.resumes)
    return ok_status();
  checkpoint_manifest manifest;
  WINDLASS_TRY(find_resume(o.run, o.resume_from, folder, manifest, say).as(diagnostic::checkpoint));
  std::error_code error;
  bool is_own = std::filesystem::equivalent(parent_path(folder), join_path(o.run, "checkpoints"), error);
  if (!is_own && !held.empty())
    return bad_input("-o " + quote(o.run) + " already holds checkpoints of another run than --resume " + quote(folder) +
                     "; choose another folder")
        .as(diagnostic::run_in_use);
  return ok_status();
}

status open_resumed(const std::string &folder, std::shared_ptr<resumed_checkpoint> &out) {
  out.reset();
  if (folder.empty())
    return ok_status();
  out = std::make_shared<resumed_checkpoint>();
  WINDLASS_TRY(read_manifest(folder, out->manifest));
  return out->index.open(folder, out->manifest);
}

status choose_start(const options &o, std::shared_ptr<resumed_checkpoint> resumed, run_start &out) {
  out.seed = o.seed.value_or(0);
  out.shuffles = o.shuffle;
  if (!resumed)
    return ok_status();
  const checkpoint_manifest &manifest = resumed->manifest;
  out.folder = resumed->index.files().path();
  if (o.seed.value_or(manifest.seed) != manifest.seed)
    return bad_input("--seed is " + std::to_string(*o.seed) + ", but checkpoint " + quote(out.folder) +
                     " was made with " + std::to_string(manifest.seed));
  if (o.shuffle && !manifest.shuffles)
    return bad_input("--shuffle is given, but checkpoint " + quote(out.folder) +
                     " was made without; leave it out to go on in the same order");
  out.seed = manifest.seed;
  out.shuffles = manifest.shuffles;
  out.step = manifest.step;
  out.next_micro_batch = manifest.next_micro_batch;
  out.resumed = std::move(resumed);
  return ok_status();
}

/// Returns the steps that --epochs gives; micro-batches that are too few for one more step are left out.
static status count_steps(const job &j, const options &o, const data_source &data, std::int64_t &steps) {
  std::int64_t micro_batches = 0;
  if (__builtin_mul_overflow(*o.epochs, data.micro_batches(), &micro_batches))
    return bad_input("--epochs " + std::to_string(*o.epochs) + " is too large").as(diagnostic::usage);
  steps = micro_batches / j.micro_batches;
  if (steps == 0)
    return bad_input("--epochs " + std::to_string(*o.epochs) + " gives " + std::to_string(micro_batches) +
                     " micro-batches, but one step takes " + std::to_string(j.micro_batches) +
                     "; give more data or more --epochs")
        .as(diagnostic::data_short);
  return ok_status();
}

bool evaluates(const job &j) {
  for (const position_entry &position : j.positions)
    if (position.runs->evaluation.size == 0)
      return false;
  return true;
}

status open_sources(const job &j, const options &o, const run_start &start, run_sources &out) {
  data_settings settings = {o.data, o.inputs, o.bytes, true, start.shuffles, o.epochs, start.seed, o.normalize};
  out.steps = o.steps;
  if (o.ends_with_epochs || o.steps > start.step)
    WINDLASS_TRY(open_data(j, settings, out.data).as(diagnostic::data_file));
  if (o.ends_with_epochs) {
    WINDLASS_TRY(out.data->check(0, out.data->micro_batches()).as(diagnostic::data_short));
    WINDLASS_TRY(count_steps(j, o, *out.data, out.steps));
  }
  if (start.step > out.steps)
    return bad_input("checkpoint " + quote(start.folder) + " is of step " + std::to_string(start.step) + ", but " +
                     (o.ends_with_epochs ? "--epochs " + std::to_string(*o.epochs) + " ends the run after step "
                                         : std::string("--steps is ")) +
                     std::to_string(out.steps) + "; it counts from the run's beginning")
        .as(diagnostic::checkpoint);
  if (out.data) {
    std::int64_t count = 0, last = 0;
    if (__builtin_mul_overflow(out.steps - start.step, static_cast<std::int64_t>(j.micro_batches), &count) ||
        __builtin_add_overflow(count, start.next_micro_batch, &last))
      return bad_input("--steps " + std::to_string(out.steps) + " is too large").as(diagnostic::usage);
    WINDLASS_TRY(out.data->check(start.next_micro_batch, count).as(diagnostic::data_short));
  }
  if (o.eval_data.empty())
    return ok_status();
  if (!evaluates(j))
    return bad_input("--eval-data is given, but this program is compiled without evaluation")
        .as(diagnostic::contradiction);
  settings.files = o.eval_data;
  settings.shuffles_windows = settings.shuffles_batches = false;
  settings.epochs.reset();
  WINDLASS_TRY(open_data(j, settings, out.eval_data).as(diagnostic::data_file));
  return out.eval_data->micro_batches() < 1 ? out.eval_data->check(0, 1).as(diagnostic::data_short) : ok_status();
}

status check_outputs(const options &o) {
  std::vector<std::string> missing;
  for (std::string path = o.run; !path.empty() && !is_folder(path) && path != parent_path(path);
       path = parent_path(path))
    missing.push_back(path);
  rt::folder run;
  status made = run.make(o.run);
  for (const std::string &path : missing)
    ::rmdir(path.c_str()); // those of them that could be made, which are empty
  WINDLASS_TRY(std::move(made).as(diagnostic::output));
  if (const std::string folder = parent_path(o.dump_gradients); !o.dump_gradients.empty() && !is_folder(folder))
    return bad_input("--dump-gradients " + quote(o.dump_gradients) + " lies in " + quote(folder) +
                     ", which is no folder; make it or choose another file")
        .as(diagnostic::output);
  return ok_status();
}

} // namespace windlass::rt
