#include "saving.h"

#include "windlass/rt/host_copy.h"

#include "data.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>

namespace windlass::rt {

namespace {

std::string file_name(bool is_state, std::int32_t rank) {
  char name[48];
  std::snprintf(name, sizeof name, "%s-%05d.safetensors", is_state ? "state" : "parameters", static_cast<int>(rank));
  return name;
}

/// Whole tensors keep their name; a part adds where it begins, which makes it unique within the tensor.
std::string piece_key(const stored_tensor &tensor, const box &part) {
  return part == whole_box(tensor.sizes) ? tensor.name : tensor.name + "@" + sizes_text(part.begin);
}

/// The manifest's tensors, the same on every rank because only tables go into them. The pieces of one rank stand in the
/// order of its boxes.
std::vector<checkpoint_tensor> plan_pieces(const program &p, const std::vector<stored_tensor> &tensors) {
  std::vector<checkpoint_tensor> out;
  for (const stored_tensor &tensor : tensors) {
    out.push_back({tensor.name, tensor.is_state, tensor.type, tensor.sizes, {}});
    for (const held_part &held : distinct_parts(p, tensor))
      for (const local_box &each : held.part.boxes)
        out.back().pieces.push_back(
            {file_name(tensor.is_state, held.rank), piece_key(tensor, each.held), each.held.begin, each.held.sizes});
  }
  return out;
}

struct written_file {
  std::int64_t bytes = 0; ///< 0: the rank has no such file
  std::array<char, 64> digest = {};
};

/// Writes this rank's file of parameters or state.
status write_pieces(const program &p, context &c, const std::string &folder, const std::vector<stored_tensor> &tensors,
                    const std::vector<checkpoint_tensor> &plan, bool is_state, written_file &out) {
  std::string name = file_name(is_state, c.rank());
  struct source {
    const stored_tensor *tensor;
    local_box where;
  };
  std::vector<safetensors_entry> entries;
  std::map<std::string, source> sources;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const tensor_part part = stored_part(p, tensors[i], c.rank());
    std::size_t next = 0;
    for (const checkpoint_piece &piece : plan[i].pieces)
      if (piece.file == name) {
        entries.push_back({piece.key, tensors[i].type, piece.sizes, 0, 0});
        sources[piece.key] = {&tensors[i], part.boxes[next++]};
      }
  }
  if (entries.empty())
    return ok_status();
  safetensors_writer writer;
  WINDLASS_TRY(writer.create(join_path(folder, name), entries));
  std::vector<std::byte> buffer;
  for (const safetensors_entry &entry : entries) {
    const auto &[tensor, where] = sources[entry.name];
    host_copy held(c, tensor->offset, stored_part(p, *tensor, c.rank()).elements() * size_of(tensor->type));
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

status rename_path(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return bad_input("cannot rename " + quote(from) + " to " + quote(to) + ": " +
                     std::generic_category().message(errno));
  return ok_status();
}

/// Moves the filled folder to its name. One that is there already is of the same step and gives way.
status publish(const std::string &folder, const std::string &temporary, const std::string &name) {
  std::string target = join_path(folder, name), old = join_path(folder, "." + name + ".old");
  WINDLASS_TRY(sync_folder(temporary));
  WINDLASS_TRY(remove_flat_folder(old));
  if (is_folder(target))
    WINDLASS_TRY(rename_path(target, old));
  WINDLASS_TRY(rename_path(temporary, target));
  WINDLASS_TRY(sync_folder(folder));
  return remove_flat_folder(old);
}

/// Fills `temporary` and gives it its name.
status fill_checkpoint(const program &p, context &c, control &ranks, const std::string &folder,
                       const std::string &temporary, const std::string &name, const save_point &at) {
  status prepared;
  if (c.rank() == 0) {
    prepared = remove_flat_folder(temporary);
    if (prepared.is_ok())
      prepared = make_folders(temporary);
  }
  WINDLASS_TRY(ranks.agree(prepared));

  std::vector<stored_tensor> tensors = stored_tensors(p);
  checkpoint_manifest manifest;
  manifest.step = at.step;
  manifest.next_micro_batch = at.next_micro_batch;
  manifest.seed = at.seed;
  manifest.shuffles = at.shuffles;
  manifest.skipped_updates = at.past.skipped;
  if (scales_loss(p))
    manifest.scale = at.past.scale;
  manifest.model = p.model;
  manifest.plan_hash = p.plan_hash;
  manifest.tensors = plan_pieces(p, tensors);
  status written;
  std::vector<written_file> files[2];
  for (bool is_state : {false, true}) {
    written_file own;
    if (written.is_ok())
      written = write_pieces(p, c, temporary, tensors, manifest.tensors, is_state, own);
    span<written_file> all;
    WINDLASS_TRY(ranks.gather(own, all));
    files[is_state].assign(all.begin(), all.end());
  }
  WINDLASS_TRY(ranks.agree(written));

  status published;
  if (c.rank() == 0) {
    for (bool is_state : {false, true})
      for (std::size_t rank = 0; rank < files[is_state].size(); ++rank)
        if (const written_file &file = files[is_state][rank]; file.bytes > 0)
          manifest.files.push_back({file_name(is_state, static_cast<std::int32_t>(rank)), file.bytes,
                                    std::string(file.digest.data(), file.digest.size())});
    std::sort(manifest.tensors.begin(), manifest.tensors.end(),
              [](const checkpoint_tensor &a, const checkpoint_tensor &b) { return a.name < b.name; });
    output_file out;
    published = out.create(join_path(temporary, "manifest.json"));
    if (published.is_ok())
      published = out.write(manifest_text(manifest));
    if (published.is_ok())
      published = out.finish();
    if (published.is_ok())
      published = publish(folder, temporary, name);
  }
  return ranks.agree(published);
}

} // namespace

status save_checkpoint(const program &p, context &c, control &ranks, const std::string &run, const save_point &at) {
  std::string folder = join_path(run, "checkpoints"), name = checkpoint_name(at.step);
  std::string temporary = join_path(folder, "." + name + ".partial");
  status saved = fill_checkpoint(p, c, ranks, folder, temporary, name, at);
  // Half a checkpoint would only take up the room that a full disk lacks. After a lost rank others may still write.
  if (!saved.is_ok() && saved.code() != status_code::stopped && c.rank() == 0)
    static_cast<void>(remove_flat_folder(temporary).is_ok());
  return saved;
}

status prune_checkpoints(const std::string &run, std::int64_t keep) {
  std::vector<checkpoint_listing> found;
  WINDLASS_TRY(list_checkpoints(run, found));
  std::int64_t kept = 0;
  for (const checkpoint_listing &listing : found) {
    if (listing.step == 0 || kept++ < keep)
      continue;
    // Renamed first: a run that is killed while it deletes leaves no checkpoint that looks whole.
    std::string old = join_path(parent_path(listing.folder), "." + base_name(listing.folder) + ".old");
    WINDLASS_TRY(remove_flat_folder(old));
    WINDLASS_TRY(rename_path(listing.folder, old));
    WINDLASS_TRY(remove_flat_folder(old));
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

status remove_partial_checkpoints(const std::string &run) {
  const std::string folder = join_path(run, "checkpoints"), ending = ".partial";
  std::error_code error;
  std::vector<std::string> partial;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    bool is_partial = name.size() > ending.size() + 1 && name[0] == '.' &&
                      name.compare(name.size() - ending.size(), ending.size(), ending) == 0 &&
                      parse_checkpoint_name(name.substr(1, name.size() - ending.size() - 1)) >= 0;
    if (is_partial)
      partial.push_back(entry->path().string());
  }
  for (const std::string &path : partial)
    WINDLASS_TRY(remove_flat_folder(path));
  return ok_status();
}

status set_aside_later(const std::string &run, std::int64_t step, const std::function<void(const std::string &)> &say) {
  std::vector<checkpoint_listing> found;
  WINDLASS_TRY(list_checkpoints(run, found));
  for (const checkpoint_listing &listing : found) {
    if (listing.step <= step)
      continue;
    std::string aside = join_path(parent_path(listing.folder), "." + base_name(listing.folder) + ".aside");
    WINDLASS_TRY(remove_flat_folder(aside));
    WINDLASS_TRY(rename_path(listing.folder, aside));
    say("checkpoint " + quote(listing.folder) + " is later than the resumed one; it is now " + quote(aside));
  }
  return ok_status();
}

status check_checkpoint(const program &p, const std::string &folder, const checkpoint_manifest &manifest) {
  for (const stored_tensor &tensor : stored_tensors(p)) {
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

status load_checkpoint(const program &p, context &c, const std::string &folder, const checkpoint_manifest &manifest) {
  checkpoint_reader reader;
  WINDLASS_TRY(check_checkpoint(p, folder, manifest));
  WINDLASS_TRY(reader.open(folder, manifest));
  for (const stored_tensor &tensor : stored_tensors(p)) {
    const tensor_part part = stored_part(p, tensor, c.rank());
    host_copy held(c, tensor.offset, part.elements() * size_of(tensor.type));
    WINDLASS_TRY(reader.read(*manifest.find(tensor.name), part, held.data()));
    fill_up(part, held.data(), size_of(tensor.type));
    WINDLASS_TRY(held.store());
  }
  std::vector<std::byte> buffer;
  for (const parameter_entry &row : p.parameters) {
    if (!has_own_master(row))
      continue;
    const checkpoint_tensor &saved = *manifest.find(row.tensor.name);
    const tensor_part part = local_part(sizes_of(row.tensor), row.tensor.splits, p.axes, c.rank());
    buffer.resize(static_cast<std::size_t>(part.elements() * size_of(saved.type)));
    WINDLASS_TRY(reader.read(saved, part, buffer.data()));
    host_copy held(c, row.tensor.offset, part.elements() * size_of(row.tensor.type));
    if (!convert_elements(saved.type, buffer.data(), row.tensor.type, held.data(), part.elements()))
      return bad_input("checkpoint " + quote(folder) + " holds " + quote(row.tensor.name) + " as " +
                       safetensors_name(saved.type) + ", this program computes with " +
                       safetensors_name(row.tensor.type));
    WINDLASS_TRY(held.store());
  }
  return ok_status();
}

status dump_tensors(const program &p, context &c, control &ranks, const std::vector<stored_tensor> &tensors,
                    float factor, const std::string &path) {
  std::string temporary = join_path(parent_path(path), "." + base_name(path) + ".partial");
  safetensors_writer writer;
  std::vector<safetensors_entry> entries;
  for (const stored_tensor &tensor : tensors)
    entries.push_back({tensor.name, tensor.type, tensor.sizes, 0, 0});
  std::string header;
  WINDLASS_TRY(safetensors_writer::lay_out(entries, header)); // the order, on every rank
  status mine;
  if (c.rank() == 0)
    mine = writer.create(temporary, entries);
  WINDLASS_TRY(ranks.agree(mine));
  std::vector<std::byte> whole, parts;
  std::vector<float> scaled;
  for (const safetensors_entry &entry : entries) {
    const stored_tensor &tensor =
        *std::find_if(tensors.begin(), tensors.end(), [&](const stored_tensor &t) { return t.name == entry.name; });
    const std::int64_t width = size_of(tensor.type), part_bytes = stored_part(p, tensor, c.rank()).elements() * width;
    host_copy held(c, tensor.offset, part_bytes);
    WINDLASS_TRY(held.load());
    const std::byte *bytes = held.data();
    if (tensor.splits.size > 0) {
      WINDLASS_TRY(ranks.gather(bytes, part_bytes, parts));
      whole.resize(static_cast<std::size_t>(entry.bytes));
      for (std::int32_t rank = 0; rank < ranks.size() && c.rank() == 0; ++rank)
        copy_overlap(stored_part(p, tensor, rank), parts.data() + rank * part_bytes, whole_box(tensor.sizes),
                     whole.data(), width);
      bytes = whole.data();
    }
    if (c.rank() == 0 && mine.is_ok()) {
      scaled.resize(static_cast<std::size_t>(entry.bytes) / sizeof(float));
      std::memcpy(scaled.data(), bytes, static_cast<std::size_t>(entry.bytes));
      for (float &value : scaled)
        value *= factor;
      mine = writer.append(reinterpret_cast<const std::byte *>(scaled.data()), entry.bytes);
    }
  }
  if (c.rank() == 0 && mine.is_ok()) {
    std::string digest;
    std::int64_t written = 0;
    mine = writer.finish(digest, written);
    if (mine.is_ok())
      mine = rename_path(temporary, path);
  }
  return ranks.agree(mine);
}

} // namespace windlass::rt
