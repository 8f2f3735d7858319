#include "saving.h"

#include "windlass/rt/host_copy.h"

#include "box.h"
#include "data.h"
#include "file_turn.h"
#include "optimizers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace windlass::rt {

static std::string aside_name(std::int64_t step) { return "." + checkpoint_name(step) + ".aside"; }

status check_checkpoints(const job &j, std::int32_t rank) {
  const std::vector<stored_tensor> tensors = written_tensors(j);
  own_files files;
  WINDLASS_TRY(list_own_files(rank, tensors, files));
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
  const std::vector<stored_tensor> tensors = written_tensors(j);
  own_files files;
  written_files written;
  WINDLASS_TRY(begin_save(ranks, run, at.step));
  status mine = list_own_files(c.rank(), tensors, files);
  piece_reader pieces(c);
  if (mine.is_ok())
    mine = write_files(
        run, at.step, files,
        [&](std::size_t kind, std::size_t i, const std::byte *&bytes) {
          return pieces.read(files[kind].pieces[i], files[kind].entries[i].bytes, bytes);
        },
        written);
  return end_save(j, ranks, run, tensors, at, mine, written);
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
  // State of two optimizers may have one name and mean different things.
  if (const std::string own = facts_of(j.kind).name; !manifest.optimizer.empty() && manifest.optimizer != own)
    return bad_input(
        "checkpoint " + quote(folder) + " holds the state of --optimizer " + manifest.optimizer +
        ", this program's is " + own + "; continue with --optimizer " + manifest.optimizer +
        ", or begin another run with its weights: 'windlass checkpoint export' writes them for --init-from");
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
    entries.push_back({tensor.name, element_type::f32, tensor.sizes, 0, 0});
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
      convert_elements(tensor.type, whole.data(), element_type::f32, reinterpret_cast<std::byte *>(scaled.data()),
                       static_cast<std::int64_t>(scaled.size()));
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
