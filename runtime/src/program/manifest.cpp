// The manifest of a checkpoint: its text, and the checks that make the rest of the code safe to run on it.
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/json.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

namespace windlass::rt {

namespace {

constexpr int manifest_version = 1;
constexpr std::int64_t max_manifest_bytes = 512 << 20;
/// The limit on the pieces sorted and pairs compared to check a manifest. The most pieces that fit into its bytes take
/// a tenth, if a plan made them.
constexpr std::int64_t max_compared = std::int64_t(1) << 28;

/// Returns whether `name` can only name a file of the checkpoint's own folder.
bool is_plain_name(const std::string &name) {
  return !name.empty() && name.size() <= 255 && name[0] != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

class manifest_parser {
public:
  manifest_parser(const std::string &path, checkpoint_manifest &out) : path_(path), out_(out) {}

  status run(std::string_view text) {
    // A tensor at a time: all of them as a tree would take ten times what the manifest itself does.
    json_limits limits;
    limits.values = 16 + max_rank + max_pieces * (5 + 2 * max_rank);
    json_reader reader(text, limits);
    json root;
    root.kind = json::type::object;
    bool has_files = false, has_tensors = false;
    status wrong; // what is JSON, but not right
    status parsed = reader.object([&](std::string &key) -> status {
      json value;
      if (key == "files") {
        has_files = true;
        return reader.array([&]() -> status {
          WINDLASS_TRY(reader.value(value));
          return wrong = file(value);
        });
      }
      if (key == "tensors") {
        has_tensors = true;
        if (!has_files)
          return wrong = fail("names its tensors before its 'files'");
        return reader.array([&]() -> status {
          WINDLASS_TRY(reader.value(value));
          return wrong = tensor(value);
        });
      }
      WINDLASS_TRY(reader.value(value));
      static constexpr std::string_view known[] = {
          "version",    "step",  "next_micro_batch", "seed",     "shuffle", "skipped_updates",
          "loss_scale", "model", "plan_hash",        "optimizer"};
      if (std::find(std::begin(known), std::end(known), key) != std::end(known)) {
        root.keys.push_back(key);
        root.items.push_back(std::move(value));
      }
      return key == "version" ? wrong = version(root) : ok_status(); // before what another version may mean
    });
    WINDLASS_TRY(wrong);
    if (parsed.is_ok())
      parsed = reader.end();
    if (!parsed.is_ok())
      return fail("is " + parsed.message());
    WINDLASS_TRY(facts(root));
    if (!has_files || !has_tensors)
      return fail(std::string("lacks a proper '") + (has_files ? "tensors" : "files") + "'");
    std::sort(out_.tensors.begin(), out_.tensors.end(),
              [](const checkpoint_tensor &a, const checkpoint_tensor &b) { return a.name < b.name; });
    for (std::size_t i = 1; i < out_.tensors.size(); ++i)
      if (out_.tensors[i].name == out_.tensors[i - 1].name)
        return fail("names tensor " + quote(out_.tensors[i].name) + " twice");
    return ok_status();
  }

private:
  /// Everything but files and tensors.
  status facts(const json &root) {
    const json *seed = nullptr;
    WINDLASS_TRY(version(root));
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
    // Older checkpoints have none of these.
    if (root.find("optimizer"))
      WINDLASS_TRY(text(root, "optimizer", out_.optimizer));
    if (root.find("skipped_updates"))
      WINDLASS_TRY(natural(root, "skipped_updates", out_.skipped_updates));
    if (out_.skipped_updates > out_.step)
      return fail("has left out more updates than it has made steps");
    if (root.find("loss_scale"))
      WINDLASS_TRY(scale(root));
    WINDLASS_TRY(text(root, "model", out_.model));
    return text(root, "plan_hash", out_.plan_hash);
  }

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

  status version(const json &root) {
    const json *version = nullptr;
    WINDLASS_TRY(member(root, "version", json::type::number, version));
    return version->is_integer && version->integer == manifest_version
               ? ok_status()
               : fail("has a version other than " + std::to_string(manifest_version));
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
    if (!files_.emplace(row.name, static_cast<std::int32_t>(out_.files.size())).second)
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
    WINDLASS_TRY(compare_pieces(row));
    if (covered != total)
      return fail("has pieces of " + quote(row.name) + " with " + std::to_string(covered) + " of its " +
                  std::to_string(total) + " elements");
    out_.tensors.push_back(std::move(row));
    return ok_status();
  }

  status piece(const json &item, checkpoint_tensor &row, std::int64_t &covered) {
    std::string name, key;
    std::vector<std::int64_t> begin, sizes;
    WINDLASS_TRY(text(item, "file", name));
    WINDLASS_TRY(text(item, "key", key));
    WINDLASS_TRY(naturals(item, "begin", begin));
    WINDLASS_TRY(naturals(item, "sizes", sizes));
    auto file = files_.find(name);
    if (file == files_.end())
      return fail("takes " + quote(row.name) + " from " + quote(name) + ", which it does not list");
    bool fits = begin.size() == row.sizes.size() && sizes.size() == row.sizes.size();
    std::int64_t elements = 1;
    for (std::size_t i = 0; fits && i < row.sizes.size(); ++i) {
      fits = begin[i] <= row.sizes[i] && sizes[i] <= row.sizes[i] - begin[i];
      elements = fits ? elements * sizes[i] : 0;
    }
    if (!fits)
      return fail("has a piece of " + quote(row.name) + " at " + sizes_text(begin) + " of " + sizes_text(sizes) +
                  ", outside its shape " + sizes_text(row.sizes));
    if (__builtin_add_overflow(covered, elements, &covered))
      return fail("has too many pieces of " + quote(row.name));
    row.add_piece(file->second, begin, sizes);
    if (const std::string expected = row.key_of(row.pieces() - 1); key != expected)
      return fail("has a piece of " + quote(row.name) + " under the key " + quote(key) + " that is " + quote(expected));
    return row.pieces() > max_pieces ? fail("has too many pieces of " + quote(row.name)) : ok_status();
  }

  /// Checks that no two pieces overlap. Where the pieces fall into groups that share nothing of some dimension, each
  /// group is looked at by itself, so that rows, columns, grids and ranges are told apart in a few passes; what falls
  /// into no groups is compared piece by piece.
  status compare_pieces(const checkpoint_tensor &row) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(row.pieces()));
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::pair<std::size_t, std::size_t>> groups = {{0, order.size()}};
    while (!groups.empty()) {
      const auto [first, last] = groups.back();
      groups.pop_back();
      if (last - first < 2)
        continue;
      bool is_grouped = false;
      for (std::int64_t dim = 0; dim < static_cast<std::int64_t>(row.sizes.size()) && !is_grouped; ++dim) {
        compared_ += static_cast<std::int64_t>(last - first);
        std::sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.begin() + static_cast<std::ptrdiff_t>(last),
                  [&](std::int64_t a, std::int64_t b) { return row.begin_of(a)[dim] < row.begin_of(b)[dim]; });
        std::size_t start = first;
        std::int64_t end = 0; // of the group in this dimension
        for (std::size_t i = first; i < last; ++i) {
          const std::int64_t begin = row.begin_of(order[i])[dim];
          if (i > first && begin >= end) {
            groups.emplace_back(start, i);
            start = i;
          }
          end = std::max(end, begin + row.sizes_of(order[i])[dim]);
        }
        is_grouped = start > first;
        if (is_grouped)
          groups.emplace_back(start, last);
      }
      for (std::size_t i = first; i < last && !is_grouped; ++i) {
        compared_ += static_cast<std::int64_t>(i - first);
        if (compared_ > max_compared)
          return fail("cuts its tensors into pieces that take too long to tell apart, at " + quote(row.name));
        for (std::size_t j = first; j < i; ++j)
          if (overlap(row, order[i], order[j]))
            return fail("has pieces of " + quote(row.name) + " that overlap");
      }
      if (compared_ > max_compared)
        return fail("cuts its tensors into pieces that take too long to tell apart, at " + quote(row.name));
    }
    return ok_status();
  }

