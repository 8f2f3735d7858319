#include "check_job.h"

#include "label_counter.h"
#include "merged_input.h"
#include "rank_state.h"

#include "windlass/rt/file.h"

#include <algorithm>
#include <set>

namespace windlass::rt {

status wrong_tables(const std::string &what) { return internal_error("the program's tables are wrong: " + what); }

namespace {

/// Returns whether both are cut alike.
bool is_equal(span<split> a, span<split> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const split &x, const split &y) {
    return x.dim == y.dim && x.axis == y.axis && x.blocks == y.blocks;
  });
}

bool is_equal(span<std::int64_t> a, span<std::int64_t> b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

bool is_index(std::int64_t i, std::int64_t size) { return i >= 0 && i < size; }

/// The tables of one position.
class position_check {
public:
  position_check(const job &j, std::int32_t number) : j_(j), own_(j.positions[number]), p_(*own_.runs) {
    if (j.positions.size > 1)
      where_ = " in position " + std::to_string(number);
  }

  status run() const {
    WINDLASS_TRY(check_arenas());
    WINDLASS_TRY(check_streams());
    WINDLASS_TRY(check_chunks());
    WINDLASS_TRY(check_parameters());
    return check_scalars();
  }

private:
  status wrong(const std::string &what) const { return wrong_tables(what + where_); }

  bool fits(const place &at, std::int64_t bytes) const {
    return is_index(at.arena, p_.arenas.size) && at.offset >= 0 && bytes >= 0 && bytes <= p_.arenas[at.arena].bytes &&
           at.offset <= p_.arenas[at.arena].bytes - bytes;
  }

  /// Checks a rank's part of a tensor, in each of the slots.
  status check_part(const char *name, span<std::int64_t> sizes, span<split> splits, element_type type, const place &at,
                    std::int64_t slot_stride = 0, std::int32_t slots = 1) const {
    WINDLASS_TRY(check_splits(name, sizes, splits, own_.axes));
    const std::int64_t bytes = local_part(sizes_of(sizes), splits, own_.axes, 0).elements() * size_of(type);
    const place last = {at.arena, at.offset + slot_stride * (slots - 1)};
    if (sizes.size > max_rank || slot_stride < 0 || !fits(at, bytes) || !fits(last, bytes))
      return wrong(std::string("'") + name + "' lies outside the arena");
    if (slots > 1 && slot_stride < bytes)
      return wrong(std::string("the slots of '") + name + "' overlap");
    return ok_status();
  }

  status check_arenas() const {
    for (const arena_entry &each : p_.arenas)
      if (each.bytes < 0 || !each.name)
        return wrong("an arena has no size or no name");
    return ok_status();
  }

  status check_streams() const {
    const auto is_of = [&](std::int32_t stream, stream_kind kind) {
      return is_index(stream, p_.streams.size) && p_.streams[stream].kind == kind;
    };
    if (std::count_if(p_.streams.begin(), p_.streams.end(),
                      [](const stream_entry &row) { return row.kind == stream_kind::compute; }) != 1)
      return wrong("a program has one stream of kind compute");
    for (const communicator_entry &row : p_.communicators) {
      for (const std::int32_t axis : row.axes)
        if (!is_index(axis, own_.axes.size))
          return wrong("a communicator over an axis that the mesh lacks");
      if (!is_of(row.stream, stream_kind::communicator))
        return wrong("a communicator runs on a stream of another kind");
    }
    for (const peer_entry &row : p_.peers)
      if (!is_of(row.stream, stream_kind::peer))
        return wrong("messages run on a stream of another kind than peer");
    return ok_status();
  }

  status check_chunks() const {
    if (p_.chunks.size == 0)
      return wrong("no chunk");
    for (const chunk_entry &row : p_.chunks)
      if (row.slots < 1 || !row.forward || !row.backward || !row.reduce || !row.update)
        return wrong("a step function or a slot of chunk " + std::to_string(row.chunk) + " is missing");
    for (const input_placement &row : p_.inputs) {
      const chunk_entry *chunk = find_chunk(p_, row.chunk);
      if (!is_index(row.input, j_.inputs.size) || !chunk)
        return wrong("an input that is none, or of no chunk");
      const input_entry &of = j_.inputs[row.input];
      std::vector<std::int64_t> sizes = merged_sizes(j_, of);
      const span<std::int64_t> merged = {sizes.data(), static_cast<std::int64_t>(sizes.size())};
      WINDLASS_TRY(check_part(of.name, merged, row.splits, of.type, row.at, row.slot_stride, chunk->slots));
    }
    for (const message_entry &row : p_.messages) {
      const chunk_entry *chunk = find_chunk(p_, row.chunk);
      if (!chunk || !is_index(row.peer, p_.peers.size))
        return wrong("a message of no chunk, or to no peer");
      const std::string name = "message of chunk " + std::to_string(row.chunk);
      WINDLASS_TRY(check_part(name.c_str(), row.sizes, row.splits, row.type, row.at, row.slot_stride, chunk->slots));
    }
    return ok_status();
  }

  status check_parameters() const {
    std::vector<const parameter_placement *> placements(static_cast<std::size_t>(j_.parameters.size));
    for (const parameter_placement &row : p_.parameters) {
      if (!is_index(row.parameter, j_.parameters.size) || placements[static_cast<std::size_t>(row.parameter)])
        return wrong("a parameter that is none, or has two places");
      placements[static_cast<std::size_t>(row.parameter)] = &row;
      const parameter_entry &of = j_.parameters[row.parameter];
      WINDLASS_TRY(check_part(of.name, of.sizes, row.splits, row.type, row.at));
      WINDLASS_TRY(check_part(of.name, of.sizes, row.master_splits, of.type, row.master));
      if (!has_own_master(row) && (row.type != of.type || !is_equal(row.splits, row.master_splits)))
        return wrong(std::string("'") + of.name + "' and its master lie at one place, but are cut differently");
    }
    const auto is_placed = [&](std::int32_t parameter) {
      return is_index(parameter, j_.parameters.size) && placements[static_cast<std::size_t>(parameter)];
    };
    for (const state_entry &row : p_.states) {
      if (!is_placed(row.parameter))
        return wrong("state of no parameter");
      const parameter_entry &of = j_.parameters[row.parameter];
      const cut_sizes cut = cut_of(row, of, *placements[static_cast<std::size_t>(row.parameter)]);
      WINDLASS_TRY(check_part(of.name, cut.sizes, cut.splits, element_type::f32, row.at));
    }
    for (const gradient_entry &row : p_.gradients) {
      if (!is_placed(row.parameter))
        return wrong("a gradient of no parameter");
      const parameter_entry &of = j_.parameters[row.parameter];
      if (row.type != element_type::f32 && row.type != element_type::bf16)
        return wrong("a gradient that is neither f32 nor bf16");
      WINDLASS_TRY(check_part(of.name, of.sizes, row.splits, row.type, row.at));
    }
    return ok_status();
  }

  status check_scalars() const {
    bool do_fit = fits(p_.grad_norm, 4) && (p_.loss.is_absent() || fits(p_.loss, 4)) &&
                  (p_.evaluated.is_absent() || fits(p_.evaluated, 4 * j_.merge));
    for (const scalar_entry &row : p_.scalars)
      do_fit &= fits(row.at, 4);
    return do_fit ? ok_status() : wrong("a scalar lies outside the arena");
  }

  const job &j_;
  const position_entry &own_;
  const program &p_;
  std::string where_;
};

/// Checks the meshes of all positions, and what each two of them share.
status check_meshes(const job &j) {
  if (j.positions.size < 1)
    return wrong_tables("no position");
  std::int32_t next = 0;
  for (const position_entry &each : j.positions) {
    for (const axis &a : each.axes)
      if (a.size < 1)
        return wrong_tables("an axis of size " + std::to_string(a.size));
    if (!each.runs || each.first_rank != next || each.ranks != mesh_size(each.axes))
      return wrong_tables("a position whose ranks are not those of its mesh, or without a program");
    next += each.ranks;
  }
  const position_entry &first = j.positions[0];
  const std::int32_t groups = count_replicas(first.axes);
  if (j.merge < 1 || j.micro_batches < 1 || j.micro_batches % j.merge != 0 || j.micro_batches / j.merge % groups != 0)
    return wrong_tables(std::to_string(j.micro_batches) + " micro-batches, merged by " + std::to_string(j.merge) +
                        ", over " + std::to_string(groups) + " groups");
  for (const position_entry &each : j.positions)
    if (count_replicas(each.axes) != groups)
      return wrong_tables("positions of " + std::to_string(groups) + " and of " +
                          std::to_string(count_replicas(each.axes)) + " groups");
  return ok_status();
}

/// Communicators over positions are made by their ranks together: each of these positions has it once.
status check_spanning(const job &j) {
  for (std::int32_t i = 0; i < j.positions.size; ++i)
    for (const communicator_entry &row : j.positions[i].runs->communicators) {
      if (row.positions.size == 0)
        continue;
      const span<std::int32_t> members = row.positions;
      for (std::int64_t k = 0; k < members.size; ++k)
        if (!is_index(members[k], j.positions.size) || (k > 0 && members[k] <= members[k - 1]))
          return wrong_tables("a communicator over positions that are none, or in no order");
      if (std::find(members.begin(), members.end(), i) == members.end())
        return wrong_tables("a communicator over other positions than its own");
      for (const std::int32_t member : members) {
        const span<axis> axes = j.positions[member].axes, own = j.positions[i].axes;
        const bool is_of_one_shape = std::equal(axes.begin(), axes.end(), own.begin(), own.end(),
                                                [](const axis &a, const axis &b) { return a.size == b.size; });
        const span<communicator_entry> its = j.positions[member].runs->communicators;
        const auto found = std::count_if(its.begin(), its.end(),
                                         [&](const communicator_entry &other) { return is_same_spanning(other, row); });
        if (found != 1 || !is_of_one_shape)
          return wrong_tables("communicators over positions that differ between them");
      }
    }
  return ok_status();
}

/// The messages of a border as one of its ends lists them.
std::vector<const message_entry *> messages_of(const program &p, std::int32_t chunk, std::int32_t peer_chunk,
                                               direction way) {
  std::vector<const message_entry *> out;
  for (const message_entry &row : p.messages)
    if (row.chunk == chunk && row.peer_chunk == peer_chunk && row.way == way)
      out.push_back(&row);
  return out;
}

/// Checks that each rank exchanges messages with the rank of its number in the other position, which has the same part.
status check_messages(const job &j, std::int32_t number) {
  const position_entry &own = j.positions[number];
  for (const peer_entry &row : own.runs->peers) {
    if (!is_index(row.position, j.positions.size) || row.position == number)
      return wrong_tables("a peer that is no other position");
    const position_entry &other = j.positions[row.position];
    const auto lists = [&](const program &p, std::int32_t position) {
      return std::count_if(p.peers.begin(), p.peers.end(),
                           [&](const peer_entry &peer) { return peer.position == position; });
    };
    if (lists(*own.runs, row.position) != 1 || lists(*other.runs, number) != 1)
      return wrong_tables("positions " + std::to_string(number) + " and " + std::to_string(row.position) +
                          " are not peers of each other once");
    if (own.ranks != other.ranks)
      return wrong_tables("messages between positions of " + std::to_string(own.ranks) + " and of " +
                          std::to_string(other.ranks) + " ranks");
    for (std::int32_t i = 0; i < own.ranks; ++i)
      if (replica_of(own.axes, i) != replica_of(other.axes, i))
        return wrong_tables("messages between ranks of other micro-batches");
  }
  for (const message_entry &row : own.runs->messages) {
    const position_entry &other = j.positions[own.runs->peers[row.peer].position];
    const direction back = row.way == direction::send ? direction::receive : direction::send;
    const auto mine = messages_of(*own.runs, row.chunk, row.peer_chunk, row.way);
    const auto theirs = messages_of(*other.runs, row.peer_chunk, row.chunk, back);
    const std::string which =
        "messages between chunk " + std::to_string(row.chunk) + " and chunk " + std::to_string(row.peer_chunk);
    if (mine.size() != theirs.size())
      return wrong_tables(which + " that only one of them has");
    for (std::size_t i = 0; i < mine.size(); ++i) {
      bool is_alike = mine[i]->type == theirs[i]->type && is_equal(mine[i]->sizes, theirs[i]->sizes);
      for (std::int32_t rank = 0; is_alike && rank < own.ranks; ++rank) {
        const tensor_part here = local_part(sizes_of(row.sizes), mine[i]->splits, own.axes, rank),
                          there = local_part(sizes_of(row.sizes), theirs[i]->splits, other.axes, rank);
        is_alike = here.sizes == there.sizes &&
                   std::equal(here.boxes.begin(), here.boxes.end(), there.boxes.begin(), there.boxes.end(),
                              [](const local_box &a, const local_box &b) { return a.held == b.held; });
      }
      if (!is_alike)
        return wrong_tables(which + " of other types, sizes or parts");
    }
  }
  return ok_status();
}

/// Checks what the positions share.
status check_together(const job &j) {
  std::vector<bool> is_placed(static_cast<std::size_t>(j.parameters.size));
  std::set<std::int32_t> chunks;
  std::int64_t losses = 0;
  for (const position_entry &each : j.positions) {
    const program &p = *each.runs;
    for (const parameter_placement &row : p.parameters)
      is_placed[static_cast<std::size_t>(row.parameter)] = true;
    for (const chunk_entry &row : p.chunks)
      if (!chunks.insert(row.chunk).second)
        return wrong_tables("chunk " + std::to_string(row.chunk) + " stands twice");
    losses += !p.loss.is_absent();
    const bool evaluates = j.positions[0].runs->evaluation.size > 0;
    if (evaluates != (p.evaluation.size > 0) || (evaluates && p.loss.is_absent() != p.evaluated.is_absent()))
      return wrong_tables("evaluation that only some positions have");
  }
  if (losses != 1)
    return wrong_tables("the loss of a step is in " + std::to_string(losses) + " positions");
  for (std::int64_t i = 0; i < j.parameters.size; ++i)
    if (!is_placed[static_cast<std::size_t>(i)])
      return wrong_tables(std::string("'") + j.parameters[i].name + "' is in no position");
  // Names are the keys of checkpoints; positions that train one weight have a copy each.
  std::set<std::pair<const position_entry *, std::string>> names;
  for (const stored_tensor &tensor : stored_tensors(j))
    if (!names.emplace(tensor.position, tensor.name).second)
      return wrong_tables("two tensors are named " + quote(tensor.name));
  return ok_status();
}

} // namespace

status check_job(const job &j) {
  if (j.version != job_version)
    return wrong_tables("version " + std::to_string(j.version) + ", the runtime reads " + std::to_string(job_version));
  if (!j.precision)
    return wrong_tables("no precision");
  WINDLASS_TRY(check_meshes(j));
  for (std::int32_t i = 0; i < j.positions.size; ++i)
    WINDLASS_TRY(position_check(j, i).run());
  WINDLASS_TRY(check_labels(j));
  WINDLASS_TRY(check_together(j));
  WINDLASS_TRY(check_spanning(j));
  for (std::int32_t i = 0; i < j.positions.size; ++i)
    WINDLASS_TRY(check_messages(j, i));
  return check_actions(j);
}

} // namespace windlass::rt
