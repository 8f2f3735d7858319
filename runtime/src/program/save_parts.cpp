#include "save_parts.h"

#include "box.h"
#include "file_turn.h"
#include "optimizers.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace windlass::rt {

namespace {

std::string file_name(bool is_state, std::int32_t rank) {
  char name[48];
  std::snprintf(name, sizeof name, "%s-%05d.safetensors", is_state ? "state" : "parameters", static_cast<int>(rank));
  return name;
}

/// Lists a rank's file of parameters or state.
status list_own_file(std::int32_t rank, const std::vector<stored_tensor> &tensors, bool is_state, own_file &out) {
  std::map<std::string, own_piece> pieces;
  out = {file_name(is_state, rank), {}, {}};
  for (const stored_tensor &tensor : tensors) {
    if (tensor.is_state != is_state || !holds_first(tensor, rank))
      continue;
    for (local_box &each : stored_part(tensor, rank).boxes) {
      checkpoint_tensor piece = {tensor.name, is_state, tensor.type, tensor.sizes, {}, {}};
      piece.add_piece(0, each.held.begin, each.held.sizes);
      out.entries.push_back({piece.key_of(0), tensor.type, each.held.sizes, 0, 0});
      pieces[out.entries.back().name] = {&tensor, std::move(each)};
    }
  }
  std::string header;
  WINDLASS_TRY(safetensors_writer::lay_out(out.entries, header));
  for (const safetensors_entry &entry : out.entries)
    out.pieces.push_back(std::move(pieces[entry.name]));
  return ok_status();
}

/// Moves the filled folder to its name. A folder that is there already is of the same step and is replaced.
status publish(const folder &checkpoints, std::int64_t step) {
  const std::string name = checkpoint_name(step);
  WINDLASS_TRY(checkpoints.remove(old_name(step)));
  if (checkpoints.holds(name))
    WINDLASS_TRY(checkpoints.rename(name, old_name(step)));
  WINDLASS_TRY(checkpoints.rename(partial_name(step), name));
  WINDLASS_TRY(checkpoints.sync());
  return checkpoints.remove(old_name(step));
}

/// Writes the manifest, the last file of a checkpoint.
status write_manifest_file(const folder &in, const checkpoint_manifest &manifest) {
  output_file out;
  WINDLASS_TRY(out.create(in, "manifest.json"));
  WINDLASS_TRY(write_manifest(manifest, [&](std::string_view part) { return out.write(part); }));
  WINDLASS_TRY(out.finish());
  return in.sync();
}

/// Rank 0's part of the end of a save: `files` are those of all ranks.
status publish_files(const job &j, const std::string &run, const std::vector<stored_tensor> &tensors,
                     const save_point &at, span<written_files> files) {
  checkpoint_manifest manifest = plan_manifest(j, tensors, at);
  std::map<std::string, const written_file *> by_name;
  for (std::int64_t rank = 0; rank < files.size; ++rank)
    for (const bool is_state : {false, true})
      by_name[file_name(is_state, static_cast<std::int32_t>(rank))] = &files[rank][is_state];
  for (checkpoint_file &file : manifest.files) {
    const written_file &facts = *by_name[file.name];
    file.bytes = facts.bytes;
    file.digest.assign(facts.digest.data(), facts.digest.size());
  }
  folder checkpoints, in;
  WINDLASS_TRY(open_checkpoints(run, checkpoints));
  WINDLASS_TRY(checkpoints.enter(partial_name(at.step), in));
  WINDLASS_TRY(write_manifest_file(in, manifest));
  return publish(checkpoints, at.step);
}

/// Removes what a failed save has left: half a checkpoint would only take up the room that a full disk lacks. After a
/// lost rank others may still write.
status without_rest(status saved, const control &ranks, const std::string &run, std::int64_t step) {
  folder checkpoints;
  if (!saved.is_ok() && saved.code() != status_code::stopped && ranks.rank() == 0 &&
      open_checkpoints(run, checkpoints).is_ok())
    static_cast<void>(checkpoints.remove(partial_name(step)).is_ok());
  return saved;
}

} // namespace

std::string partial_name(std::int64_t step) { return "." + checkpoint_name(step) + ".partial"; }
std::string old_name(std::int64_t step) { return "." + checkpoint_name(step) + ".old"; }

status open_checkpoints(const std::string &run, folder &out) {
  WINDLASS_TRY(out.open(run));
  return out.enter("checkpoints", out);
}