  static bool overlap(const checkpoint_tensor &row, std::int64_t a, std::int64_t b) {
    const span<std::int64_t> a_begin = row.begin_of(a), b_begin = row.begin_of(b);
    const span<std::int64_t> a_sizes = row.sizes_of(a), b_sizes = row.sizes_of(b);
    for (std::int64_t i = 0; i < a_begin.size; ++i)
      if (a_begin[i] >= b_begin[i] + b_sizes[i] || b_begin[i] >= a_begin[i] + a_sizes[i])
        return false;
    return true;
  }

  const std::string &path_;
  checkpoint_manifest &out_;
  std::map<std::string, std::int32_t> files_; ///< which of the files has a name
  std::int64_t compared_ = 0;                 ///< pieces that were sorted, and pairs
};

} // namespace

void checkpoint_tensor::add_piece(std::int32_t file, const std::vector<std::int64_t> &begin,
                                  const std::vector<std::int64_t> &size) {
  files.push_back(file);
  extents.insert(extents.end(), begin.begin(), begin.end());
  extents.insert(extents.end(), size.begin(), size.end());
}

span<std::int64_t> checkpoint_tensor::begin_of(std::int64_t piece) const {
  const std::size_t rank = sizes.size();
  return {extents.data() + 2 * rank * static_cast<std::size_t>(piece), static_cast<std::int64_t>(rank)};
}

