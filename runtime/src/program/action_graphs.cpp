#include "action_graphs.h"

#include "windlass/rt/json.h"
#include "windlass/rt/transport.h"

#include <algorithm>

namespace windlass::rt {

namespace {

void add(collective_bytes &to, const collective_bytes &more) {
  for (std::size_t k = 0; k < collective_kinds; ++k)
    to.of[k] += more.of[k];
}

/// The seconds of a step, each way.
struct step_seconds {
  double issued, recorded;
};

double median_of(const std::vector<turn_time> &turns) { return summarize(turns, turns.size()).median; }

} // namespace

status action_graphs::open(context &c, const program &p, graph_policy policy, bool is_measuring,
                           const transport &world) {
  context_ = &c;
  policy_ = graph_policy::off;
  const bool is_alone = world.size() == 1;
  if constexpr (!detail::backend_has_device)
    return policy == graph_policy::on
               ? bad_input("--graphs on needs a program built for cuda; this one is for cpu").as(diagnostic::usage)
               : ok_status();
  // Ranks that are threads hand each other addresses while they issue, which no graph can repeat.
  if (policy == graph_policy::on && !is_alone && world.is_one_process())
    return bad_input("--graphs on needs ranks that are processes; leave it out with --communicator local")
        .as(diagnostic::usage);
  // Commands of host streams are handed over anew each time.
  const bool has_host = std::any_of(p.streams.begin(), p.streams.end(), [](const stream_entry &each) {
    return each.kind == stream_kind::host || is_of_disk(each.kind);
  });
  if (policy == graph_policy::on && has_host)
    return bad_input("--graphs on needs a program without kernels on the host; leave it out").as(diagnostic::usage);
  if (has_host)
    return {};
  // Times of commands are events between them. Collectives in graphs are for whoever asks for them.
  if (is_measuring || (policy == graph_policy::automatic && !is_alone))
    return {};
  policy_ = policy;
  // Messages are issued between the actions that are recorded.
  for (std::int32_t i = 0; i < p.streams.size; ++i)
    if (p.streams[i].kind != stream_kind::peer)
      streams_.push_back(&c.get_stream(i));
  return {};
}

void action_graphs::begin_step() {
  const std::int64_t measured_end = warm_steps + 2 * measured_steps + 1;
  if (policy_ == graph_policy::on)
    records_ = step_ >= warm_steps; // the first makes what libraries make when they are first called
  else if (policy_ == graph_policy::automatic)
    records_ = step_ < measured_end ? step_ >= warm_steps + measured_steps : is_chosen_;
}

status action_graphs::end_step(control &ranks, double seconds, std::string &said) {
  const std::int64_t step = step_++;
  // The step that records is not measured.
  constexpr std::int64_t recording = warm_steps + measured_steps;
  if (policy_ != graph_policy::automatic || step < warm_steps || step > recording + measured_steps)
    return {};
  if (step != recording)
    (step < recording ? issued_seconds_ : recorded_seconds_).push_back({seconds, 0});
  if (step < recording + measured_steps)
    return {};
  const step_seconds mine = {median_of(issued_seconds_), median_of(recorded_seconds_)};
  span<step_seconds> all;
  WINDLASS_TRY(ranks.gather(mine, all));
  step_seconds slowest = mine;
  for (const step_seconds &each : all)
    slowest = {std::max(slowest.issued, each.issued), std::max(slowest.recorded, each.recorded)};
  is_chosen_ = slowest.recorded < slowest.issued;
  said = "graphs: a step takes " + json_number(slowest.issued) + " s issued and " + json_number(slowest.recorded) +
         " s from graphs; steps are " + (is_chosen_ ? "run from graphs" : "issued") + " from here on";
  if (!is_chosen_)
    actions_.clear();
  return {};
}

status action_graphs::run_recorded(const action_key &key, const std::function<status()> &issue) {
  if constexpr (!detail::backend_has_device)
    return issue();
  auto [place, is_new] = actions_.try_emplace(key);
  recorded &own = place->second;
  if (is_new) {
    add(sent_, context_->take_sent());
    WINDLASS_TRY(detail::begin_recording(streams_));
    const bool has_issued = issue().is_ok();
    WINDLASS_TRY(detail::end_recording(streams_, has_issued, own.commands));
    own.sent = context_->take_sent();
  }
  if (own.commands == nullptr)
    return issue();
  add(sent_, own.sent);
  return own.commands->run();
}

collective_bytes action_graphs::take_sent() {
  add(sent_, context_->take_sent());
  return std::exchange(sent_, {});
}

} // namespace windlass::rt