status list_own_files(std::int32_t rank, const std::vector<stored_tensor> &tensors, own_files &out) {
  for (const bool is_state : {false, true})
    WINDLASS_TRY(list_own_file(rank, tensors, is_state, out[is_state]));
  return ok_status();
}

status piece_reader::read(const own_piece &piece, std::int64_t bytes, const std::byte *&out) {
  const stored_tensor &tensor = *piece.tensor;
  const local_box &where = piece.where;
  const std::int64_t width = size_of(tensor.type);
  held_.emplace(context_, tensor.at, stored_part(tensor, context_.rank()).elements() * width);
  WINDLASS_TRY(held_->load());
  out = held_->data();
  if (!(where.held == where.frame) || where.skipped > 0) {
    buffer_.resize(static_cast<std::size_t>(bytes));
    copy_overlap({where.frame.sizes, {where}}, out, where.held, buffer_.data(), width);
    out = buffer_.data();
  }
  return ok_status();
}

/// The pieces of one rank stand in the order of its boxes.
checkpoint_manifest plan_manifest(const job &j, const std::vector<stored_tensor> &tensors, const save_point &at) {
  checkpoint_manifest out;
  out.step = at.step;
  out.next_micro_batch = at.next_micro_batch;
  out.seed = at.seed;
  out.shuffles = at.shuffles;
  out.skipped_updates = at.past.skipped;
  if (scales_loss(j))
    out.scale = at.past.scale;
  out.model = j.model;
  out.plan_hash = j.plan_hash;
  out.optimizer = facts_of(j.kind).name;
  std::map<std::pair<bool, std::int32_t>, std::int32_t> files; // by kind and rank
  for (const stored_tensor &tensor : tensors) {
    checkpoint_tensor row = {tensor.name, tensor.is_state, tensor.type, tensor.sizes, {}, {}};
    for (const held_part &held : distinct_parts(tensor)) {
      const auto [file, is_new] =
          files.try_emplace({tensor.is_state, held.rank}, static_cast<std::int32_t>(out.files.size()));
      if (is_new)
        out.files.push_back({file_name(tensor.is_state, held.rank), 0, ""});
      for (const local_box &each : held.part.boxes)
        row.add_piece(file->second, each.held.begin, each.held.sizes);
    }
    out.tensors.push_back(std::move(row));
  }
  std::sort(out.tensors.begin(), out.tensors.end(),
            [](const checkpoint_tensor &a, const checkpoint_tensor &b) { return a.name < b.name; });
  return out;
}

status begin_save(control &ranks, const std::string &run, std::int64_t step) {
  status made;
  if (ranks.rank() == 0) {
    folder checkpoints, in;
    made = open_checkpoints(run, checkpoints);
    if (made.is_ok())
      made = checkpoints.remove(partial_name(step));
    if (made.is_ok())
      made = checkpoints.make(partial_name(step), in);
  }
  return without_rest(ranks.agree(made), ranks, run, step);
}

status write_files(const std::string &run, std::int64_t step, const own_files &files, const piece_bytes &bytes_of,
                   written_files &out) {
  for (std::size_t kind = 0; kind < files.size(); ++kind) {
    std::vector<safetensors_entry> entries = files[kind].entries;
    if (entries.empty())
      continue;
    const file_turn turn;
    folder checkpoints, in;
    output_file file;
    safetensors_writer writer;
    WINDLASS_TRY(open_checkpoints(run, checkpoints));
    WINDLASS_TRY(checkpoints.enter(partial_name(step), in));
    WINDLASS_TRY(file.create(in, files[kind].name));
    WINDLASS_TRY(writer.create(std::move(file), entries));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::byte *bytes = nullptr;
      WINDLASS_TRY(bytes_of(kind, i, bytes));
      WINDLASS_TRY(writer.append(bytes, entries[i].bytes));
    }
    std::string digest;
    WINDLASS_TRY(writer.finish(digest, out[kind].bytes));
    std::copy(digest.begin(), digest.end(), out[kind].digest.begin());
  }
  return ok_status();
}

status end_save(const job &j, control &ranks, const std::string &run, const std::vector<stored_tensor> &tensors,
                const save_point &at, const status &mine, const written_files &files) {
  const auto end = [&]() -> status {
    WINDLASS_TRY(ranks.agree(mine));
    span<written_files> all;
    WINDLASS_TRY(ranks.gather(files, all));
    return ranks.agree(ranks.rank() == 0 ? publish_files(j, run, tensors, at, all) : ok_status());
  };
  return without_rest(end(), ranks, run, at.step);
}

} // namespace windlass::rt
