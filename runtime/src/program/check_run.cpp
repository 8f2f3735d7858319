// The checks of a run that need no program, for `windlass train`, which makes them before it plans and builds one.
#include "windlass/rt/file.h"
#include "windlass/rt/flags.h"

#include "parameters.h"
#include "run_lock.h"
#include "saving.h"
#include "start.h"

namespace windlass::rt {

/// The bytes of data that are read to find ids that an input does not take; the rest is checked as it is read.
static constexpr std::int64_t scanned_bytes = std::int64_t(256) << 20;

status check_run(const job &j, const std::vector<std::string> &flags) {
  std::vector<const char *> words = {"train"};
  for (const std::string &flag : flags)
    words.push_back(flag.c_str());
  options o;
  WINDLASS_TRY(parse_options(j, static_cast<int>(words.size()), words.data(), o).as(diagnostic::usage));
  WINDLASS_TRY(check_outputs(o));
  run_lock lock;
  if (is_folder(o.run))
    WINDLASS_TRY(lock.take(o.run));
  std::string folder;
  run_start start;
  run_sources sources;
  WINDLASS_TRY(find_checkpoint(o, folder, [](const std::string &) {}));
  std::shared_ptr<resumed_checkpoint> resumed;
  WINDLASS_TRY(open_resumed(folder, resumed).as(diagnostic::checkpoint));
  WINDLASS_TRY(choose_start(o, resumed, start).as(diagnostic::checkpoint));
  WINDLASS_TRY(open_sources(j, o, start, sources));
  for (const auto &source : {sources.data.get(), sources.eval_data.get()})
    if (source)
      WINDLASS_TRY(source->check_values(scanned_bytes).as(diagnostic::data_file));
  if (resumed)
    return check_checkpoint(j, folder, resumed->manifest).as(diagnostic::checkpoint);
  named_values named;
  if (!o.init_from.empty())
    WINDLASS_TRY(named.open(o.init_from, j).as(diagnostic::initial_values));
  return check_parameters(j, {o.random_init, start.seed, o.weights, o.parameters, named})
      .as(diagnostic::initial_values);
}

} // namespace windlass::rt
