// Finding, verifying, reading and merging checkpoints.
#include "windlass/rt/checkpoint.h"

#include "box.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

namespace windlass::rt {

namespace {

status hash_file(const input_file &file, std::string &digest) {
  sha256 hash;
  std::vector<std::byte> buffer(1 << 20);
  for (std::int64_t at = 0; at < file.size();) {
    std::int64_t part = std::min<std::int64_t>(file.size() - at, static_cast<std::int64_t>(buffer.size()));
    WINDLASS_TRY(file.read(at, part, buffer.data()));
    hash.update(buffer.data(), static_cast<std::size_t>(part));
    at += part;
  }
  digest = hash.finish_hex();
  return ok_status();
}

} // namespace

status verify_checkpoint(const std::string &folder, const checkpoint_manifest &manifest) {
  for (const checkpoint_file &row : manifest.files) {
    input_file file;
    std::string path = join_path(folder, row.name), digest;
    WINDLASS_TRY(file.open(path));
    if (file.size() != row.bytes)
      return bad_input(quote(path) + " has " + std::to_string(file.size()) + " bytes, its manifest says " +
                       std::to_string(row.bytes));
    WINDLASS_TRY(hash_file(file, digest));
    if (digest != row.digest)
      return bad_input(quote(path) + " has the hash " + digest + ", its manifest says " + quote(row.digest));
  }
  checkpoint_reader reader;
  return reader.open(folder, manifest);
}

status list_checkpoints(const std::string &run, std::vector<checkpoint_listing> &out) {
  out.clear();
  std::string folder = join_path(run, "checkpoints");
  if (!is_folder(folder))
    return ok_status();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (std::int64_t step = parse_checkpoint_name(entry->path().filename().string()); step >= 0)
      out.push_back({entry->path().string(), step});
  if (error)
    return bad_input("cannot list " + quote(folder) + ": " + error.message());
  std::sort(out.begin(), out.end(),
            [](const checkpoint_listing &a, const checkpoint_listing &b) { return a.step > b.step; });
  return ok_status();
}

status find_checkpoint(const std::string &dir, std::string &folder, checkpoint_manifest &manifest) {
  if (is_file(join_path(dir, "manifest.json"))) {
    folder = dir;
    WINDLASS_TRY(read_manifest(dir, manifest));
    return verify_checkpoint(dir, manifest);
  }
  std::vector<checkpoint_listing> found;
  WINDLASS_TRY(list_checkpoints(dir, found));
  status last = bad_input(quote(dir) + " holds no checkpoint: neither manifest.json nor checkpoints/step-*");
  for (const checkpoint_listing &listing : found) {
    last = read_manifest(listing.folder, manifest);
    if (last.is_ok())
      last = verify_checkpoint(listing.folder, manifest);
    folder = listing.folder;
    if (last.is_ok())
      return last;
  }
  return last;
}

status checkpoint_reader::open(const std::string &folder, const checkpoint_manifest &manifest) {
  files_.clear();
  for (const checkpoint_file &row : manifest.files) {
    files_.emplace_back(row.name, safetensors_file());
    WINDLASS_TRY(files_.back().second.open(join_path(folder, row.name)));
  }
  for (const checkpoint_tensor &tensor : manifest.tensors)
    for (const checkpoint_piece &piece : tensor.pieces)
      for (const auto &[name, file] : files_)
        if (name == piece.file) {
          const safetensors_entry *entry = file.find(piece.key);
          if (!entry || entry->type != tensor.type || entry->sizes != piece.sizes)
            return bad_input(quote(file.path()) + " holds no " + safetensors_name(tensor.type) +
                             sizes_text(piece.sizes) + " " + quote(piece.key) + ", which its manifest promises");
        }
  return ok_status();
}

status checkpoint_reader::read(const checkpoint_tensor &tensor, const tensor_part &wanted, std::byte *out) const {
  for (const checkpoint_piece &piece : tensor.pieces) {
    box held = {piece.begin, piece.sizes};
    for (const auto &each : files_) {
      const safetensors_file &file = each.second;
      if (each.first != piece.file)
        continue;
      const safetensors_entry *entry = file.find(piece.key);
      if (wanted.boxes.size() == 1 && held == wanted.boxes.front().held)
        return file.read(*entry, 0, entry->bytes, out);
      bool fits = true;
      WINDLASS_TRY(read_overlap(
          held, tensor.type,
          [&](std::int64_t offset, std::int64_t bytes, void *to) { return file.read(*entry, offset, bytes, to); },
          wanted, tensor.type, out, fits));
    }
  }
  return ok_status();
}

status export_checkpoint(const std::string &dir, const std::string &out, bool with_state) {
  checkpoint_manifest manifest;
  std::string folder;
  WINDLASS_TRY(find_checkpoint(dir, folder, manifest));
  checkpoint_reader reader;
  WINDLASS_TRY(reader.open(folder, manifest));
  std::vector<safetensors_entry> entries;
  for (const checkpoint_tensor &tensor : manifest.tensors)
    if (with_state || !tensor.is_state)
      entries.push_back({tensor.name, tensor.type, tensor.sizes, 0, 0});
  std::string temporary = join_path(parent_path(out), "." + base_name(out) + ".partial");
  safetensors_writer writer;
  WINDLASS_TRY(writer.create(temporary, entries));
  std::vector<std::byte> buffer;
  for (const safetensors_entry &entry : entries) {
    const checkpoint_tensor &tensor = *manifest.find(entry.name);
    buffer.resize(static_cast<std::size_t>(entry.bytes));
    WINDLASS_TRY(reader.read(tensor, part_of(whole_box(tensor.sizes)), buffer.data()));
    WINDLASS_TRY(writer.append(buffer.data(), entry.bytes));
  }
  std::string digest;
  std::int64_t bytes = 0;
  WINDLASS_TRY(writer.finish(digest, bytes));
  std::error_code error;
  std::filesystem::rename(temporary, out, error);
  if (error)
    return bad_input("cannot rename a file to " + quote(out) + ": " + error.message());
  return sync_folder(parent_path(out));
}

} // namespace windlass::rt
