// Finding, verifying, reading and merging checkpoints.
#include "windlass/rt/checkpoint.h"

#include "box.h"

#include <algorithm>

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

status verify_checkpoint(const std::string &path, const checkpoint_manifest &manifest) {
  checkpoint_index index;
  WINDLASS_TRY(index.open(path, manifest));
  for (const checkpoint_file &row : manifest.files) {
    input_file file;
    std::string digest;
    WINDLASS_TRY(file.open(index.files(), row.name));
    if (file.size() != row.bytes)
      return bad_input(quote(file.path()) + " has " + std::to_string(file.size()) + " bytes, its manifest says " +
                       std::to_string(row.bytes));
    WINDLASS_TRY(hash_file(file, digest));
    if (digest != row.digest)
      return bad_input(quote(file.path()) + " has the hash " + digest + ", its manifest says " + quote(row.digest));
  }
  return index.check();
}

status list_checkpoints(const std::string &run, std::vector<checkpoint_listing> &out) {
  out.clear();
  folder root, held;
  if (!is_folder(run))
    return ok_status();
  WINDLASS_TRY(root.open(run));
  if (!root.holds("checkpoints"))
    return ok_status();
  std::vector<std::string> names;
  WINDLASS_TRY(root.enter("checkpoints", held));
  WINDLASS_TRY(held.list(names));
  for (const std::string &name : names)
    if (std::int64_t step = parse_checkpoint_name(name); step >= 0 && held.holds_folder(name))
      out.push_back({held.path_of(name), step});
  std::sort(out.begin(), out.end(),
            [](const checkpoint_listing &a, const checkpoint_listing &b) { return a.step > b.step; });
  return ok_status();
}

