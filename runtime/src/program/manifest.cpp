// The manifest of a checkpoint: its text, and the checks that make the rest of the code safe to run on it.
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/json.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace windlass::rt {

namespace {

constexpr int manifest_version = 1;
constexpr std::int64_t max_manifest_bytes = 256 << 20;

/// Whether `name` can only name a file of the checkpoint's own folder.
bool is_plain_name(const std::string &name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

class manifest_parser {
public:
  manifest_parser(const std::string &path, checkpoint_manifest &out) : path_(path), out_(out) {}

  status run(const json &root) {
    const json *version = nullptr, *files = nullptr, *tensors = nullptr, *seed = nullptr;
    WINDLASS_TRY(member(root, "version", json::type::number, version));
    if (!version->is_integer || version->integer != manifest_version)
      return fail("has a version other than " + std::to_string(manifest_version));
    WINDLASS_TRY(natural(root, "step", out_.step));
    WINDLASS_TRY(natural(root, "next_micro_batch", out_.next_micro_batch));
    WINDLASS_TRY(member(root, "seed", json::type::number, seed));
    if (!seed->is_unsigned)
      return fail("has a seed that is not a natural number");
    out_.seed = seed->natural;
    if (const json *shuffles = root.find("shuffle")) {
      WINDLASS_TRY(member(root, "shuffle", json::type::boolean, shuffles));
      out_.shuffles = shuffles->boolean;
    }
    // Older checkpoints have neither.
    if (root.find("skipped_updates"))
      WINDLASS_TRY(natural(root, "skipped_updates", out_.skipped_updates));
    if (out_.skipped_updates > out_.step)
      return fail("has left out more updates than it has made steps");
    if (root.find("loss_scale"))
      WINDLASS_TRY(scale(root));
    WINDLASS_TRY(text(root, "model", out_.model));
    WINDLASS_TRY(text(root, "plan_hash", out_.plan_hash));
    WINDLASS_TRY(member(root, "files", json::type::array, files));
    for (const json &item : files->items)
      WINDLASS_TRY(file(item));
    WINDLASS_TRY(member(root, "tensors", json::type::array, tensors));
    for (const json &item : tensors->items)
      WINDLASS_TRY(tensor(item));
    std::sort(out_.tensors.begin(), out_.tensors.end(),
              [](const checkpoint_tensor &a, const checkpoint_tensor &b) { return a.name < b.name; });
    for (std::size_t i = 1; i < out_.tensors.size(); ++i)
      if (out_.tensors[i].name == out_.tensors[i - 1].name)
        return fail("names tensor " + quote(out_.tensors[i].name) + " twice");
    return ok_status();
  }

private:
  status fail(const std::string &why) const { return bad_input(quote(path_) + " " + why); }

  status member(const json &object, const char *key, json::type kind, const json *&out) const {
    out = object.find(key);
    return out && out->kind == kind ? ok_status() : fail(std::string("lacks a proper '") + key + "'");
  }
  status natural(const json &object, const char *key, std::int64_t &out) const {
    const json *value = nullptr;
    WINDLASS_TRY(member(object, key, json::type::number, value));
    if (!value->is_integer || value->integer < 0)
      return fail(std::string("has a '") + key + "' that is not a natural number");
    out = value->integer;
    return ok_status();
  }
  status text(const json &object, const char *key, std::string &out) const {
    const json *value = nullptr;
    WINDLASS_TRY(member(object, key, json::type::string, value));
    out = value->string;
    return ok_status();
  }
  status naturals(const json &object, const char *key, std::vector<std::int64_t> &out) const {
    const json *value = nullptr;
    WINDLASS_TRY(member(object, key, json::type::array, value));
    if (value->items.size() > static_cast<std::size_t>(max_rank))
      return fail(std::string("has a '") + key + "' of rank above " + std::to_string(max_rank));
    for (const json &item : value->items) {
      if (!item.is_integer || item.integer < 0)
        return fail(std::string("has a '") + key + "' with a value that is not a natural number");
      out.push_back(item.integer);
    }
    return ok_status();
  }

  status scale(const json &root) {
    const json *object = nullptr, *value = nullptr;
    loss_scale read;
    WINDLASS_TRY(member(root, "loss_scale", json::type::object, object));
    WINDLASS_TRY(member(*object, "value", json::type::number, value));
    WINDLASS_TRY(natural(*object, "clean_steps", read.clean_steps));
    WINDLASS_TRY(natural(*object, "overflows", read.overflows));
    read.value = value->number;
    if (!is_loss_scale(read.value))
      return fail("has a loss scale that is no power of two");
    out_.scale = read;
    return ok_status();
  }

  status file(const json &item) {
    checkpoint_file row;
    WINDLASS_TRY(text(item, "name", row.name));
    WINDLASS_TRY(natural(item, "bytes", row.bytes));
    WINDLASS_TRY(text(item, "sha256", row.digest));
    if (!is_plain_name(row.name))
      return fail("names the file " + quote(row.name) + ", which is not in its folder");
    if (!files_.insert(row.name).second)
      return fail("names the file " + quote(row.name) + " twice");
    out_.files.push_back(std::move(row));
    return ok_status();
  }

  status tensor(const json &item) {
    checkpoint_tensor row;
    std::string type;
    const json *is_state = nullptr, *pieces = nullptr;
    WINDLASS_TRY(text(item, "name", row.name));
    WINDLASS_TRY(text(item, "dtype", type));
    WINDLASS_TRY(member(item, "state", json::type::boolean, is_state));
    WINDLASS_TRY(naturals(item, "shape", row.sizes));
    WINDLASS_TRY(member(item, "pieces", json::type::array, pieces));
    row.is_state = is_state->boolean;
    if (!parse_safetensors_name(type, row.type))
      return fail("gives " + quote(row.name) + " the unknown type " + quote(type));
    std::int64_t total = size_of(row.type), covered = 0;
    for (std::int64_t size : row.sizes)
      if (__builtin_mul_overflow(total, size, &total))
        return fail("gives " + quote(row.name) + " impossible sizes " + sizes_text(row.sizes));
    total /= size_of(row.type);
    for (const json &part : pieces->items)
      WINDLASS_TRY(piece(part, row, covered));
    for (std::size_t i = 0; i < row.pieces.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (overlap(row.pieces[i], row.pieces[j]))
          return fail("has pieces of " + quote(row.name) + " that overlap");
    if (covered != total)
      return fail("has pieces of " + quote(row.name) + " with " + std::to_string(covered) + " of its " +
                  std::to_string(total) + " elements");
    out_.tensors.push_back(std::move(row));
    return ok_status();
  }

  status piece(const json &item, checkpoint_tensor &row, std::int64_t &covered) {
    checkpoint_piece out;
    WINDLASS_TRY(text(item, "file", out.file));
    WINDLASS_TRY(text(item, "key", out.key));
    WINDLASS_TRY(naturals(item, "begin", out.begin));
    WINDLASS_TRY(naturals(item, "sizes", out.sizes));
    if (!files_.count(out.file))
      return fail("takes " + quote(row.name) + " from " + quote(out.file) + ", which it does not list");
    bool fits = out.begin.size() == row.sizes.size() && out.sizes.size() == row.sizes.size();
    std::int64_t elements = 1;
    for (std::size_t i = 0; fits && i < row.sizes.size(); ++i) {
      fits = out.begin[i] <= row.sizes[i] && out.sizes[i] <= row.sizes[i] - out.begin[i];
      elements = fits ? elements * out.sizes[i] : 0;
    }
    if (!fits)
      return fail("has a piece of " + quote(row.name) + " at " + sizes_text(out.begin) + " of " +
                  sizes_text(out.sizes) + ", outside its shape " + sizes_text(row.sizes));
    if (__builtin_add_overflow(covered, elements, &covered))
      return fail("has too many pieces of " + quote(row.name));
    row.pieces.push_back(std::move(out));
    return static_cast<std::int64_t>(row.pieces.size()) > max_pieces ? fail("has too many pieces of " + quote(row.name))
                                                                     : ok_status();
  }

  static bool overlap(const checkpoint_piece &a, const checkpoint_piece &b) {
    for (std::size_t i = 0; i < a.begin.size(); ++i)
      if (a.begin[i] >= b.begin[i] + b.sizes[i] || b.begin[i] >= a.begin[i] + a.sizes[i])
        return false;
    return true;
  }

  const std::string &path_;
  checkpoint_manifest &out_;
  std::set<std::string> files_;
};

} // namespace

const checkpoint_tensor *checkpoint_manifest::find(std::string_view name) const {
  auto found = std::lower_bound(tensors.begin(), tensors.end(), name,
                                [](const checkpoint_tensor &row, std::string_view key) { return row.name < key; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

std::string checkpoint_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  return "step-" + std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0') + digits;
}

std::int64_t parse_checkpoint_name(std::string_view name) {
  if (name.substr(0, 5) != "step-")
    return -1;
  std::int64_t step = -1;
  auto result = std::from_chars(name.data() + 5, name.data() + name.size(), step);
  bool is_whole = result.ec == std::errc() && result.ptr == name.data() + name.size();
  return is_whole && step >= 0 && checkpoint_name(step) == name ? step : -1;
}

static std::string scale_text(const checkpoint_manifest &manifest) {
  if (!manifest.scale)
    return "";
  return ",\n \"loss_scale\": {\"value\": " + json_number(manifest.scale->value) +
         ", \"clean_steps\": " + std::to_string(manifest.scale->clean_steps) +
         ", \"overflows\": " + std::to_string(manifest.scale->overflows) + "}";
}

std::string manifest_text(const checkpoint_manifest &manifest) {
  std::string out =
      "{\n \"version\": " + std::to_string(manifest_version) + ",\n \"step\": " + std::to_string(manifest.step) +
      ",\n \"next_micro_batch\": " + std::to_string(manifest.next_micro_batch) +
      ",\n \"seed\": " + std::to_string(manifest.seed) + (manifest.shuffles ? ",\n \"shuffle\": true" : "") +
      ",\n \"skipped_updates\": " + std::to_string(manifest.skipped_updates) + scale_text(manifest) +
      ",\n \"model\": " + json_string(manifest.model) + ",\n \"plan_hash\": " + json_string(manifest.plan_hash) +
      ",\n \"files\": [";
  const char *separator = "\n  ";
  for (const checkpoint_file &file : manifest.files) {
    out += separator + std::string("{\"name\": ") + json_string(file.name) +
           ", \"bytes\": " + std::to_string(file.bytes) + ", \"sha256\": " + json_string(file.digest) + "}";
    separator = ",\n  ";
  }
  out += "],\n \"tensors\": [";
  separator = "\n  ";
  for (const checkpoint_tensor &tensor : manifest.tensors) {
    out += separator + std::string("{\"name\": ") + json_string(tensor.name) +
           ", \"state\": " + (tensor.is_state ? "true" : "false") + ", \"dtype\": \"" + safetensors_name(tensor.type) +
           "\", \"shape\": " + sizes_text(tensor.sizes) + ", \"pieces\": [";
    for (std::size_t i = 0; i < tensor.pieces.size(); ++i) {
      const checkpoint_piece &piece = tensor.pieces[i];
      out += (i ? ", " : "") + std::string("{\"file\": ") + json_string(piece.file) +
             ", \"key\": " + json_string(piece.key) + ", \"begin\": " + sizes_text(piece.begin) +
             ", \"sizes\": " + sizes_text(piece.sizes) + "}";
    }
    out += "]}";
    separator = ",\n  ";
  }
  return out + "]\n}\n";
}

status read_manifest(const std::string &folder, checkpoint_manifest &out) {
  std::string path = join_path(folder, "manifest.json"), text;
  WINDLASS_TRY(read_text(path, max_manifest_bytes, text));
  json root;
  if (status parsed = parse_json(text, root); !parsed.is_ok())
    return bad_input(quote(path) + " is " + parsed.message());
  out = checkpoint_manifest();
  return manifest_parser(path, out).run(root);
}

} // namespace windlass::rt
