#include "saving.h"

#include "windlass/rt/host_copy.h"

#include "data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

namespace windlass::rt {

namespace {

/// Opens RUN/checkpoints.
status open_checkpoints(const std::string &run, folder &out) {
  WINDLASS_TRY(out.open(run));
  return out.enter("checkpoints", out);
}

std::string file_name(bool is_state, std::int32_t rank) {
  char name[48];
  std::snprintf(name, sizeof name, "%s-%05d.safetensors", is_state ? "state" : "parameters", static_cast<int>(rank));
  return name;
}

/// Makes the manifest of a save, the same on every rank but for the files' bytes and hashes, which are still to come.
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

struct written_file {
  std::int64_t bytes = 0; ///< 0: the rank has no such file
  std::array<char, 64> digest = {};
};

/// Lets only a few ranks of a process have a file of a checkpoint open at a time: hundreds of ranks as threads would
/// need more descriptors than a process may have.
class file_turn {
public:
  file_turn() {
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [] { return free > 0; });
    --free;
  }
  file_turn(const file_turn &) = delete;
  file_turn &operator=(const file_turn &) = delete;
  ~file_turn() {
    const std::lock_guard<std::mutex> guard(lock);
    ++free;
    changed.notify_one();
  }

private:
  static inline std::mutex lock;
  static inline std::condition_variable changed;
  static inline int free = 32;
};

/// A piece that a rank writes: where it begins in the rank's memory of a tensor.
struct own_piece {
  const stored_tensor *tensor;
  local_box where;
};

/// Returns the entries of a rank's file of parameters or state; `pieces` gets them by key.
std::vector<safetensors_entry> own_entries(std::int32_t rank, const std::vector<stored_tensor> &tensors, bool is_state,
                                           std::map<std::string, own_piece> &pieces) {
  std::vector<safetensors_entry> entries;
  for (const stored_tensor &tensor : tensors) {
    if (tensor.is_state != is_state || !holds_first(tensor, rank))
      continue;
    for (local_box &each : stored_part(tensor, rank).boxes) {
      checkpoint_tensor piece = {tensor.name, is_state, tensor.type, tensor.sizes, {}, {}};
      piece.add_piece(0, each.held.begin, each.held.sizes);
      entries.push_back({piece.key_of(0), tensor.type, each.held.sizes, 0, 0});
      pieces[entries.back().name] = {&tensor, std::move(each)};
    }
  }
  return entries;
}

/// Writes this rank's file of parameters or state.
status write_pieces(context &c, const std::string &run, const std::string &temporary,
                    const std::vector<stored_tensor> &tensors, bool is_state, written_file &out) {
  std::map<std::string, own_piece> pieces;
  std::vector<safetensors_entry> entries = own_entries(c.rank(), tensors, is_state, pieces);
  if (entries.empty())
    return ok_status();
  const file_turn turn;
  folder checkpoints, in;
  output_file file;
  safetensors_writer writer;
  WINDLASS_TRY(open_checkpoints(run, checkpoints));
  WINDLASS_TRY(checkpoints.enter(temporary, in));
  WINDLASS_TRY(file.create(in, file_name(is_state, c.rank())));
  WINDLASS_TRY(writer.create(std::move(file), entries));
  std::vector<std::byte> buffer;
  for (const safetensors_entry &entry : entries) {
    const auto &[tensor, where] = pieces[entry.name];
    host_copy held(c, tensor->at, stored_part(*tensor, c.rank()).elements() * size_of(tensor->type));
    WINDLASS_TRY(held.load());
    const std::byte *bytes = held.data();
    if (!(where.held == where.frame) || where.skipped > 0) {
      buffer.resize(static_cast<std::size_t>(entry.bytes));
      copy_overlap({where.frame.sizes, {where}}, bytes, where.held, buffer.data(), size_of(entry.type));
      bytes = buffer.data();
    }
    WINDLASS_TRY(writer.append(bytes, entry.bytes));
  }
  std::string digest;
  WINDLASS_TRY(writer.finish(digest, out.bytes));
  std::copy(digest.begin(), digest.end(), out.digest.begin());
  return ok_status();
}

/// The names of a checkpoint's folder while it is filled, and of folders that are replaced or set aside.
std::string partial_name(std::int64_t step) { return "." + checkpoint_name(step) + ".partial"; }
std::string old_name(std::int64_t step) { return "." + checkpoint_name(step) + ".old"; }
std::string aside_name(std::int64_t step) { return "." + checkpoint_name(step) + ".aside"; }

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
status finish_checkpoint(const folder &in, const checkpoint_manifest &manifest) {
  output_file out;
  WINDLASS_TRY(out.create(in, "manifest.json"));
  WINDLASS_TRY(write_manifest(manifest, [&](std::string_view part) { return out.write(part); }));
  WINDLASS_TRY(out.finish());
  return in.sync();
}

/// Fills a dotted folder and gives it its name.
status fill_checkpoint(const job &j, context &c, control &ranks, const std::string &run, const save_point &at) {
  const std::string temporary = partial_name(at.step);
  folder checkpoints, in;
  status prepared;
  if (c.rank() == 0) {
    prepared = open_checkpoints(run, checkpoints);
    if (prepared.is_ok())
      prepared = checkpoints.remove(temporary);
    if (prepared.is_ok())
      prepared = checkpoints.make(temporary, in);
  }
  WINDLASS_TRY(ranks.agree(prepared));

  const std::vector<stored_tensor> tensors = written_tensors(j);
  status written;
  std::vector<written_file> files[2];
  for (bool is_state : {false, true}) {
    written_file own;
    if (written.is_ok())
      written = write_pieces(c, run, temporary, tensors, is_state, own);
    span<written_file> all;
    WINDLASS_TRY(ranks.gather(own, all));
    files[is_state].assign(all.begin(), all.end());
  }
  WINDLASS_TRY(ranks.agree(written));

  status published;
  if (c.rank() == 0) {
    checkpoint_manifest manifest = plan_manifest(j, tensors, at);
    std::map<std::string, const written_file *> by_name;
    for (bool is_state : {false, true})
      for (std::size_t rank = 0; rank < files[is_state].size(); ++rank)
        by_name[file_name(is_state, static_cast<std::int32_t>(rank))] = &files[is_state][rank];
    for (checkpoint_file &file : manifest.files) {
      const written_file &facts = *by_name[file.name];
      file.bytes = facts.bytes;
      file.digest.assign(facts.digest.data(), facts.digest.size());
    }
    published = finish_checkpoint(in, manifest);
    if (published.is_ok())
      published = publish(checkpoints, at.step);
  }
  return ranks.agree(published);
}

} // namespace

