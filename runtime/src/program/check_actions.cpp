#include "check_job.h"

#include "box.h"
#include "expand_actions.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace windlass::rt {

namespace {

/// A send or receive of a micro-batch as its position issues it.
struct message_step {
  direction way;
  std::int32_t chunk, peer_chunk, micro_batch, peer; ///< the peer is a position
};

std::string name_of(const message_step &each) {
  return std::string(each.way == direction::send ? "the send" : "the receive") + " of micro-batch " +
         std::to_string(each.micro_batch) + " from chunk " +
         std::to_string(each.way == direction::send ? each.chunk : each.peer_chunk) + " to chunk " +
         std::to_string(each.way == direction::send ? each.peer_chunk : each.chunk);
}

/// Follows the actions of one position's step.
class step_check {
public:
  step_check(const job &j, std::int32_t number)
      : p_(*j.positions[number].runs), per_rank_(j.micro_batches / j.merge / count_replicas(j.positions[0].axes)) {
    if (j.positions.size > 1)
      where_ = " in position " + std::to_string(number);
  }

  /// Follows a step. `messages` are its sends and receives in their order.
  status run(std::deque<message_step> &messages) {
    messages_ = &messages;
    for (const chunk_entry &row : p_.chunks)
      chunks_[row.chunk] = {row.slots,
                            row.handed_slots,
                            row.weight_gradient ? 3 : 2,
                            std::vector<std::int8_t>(static_cast<std::size_t>(per_rank_)),
                            0,
                            0};
    if (!repeats_fit(p_.actions))
      return wrong("the action table repeats past its end");
    WINDLASS_TRY(expand_actions(p_.actions, [&](const action &row, std::int32_t turn) { return follow(row, turn); }));
    for (const auto &[number, chunk] : chunks_)
      if (chunk.reductions != 1 || chunk.updates != 1 ||
          std::any_of(chunk.done.begin(), chunk.done.end(), [&parts = chunk.parts](int each) { return each != parts; }))
        return wrong("chunk " + std::to_string(number) +
                     " has not all micro-batches of a step, or is not reduced and updated once");
    return ok_status();
  }

  /// Follows the evaluation of a micro-batch, where there is one, in the same way.
  status run_evaluation(std::deque<message_step> &messages) {
    messages_ = &messages;
    std::set<std::int32_t> evaluated;
    for (const action &row : p_.evaluation) {
      const chunk_entry *of = find_chunk(p_, row.chunk);
      if (!of || row.slot != 0 || row.micro_batch != 0)
        return wrong("an evaluation of chunk " + std::to_string(row.chunk) +
                     ", which the position lacks, or outside of "
                     "slot 0");
      if (row.kind == action_kind::send || row.kind == action_kind::receive)
        WINDLASS_TRY(follow_message(row, 0));
      else if (row.kind != action_kind::evaluate || !of->evaluate || !evaluated.insert(row.chunk).second)
        return wrong("an evaluation of chunk " + std::to_string(row.chunk) + " that is none, or is not its only one");
    }
    return ok_status();
  }

private:
  struct chunk_state {
    std::int32_t slots = 0, handed_slots = 0;
    int parts = 2;                 ///< of a micro-batch: its forward, and its backward in one or two
    std::vector<std::int8_t> done; ///< of each micro-batch: the parts that have run
    std::int32_t reductions = 0, updates = 0;
  };

  status wrong(const std::string &what) const { return wrong_tables(what + where_); }

  status follow(const action &row, std::int32_t turn) {
    if (row.kind == action_kind::repeat || row.kind == action_kind::evaluate)
      return wrong("a repeat in a repeat, or an evaluation in a step");
    const auto found = chunks_.find(row.chunk);
    if (found == chunks_.end())
      return wrong("an action of chunk " + std::to_string(row.chunk) + ", which the position lacks");
    chunk_state &chunk = found->second;
    if (row.kind == action_kind::reduce || row.kind == action_kind::update) {
      ++(row.kind == action_kind::reduce ? chunk.reductions : chunk.updates);
      return ok_status();
    }
    const std::int32_t micro_batch = row.micro_batch + turn * row.per_turn;
    if (micro_batch < 0 || micro_batch >= per_rank_ || row.slot < 0 || row.slot >= chunk.slots)
      return wrong("the action table has micro-batch " + std::to_string(micro_batch) + " of " +
                   std::to_string(per_rank_) + " in slot " + std::to_string(row.slot) + " of " +
                   std::to_string(chunk.slots));
    if (row.handed_slot < 0 || row.handed_slot >= chunk.handed_slots)
      return wrong("the action table hands on micro-batch " + std::to_string(micro_batch) + " in slot " +
                   std::to_string(row.handed_slot) + " of " + std::to_string(chunk.handed_slots));
    if (row.kind == action_kind::send || row.kind == action_kind::receive)
      return follow_message(row, micro_batch);
    std::int8_t &done = chunk.done[static_cast<std::size_t>(micro_batch)];
    const int before = row.kind == action_kind::forward ? 0 : row.kind == action_kind::backward ? 1 : 2;
    if (done != before || before >= chunk.parts)
      return wrong("micro-batch " + std::to_string(micro_batch) +
                   " has not one forward, and behind it each part of its backward");
    ++done;
    return ok_status();
  }

  status follow_message(const action &row, std::int32_t micro_batch) {
    const direction way = row.kind == action_kind::send ? direction::send : direction::receive;
    const auto *found = std::find_if(p_.messages.begin(), p_.messages.end(), [&](const message_entry &each) {
      return each.chunk == row.chunk && each.peer_chunk == row.peer_chunk && each.way == way;
    });
    const message_step step = {way, row.chunk, row.peer_chunk, micro_batch, 0};
    if (found == p_.messages.end())
      return wrong(name_of(step) + " has no message");
    messages_->push_back({way, row.chunk, row.peer_chunk, micro_batch, p_.peers[found->peer].position});
    return ok_status();
  }

  const program &p_;
  std::int32_t per_rank_;
  std::string where_;
  std::map<std::int32_t, chunk_state> chunks_;
  std::deque<message_step> *messages_ = nullptr;
};

/// Checks that the messages of all positions meet.
status check_meetings(std::vector<std::deque<message_step>> messages) {
  // Each position waits at its next message until the other end comes to it.
  const auto meets = [](const message_step &a, const message_step &b) {
    return a.way != b.way && a.chunk == b.peer_chunk && a.peer_chunk == b.chunk && a.micro_batch == b.micro_batch;
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      while (!messages[i].empty()) {
        std::deque<message_step> &other = messages[static_cast<std::size_t>(messages[i].front().peer)];
        if (other.empty() || other.front().peer != static_cast<std::int32_t>(i) ||
            !meets(messages[i].front(), other.front()))
          break;
        messages[i].pop_front();
        other.pop_front();
        moves = true;
      }
    }
  }
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (!messages[i].empty())
      return wrong_tables("position " + std::to_string(i) + " waits for ever at " + name_of(messages[i].front()));
  return ok_status();
}

} // namespace

status check_actions(const job &j) {
  std::vector<std::deque<message_step>> of_step(static_cast<std::size_t>(j.positions.size)), of_evaluation = of_step;
  for (std::int32_t i = 0; i < j.positions.size; ++i) {
    step_check check(j, i);
    WINDLASS_TRY(check.run(of_step[static_cast<std::size_t>(i)]));
    WINDLASS_TRY(check.run_evaluation(of_evaluation[static_cast<std::size_t>(i)]));
  }
  WINDLASS_TRY(check_meetings(std::move(of_step)));
  return check_meetings(std::move(of_evaluation));
}

} // namespace windlass::rt