span<std::int64_t> checkpoint_tensor::sizes_of(std::int64_t piece) const {
  const std::size_t rank = sizes.size();
  return {extents.data() + (2 * static_cast<std::size_t>(piece) + 1) * rank, static_cast<std::int64_t>(rank)};
}

std::string checkpoint_tensor::key_of(std::int64_t piece) const {
  const span<std::int64_t> held = sizes_of(piece), begin = begin_of(piece);
  const bool is_whole = std::equal(held.begin(), held.end(), sizes.begin());
  return is_whole ? name : name + "@" + sizes_text({begin.begin(), begin.end()});
}

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

status write_manifest(const checkpoint_manifest &manifest, const std::function<status(std::string_view)> &put) {
  std::string out =
      "{\n \"version\": " + std::to_string(manifest_version) + ",\n \"step\": " + std::to_string(manifest.step) +
      ",\n \"next_micro_batch\": " + std::to_string(manifest.next_micro_batch) +
      ",\n \"seed\": " + std::to_string(manifest.seed) + (manifest.shuffles ? ",\n \"shuffle\": true" : "") +
      ",\n \"skipped_updates\": " + std::to_string(manifest.skipped_updates) + scale_text(manifest) +
      ",\n \"model\": " + json_string(manifest.model) + ",\n \"plan_hash\": " + json_string(manifest.plan_hash) +
      (manifest.optimizer.empty() ? "" : ",\n \"optimizer\": " + json_string(manifest.optimizer)) + ",\n \"files\": [";
  constexpr std::size_t part_bytes = 1 << 16;
  const char *separator = "\n  ";
  for (const checkpoint_file &file : manifest.files) {
    out += separator + std::string("{\"name\": ") + json_string(file.name) +
           ", \"bytes\": " + std::to_string(file.bytes) + ", \"sha256\": " + json_string(file.digest) + "}";
    separator = ",\n  ";
  }
  out += "],\n \"tensors\": [";
  separator = "\n  ";
  auto list = [](span<std::int64_t> values) { return sizes_text({values.begin(), values.end()}); };
  for (const checkpoint_tensor &tensor : manifest.tensors) {
    out += separator + std::string("{\"name\": ") + json_string(tensor.name) +
           ", \"state\": " + (tensor.is_state ? "true" : "false") + ", \"dtype\": \"" + safetensors_name(tensor.type) +
           "\", \"shape\": " + sizes_text(tensor.sizes) + ", \"pieces\": [";
    for (std::int64_t i = 0; i < tensor.pieces(); ++i) {
      const std::size_t file = static_cast<std::size_t>(tensor.files[static_cast<std::size_t>(i)]);
      out += (i ? ", " : "") + std::string("{\"file\": ") + json_string(manifest.files[file].name) +
             ", \"key\": " + json_string(tensor.key_of(i)) + ", \"begin\": " + list(tensor.begin_of(i)) +
             ", \"sizes\": " + list(tensor.sizes_of(i)) + "}";
      if (out.size() > part_bytes) {
        WINDLASS_TRY(put(out));
        out.clear();
      }
    }
    out += "]}";
    separator = ",\n  ";
  }
  return put(out + "]\n}\n");
}

status check_manifest_bytes(std::int64_t bytes) {
  return bytes <= max_manifest_bytes
             ? ok_status()
             : bad_input("the manifest of a checkpoint would have " + std::to_string(bytes) + " bytes, more than the " +
                         std::to_string(max_manifest_bytes) +
                         " that are read; plan for fewer ranks, or with a strategy that splits fewer tensors");
}

status read_manifest(const std::string &path, checkpoint_manifest &out) {
  folder in;
  std::string text;
  WINDLASS_TRY(in.open(path));
  WINDLASS_TRY(read_text(in, "manifest.json", max_manifest_bytes, text));
  out = checkpoint_manifest();
  const std::string name = in.path_of("manifest.json");
  return manifest_parser(name, out).run(text);
}

} // namespace windlass::rt