status check_checkpoints(const job &j, std::int32_t rank) {
  const std::vector<stored_tensor> tensors = written_tensors(j);
  for (bool is_state : {false, true}) {
    std::map<std::string, own_piece> pieces;
    std::vector<safetensors_entry> entries = own_entries(rank, tensors, is_state, pieces);
    std::string header;
    WINDLASS_TRY(safetensors_writer::lay_out(entries, header));
  }
  if (rank != 0)
    return ok_status();
  // The manifest here has the longest numbers that a save may write.
  save_point longest;
  longest.step = longest.next_micro_batch = longest.past.skipped = INT64_MAX;
  longest.seed = UINT64_MAX;
  longest.shuffles = true;
  longest.past.scale = {std::ldexp(1.0, -100), INT64_MAX, INT64_MAX};
  checkpoint_manifest manifest = plan_manifest(j, tensors, longest);
  for (checkpoint_file &file : manifest.files)
    file = {file.name, INT64_MAX, std::string(64, '0')};
  std::int64_t bytes = 0;
  WINDLASS_TRY(write_manifest(manifest, [&](std::string_view part) {
    bytes += static_cast<std::int64_t>(part.size());
    return ok_status();
  }));
  return check_manifest_bytes(bytes);
}

status save_checkpoint(const job &j, context &c, control &ranks, const std::string &run, const save_point &at) {
  status saved = fill_checkpoint(j, c, ranks, run, at);
  // Half a checkpoint would only take up the room that a full disk lacks. After a lost rank others may still write.
  folder checkpoints;
  if (!saved.is_ok() && saved.code() != status_code::stopped && c.rank() == 0 &&
      open_checkpoints(run, checkpoints).is_ok())
    static_cast<void>(checkpoints.remove(partial_name(at.step)).is_ok());
  return saved;
}

status prune_checkpoints(const std::string &run, std::int64_t keep) {
  folder checkpoints;
  std::vector<checkpoint_listing> found;
  WINDLASS_TRY(open_checkpoints(run, checkpoints));
  WINDLASS_TRY(list_checkpoints(run, found));
  std::int64_t kept = 0;
  for (const checkpoint_listing &listing : found) {
    if (listing.step == 0 || kept++ < keep)
      continue;
    // Renamed first: a run that is killed while it deletes leaves no checkpoint that looks whole.
    WINDLASS_TRY(checkpoints.remove(partial_name(listing.step)));
    WINDLASS_TRY(checkpoints.rename(checkpoint_name(listing.step), partial_name(listing.step)));
    WINDLASS_TRY(checkpoints.remove(partial_name(listing.step)));
  }
  return ok_status();
}

