// Actions of a step as graphs of the device: issued once, recorded, then run as one command each.
#ifndef WINDLASS_RT_SRC_PROGRAM_ACTION_GRAPHS_H
#define WINDLASS_RT_SRC_PROGRAM_ACTION_GRAPHS_H

#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "windlass/rt/detail/sample.h"

#include "control.h"
#include "options.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace windlass::rt {

/// Decides at which steps actions are recorded. With `automatic`, the steps after the first are issued, then as many
/// are run from graphs, and the ranks agree on what took less time; shorter runs issue all.
class action_graphs {
public:
  /// Fails where the policy is `on` and these ranks cannot record.
  status open(context &c, const program &p, graph_policy policy, bool is_measuring, const transport &world);
  void begin_step();
  /// Ends the step. `said` becomes the decision, at the step that makes one.
  status end_step(control &ranks, double seconds, std::string &said);

  /// Issues an action, or runs its graph. Actions of one kind, chunk and slots differ only by whether they are the first
  /// or the last of the step.
  template <class F> status run(const action &what, F issue) {
    if (!records_)
      return issue();
    return run_recorded({what.kind, what.chunk, what.slot, what.handed_slot, what.is_first, what.is_last},
                        std::ref(issue)); // which allocates nothing
  }
  /// As `context::take_sent`, for issued and recorded collectives.
  collective_bytes take_sent();

  /// The steps that are issued before the decision, and the steps that are measured each way.
  static constexpr std::int64_t warm_steps = 1, measured_steps = 3;

private:
  using action_key = std::tuple<action_kind, std::int32_t, std::int32_t, std::int32_t, bool, bool>;
  struct recorded {
    std::unique_ptr<detail::recorded_commands> commands; ///< null: the device could not
    collective_bytes sent;
  };
  status run_recorded(const action_key &key, const std::function<status()> &issue);

  context *context_ = nullptr;
  std::vector<stream *> streams_;
  graph_policy policy_ = graph_policy::off;
  bool records_ = false, is_chosen_ = false;
  std::int64_t step_ = 0;
  std::vector<turn_time> issued_seconds_, recorded_seconds_;
  std::map<action_key, recorded> actions_;
  collective_bytes sent_;
};

} // namespace windlass::rt

#endif