std::string describe_way_on(const std::string &run) {
  std::vector<checkpoint_listing> found;
  return list_checkpoints(run, found).is_ok() && found.empty()
             ? "the run had saved no checkpoint yet, so start it again"
             : "continue from the last checkpoint with --resume";
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

status checkpoint_index::open(const std::string &path, const checkpoint_manifest &manifest) {
  WINDLASS_TRY(folder_.open(path));
  manifest_ = &manifest;
  first_.clear();
  begins_.assign(manifest.files.size() + 1, 0);
  std::int64_t pieces = 0;
  for (const checkpoint_tensor &tensor : manifest.tensors) {
    first_.push_back(pieces);
    pieces += tensor.pieces();
    for (std::int32_t file : tensor.files)
      ++begins_[static_cast<std::size_t>(file) + 1];
  }
  for (std::size_t i = 1; i < begins_.size(); ++i)
    begins_[i] += begins_[i - 1];
  owners_.resize(static_cast<std::size_t>(pieces));
  offsets_.assign(static_cast<std::size_t>(pieces), -1);
  is_read_.assign(manifest.files.size(), false);
  std::vector<std::int64_t> next = begins_;
  std::int64_t piece = 0;
  for (const checkpoint_tensor &tensor : manifest.tensors)
    for (std::int32_t file : tensor.files)
      owners_[static_cast<std::size_t>(next[static_cast<std::size_t>(file)]++)] = piece++;
  return ok_status();
}

status checkpoint_index::read_header(std::size_t file) {
  if (is_read_[file])
    return ok_status();
  safetensors_file header;
  WINDLASS_TRY(header.open(folder_, manifest_->files[file].name));
  for (std::int64_t i = begins_[file]; i < begins_[file + 1]; ++i) {
    const std::int64_t at = owners_[static_cast<std::size_t>(i)];
    const std::size_t row =
        static_cast<std::size_t>(std::upper_bound(first_.begin(), first_.end(), at) - first_.begin()) - 1;
    const checkpoint_tensor &tensor = manifest_->tensors[row];
    const std::int64_t piece = at - first_[row];
    const std::string key = tensor.key_of(piece);
    const span<std::int64_t> sizes = tensor.sizes_of(piece);
    const safetensors_entry *entry = header.find(key);
    if (!entry || entry->type != tensor.type ||
        !std::equal(sizes.begin(), sizes.end(), entry->sizes.begin(), entry->sizes.end()))
      return bad_input(quote(header.path()) + " holds no " + safetensors_name(tensor.type) +
                       sizes_text({sizes.begin(), sizes.end()}) + " " + quote(key) + ", which its manifest promises");
    offsets_[static_cast<std::size_t>(at)] = entry->offset;
  }
  is_read_[file] = true;
  return ok_status();
}

status checkpoint_index::find(const checkpoint_tensor &tensor, std::int64_t piece, std::int64_t &offset) {
  const std::size_t row = static_cast<std::size_t>(&tensor - manifest_->tensors.data());
  const std::lock_guard<std::mutex> guard(lock_);
  WINDLASS_TRY(read_header(static_cast<std::size_t>(tensor.files[static_cast<std::size_t>(piece)])));
  offset = offsets_[static_cast<std::size_t>(first_[row] + piece)];
  return ok_status();
}

status checkpoint_index::check() {
  const std::lock_guard<std::mutex> guard(lock_);
  for (std::size_t file = 0; file < is_read_.size(); ++file)
    WINDLASS_TRY(read_header(file));
  return ok_status();
}

/// Returns whether a piece and a part share elements.
static bool meet(span<std::int64_t> begin, span<std::int64_t> sizes, const tensor_part &part) {
  for (const local_box &each : part.boxes) {
    bool meets = true;
    for (std::int64_t i = 0; i < begin.size && meets; ++i) {
      const std::size_t dim = static_cast<std::size_t>(i);
      meets = begin[i] < each.held.begin[dim] + each.held.sizes[dim] && each.held.begin[dim] < begin[i] + sizes[i];
    }
    if (meets)
      return true;
  }
  return false;
}

status checkpoint_reader::read(const checkpoint_tensor &tensor, const tensor_part &wanted, std::byte *out) {
  for (std::int64_t piece = 0; piece < tensor.pieces(); ++piece) {
    const span<std::int64_t> begin = tensor.begin_of(piece), sizes = tensor.sizes_of(piece);
    if (!meet(begin, sizes, wanted))
      continue;
    const std::int32_t file = tensor.files[static_cast<std::size_t>(piece)];
    std::int64_t start = 0;
    WINDLASS_TRY(index_.find(tensor, piece, start));
    if (open_ != file)
      WINDLASS_TRY(file_.open(index_.files(), index_.manifest().files[static_cast<std::size_t>(file)].name));
    open_ = file;
    const box held = {{begin.begin(), begin.end()}, {sizes.begin(), sizes.end()}};
    if (wanted.boxes.size() == 1 && held == wanted.boxes.front().held)
      return file_.read(start, held.elements() * size_of(tensor.type), out);
    bool fits = true;
    WINDLASS_TRY(read_overlap(
        held, tensor.type,
        [&](std::int64_t offset, std::int64_t bytes, void *to) { return file_.read(start + offset, bytes, to); },
        wanted, tensor.type, out, fits));
  }
  return ok_status();
}

/// Returns the name under which an export has a tensor; empty for one that it leaves out.
static std::string exported_name(const checkpoint_manifest &manifest, const checkpoint_tensor &tensor, exported what) {
  constexpr std::string_view suffix = "/ema";
  if (what != exported::averages)
    return what == exported::all || !tensor.is_state ? tensor.name : "";
  if (!tensor.is_state)
    return manifest.find(tensor.name + std::string(suffix)) ? "" : tensor.name;
  const std::size_t length = tensor.name.size() - std::min(tensor.name.size(), suffix.size());
  return tensor.name.compare(length, std::string::npos, suffix) == 0 ? tensor.name.substr(0, length) : "";
}

status export_checkpoint(const std::string &dir, const std::string &out, exported what) {
  checkpoint_manifest manifest;
  std::string path;
  WINDLASS_TRY(find_checkpoint(dir, path, manifest));
  checkpoint_index index;
  WINDLASS_TRY(index.open(path, manifest));
  checkpoint_reader reader(index);
  std::vector<safetensors_entry> entries;
  std::vector<const checkpoint_tensor *> sources;
  bool has_average = false;
  for (const checkpoint_tensor &tensor : manifest.tensors)
    if (std::string name = exported_name(manifest, tensor, what); !name.empty()) {
      entries.push_back({std::move(name), tensor.type, tensor.sizes, 0, 0});
      sources.push_back(&tensor);
      has_average |= tensor.is_state;
    }
  if (what == exported::averages && !has_average)
    return bad_input(quote(path) + " has no moving average of the weights: train with --ema-decay");
  folder target;
  output_file file;
  safetensors_writer writer;
  WINDLASS_TRY(target.open(parent_path(out)));
  WINDLASS_TRY(file.replace(target, base_name(out)));
  WINDLASS_TRY(writer.create(std::move(file), entries));
  std::vector<std::byte> buffer;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    buffer.resize(static_cast<std::size_t>(entries[i].bytes));
    WINDLASS_TRY(reader.read(*sources[i], part_of(whole_box(sources[i]->sizes)), buffer.data()));
    WINDLASS_TRY(writer.append(buffer.data(), entries[i].bytes));
  }
  std::string digest;
  std::int64_t bytes = 0;
  return writer.finish(digest, bytes);
}

} // namespace windlass::rt