status find_resume(const std::string &run, const std::string &from, std::string &folder, checkpoint_manifest &manifest,
                   const std::function<void(const std::string &)> &say) {
  if (!from.empty() && (is_file(join_path(from, "manifest.json")) || !is_folder(join_path(from, "checkpoints")))) {
    folder = from;
    WINDLASS_TRY(read_manifest(folder, manifest));
    return verify_checkpoint(folder, manifest);
  }
  const std::string &where = from.empty() ? run : from;
  std::vector<checkpoint_listing> found;
  WINDLASS_TRY(list_checkpoints(where, found));
  for (const checkpoint_listing &listing : found) {
    folder = listing.folder;
    status valid = read_manifest(folder, manifest);
    if (valid.is_ok())
      valid = verify_checkpoint(folder, manifest);
    if (valid.is_ok() && manifest.step != listing.step)
      valid = bad_input("its manifest says step " + std::to_string(manifest.step));
    if (valid.is_ok())
      return valid;
    say("skipping checkpoint " + quote(folder) + ": " + valid.message());
  }
  return bad_input(quote(where) + " holds no valid checkpoint; leave --resume out to start anew");
}

/// Returns the step of a dotted name that a checkpoint's folder may have for a while, or -1.
static std::int64_t step_of_dotted(const std::string &name) {
  const std::size_t dot = name.rfind('.');
  const std::int64_t step = dot > 0 && dot != std::string::npos && name[0] == '.'
                                ? parse_checkpoint_name(std::string_view(name).substr(1, dot - 1))
                                : -1;
  return name == partial_name(step) || name == old_name(step) || name == aside_name(step) ? step : -1;
}

status restore_replaced(const std::string &run) {
  folder checkpoints;
  std::vector<std::string> names;
  if (!is_folder(join_path(run, "checkpoints")))
    return ok_status();
  WINDLASS_TRY(open_checkpoints(run, checkpoints));
  WINDLASS_TRY(checkpoints.list(names));
  for (const std::string &name : names)
    if (const std::int64_t step = step_of_dotted(name); step >= 0 && name == old_name(step) &&
                                                        checkpoints.holds_folder(name) &&
                                                        !checkpoints.holds(checkpoint_name(step)))
      WINDLASS_TRY(checkpoints.rename(name, checkpoint_name(step)));
  return ok_status();
}

status sweep_checkpoints(const std::string &run) {
  folder checkpoints;
  std::vector<std::string> names;
  WINDLASS_TRY(open_checkpoints(run, checkpoints));
  WINDLASS_TRY(checkpoints.list(names));
  for (const std::string &name : names)
    if (step_of_dotted(name) >= 0)
      WINDLASS_TRY(checkpoints.remove(name));
  return ok_status();
}

status set_aside_later(const std::string &run, std::int64_t step, const std::function<void(const std::string &)> &say) {
  folder checkpoints;
  std::vector<checkpoint_listing> found;
  WINDLASS_TRY(open_checkpoints(run, checkpoints));
  WINDLASS_TRY(list_checkpoints(run, found));
  bool changes = false;
  for (const checkpoint_listing &listing : found) {
    if (listing.step <= step)
      continue;
    changes = true;
    const std::string aside = aside_name(listing.step);
    WINDLASS_TRY(checkpoints.remove(aside));
    WINDLASS_TRY(checkpoints.rename(checkpoint_name(listing.step), aside));
    say("checkpoint " + quote(listing.folder) + " is later than the resumed one; it is now " +
        quote(checkpoints.path_of(aside)) + ", until this folder's next run");
  }
  return changes ? checkpoints.sync() : ok_status();
}

status check_checkpoint(const job &j, const std::string &folder, const checkpoint_manifest &manifest) {
  for (const stored_tensor &tensor : written_tensors(j)) {
    const checkpoint_tensor *saved = manifest.find(tensor.name);
    if (!saved || saved->is_state != tensor.is_state)
      return bad_input("checkpoint " + quote(folder) + " lacks " + quote(tensor.name) +
                       ", which this program needs; it is of model " + quote(manifest.model));
    if (saved->type != tensor.type || saved->sizes != tensor.sizes)
      return bad_input("checkpoint " + quote(folder) + " holds " + quote(tensor.name) + " as " +
                       safetensors_name(saved->type) + sizes_text(saved->sizes) + ", this program has " +
                       safetensors_name(tensor.type) + sizes_text(tensor.sizes));
  }
  return ok_status();
}

status load_checkpoint(const member &its, context &c, checkpoint_index &index) {
  const file_turn turn;
  checkpoint_reader reader(index);
  const checkpoint_manifest &manifest = index.manifest();
  const std::string &folder = index.files().path();
  WINDLASS_TRY(check_checkpoint(its.j, folder, manifest));
  for (const stored_tensor &tensor : stored_tensors(its.j)) {
    if (!tensor.is_held_by(its.rank))
      continue;
    const tensor_part part = stored_part(tensor, its.rank);
    host_copy held(c, tensor.at, part.elements() * size_of(tensor.type));
    WINDLASS_TRY(reader.read(*manifest.find(tensor.name), part, held.data()));
    fill_up(part, held.data(), size_of(tensor.type));
    WINDLASS_TRY(held.store());
  }
  std::vector<std::byte> buffer;
  for (const parameter_placement &row : its.p.parameters) {
    if (row.master == row.at)
      continue;
    const parameter_entry &parameter = its.j.parameters[row.parameter];
    const checkpoint_tensor &saved = *manifest.find(parameter.name);
    const tensor_part part = local_part(sizes_of(parameter.sizes), row.splits, its.position.axes, its.number);
    buffer.resize(static_cast<std::size_t>(part.elements() * size_of(saved.type)));
    WINDLASS_TRY(reader.read(saved, part, buffer.data()));
    host_copy held(c, row.at, part.elements() * size_of(row.type));
    if (!convert_elements(saved.type, buffer.data(), row.type, held.data(), part.elements()))
      return bad_input("checkpoint " + quote(folder) + " holds " + quote(parameter.name) + " as " +
                       safetensors_name(saved.type) + ", this program computes with " + safetensors_name(row.type));
    WINDLASS_TRY(held.store());
  }
  return ok_status();
}

/// Brings a whole tensor to rank 0, into `whole`. Collective over all ranks, those of other positions too.
static status gather_whole(context &c, control &ranks, const stored_tensor &tensor, std::vector<std::byte> &whole) {
  const std::int64_t width = size_of(tensor.type), first = tensor.position->first_rank;
  const std::int64_t part_bytes = stored_part(tensor, tensor.position->first_rank).elements() * width; // of every rank
  const bool is_there = tensor.splits.size == 0 && first == 0;
  if (is_there && c.rank() != 0)
    return ok_status();
  std::vector<std::byte> mine(static_cast<std::size_t>(part_bytes)), parts;
  if (tensor.is_held_by(c.rank())) {
    host_copy held(c, tensor.at, part_bytes);
    WINDLASS_TRY(held.load());
    std::memcpy(mine.data(), held.data(), mine.size());
  }
  if (is_there) {
    whole = std::move(mine);
    return ok_status();
  }
  WINDLASS_TRY(ranks.gather(mine.data(), part_bytes, parts));
  if (c.rank() != 0)
    return ok_status();
  whole.resize(static_cast<std::size_t>(whole_box(tensor.sizes).elements() * width));
  for (std::int64_t rank = first; rank < first + tensor.position->ranks; ++rank)
    copy_overlap(stored_part(tensor, static_cast<std::int32_t>(rank)), parts.data() + rank * part_bytes,
                 whole_box(tensor.sizes), whole.data(), width);
  return ok_status();
}

status dump_tensors(context &c, control &ranks, const std::vector<stored_tensor> &tensors, float factor,
                    const std::string &path) {
  safetensors_writer writer;
  std::vector<safetensors_entry> entries;
  for (const stored_tensor &tensor : tensors)
    entries.push_back({tensor.name, tensor.type, tensor.sizes, 0, 0});
  std::string header;
  WINDLASS_TRY(safetensors_writer::lay_out(entries, header)); // the order, on every rank
  status mine;
  if (c.rank() == 0) {
    folder in;
    output_file file;
    mine = in.open(parent_path(path));
    if (mine.is_ok())
      mine = file.replace(in, base_name(path));
    if (mine.is_ok())
      mine = writer.create(std::move(file), entries);
  }
  WINDLASS_TRY(ranks.agree(mine));
  std::vector<std::byte> whole;
  std::vector<float> scaled;
  for (const safetensors_entry &entry : entries) {
    const stored_tensor &tensor =
        *std::find_if(tensors.begin(), tensors.end(), [&](const stored_tensor &t) { return t.name == entry.name; });
    WINDLASS_TRY(gather_whole(c, ranks, tensor, whole));
    if (c.rank() == 0 && mine.is_ok()) {
      scaled.resize(static_cast<std::size_t>(entry.bytes) / sizeof(float));
      std::memcpy(scaled.data(), whole.data(), whole.size());
      for (float &value : scaled)
        value *= factor;
      mine = writer.append(reinterpret_cast<const std::byte *>(scaled.data()), entry.bytes);
    }
  }
  if (c.rank() == 0 && mine.is_ok()) {
    std::string digest;
    std::int64_t written = 0;
    mine = writer.finish(digest, written);
  }
  return ranks.agree(mine);
}

} // namespace windlass::rt
