#include "parameters.h"

#include "windlass/rt/host_copy.h"
#include "windlass/rt/safetensors.h"

#include "windlass/rt/detail/team.h"

#include "data.h"
#include "program_files.h"
#include "random.h"
#include "rank_state.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

namespace windlass::rt {

namespace {

/// Returns the path with every symbolic link followed; empty when it does not exist.
std::string resolved(const std::string &path) {
  char *text = ::realpath(path.c_str(), nullptr);
  std::string out = text ? text : "";
  std::free(text);
  return out;
}

/// The target of values: a rank's part of a parameter or of its master.
struct destination {
  element_type type;
  tensor_part part;
  std::byte *memory;
};

status no_values(const parameter_entry &row) {
  return bad_input(quote(row.name) + (row.is_trainable ? " has no initial values in the model; give --init random"
                                                       : " has no values in the model, and it is not trained"));
}

/// The files that hold initial values, opened when they are first asked for.
class value_files {
public:
  explicit value_files(const parameter_settings &settings) : settings_(settings) {}

  /// Finds the tensor's entry in the packed file, of its sizes.
  status find_packed(const parameter_entry &tensor, const safetensors_entry *&entry) {
    WINDLASS_TRY(open_packed());
    entry = packed_->find(tensor.name);
    if (!entry)
      return bad_input(quote(packed_->path()) + " lacks " + quote(tensor.name) + "; emit the program again");
    return check_sizes(tensor, *packed_, *entry);
  }
  const safetensors_file &packed() const { return *packed_; }

  /// Returns the external file that holds the parameter.
  status find_external(const parameter_entry &row, const input_file *&file) {
    WINDLASS_TRY(open_external(row.bytes.file, file));
    std::int64_t wanted = size_of(row.bytes.type) * whole_box(sizes_of(row.sizes)).elements();
    if (row.bytes.length != wanted)
      return bad_input(quote(row.name) + " has " + std::to_string(row.bytes.length) +
                       " bytes in external data, its shape takes " + std::to_string(wanted));
    if (row.bytes.offset < 0 || row.bytes.offset > file->size() || wanted > file->size() - row.bytes.offset)
      return bad_input(quote(file->path()) + " has " + std::to_string(file->size()) + " bytes, but " + quote(row.name) +
                       " lies at " + std::to_string(row.bytes.offset) + " with " + std::to_string(wanted));
    return ok_status();
  }

private:
  status open_packed() {
    if (packed_)
      return ok_status();
    std::string path = settings_.packed;
    if (path.empty())
      if (status found = find_program_file("params.safetensors", path); !found.is_ok())
        return bad_input(found.message() + "; name it with --parameters or give --init random");
    packed_.emplace();
    return packed_->open(path);
  }

  /// Opens a file below the root. The name alone may not leave the root; symbolic links must lead below the root too,
  /// or into the cache that the root is part of (models--X/snapshots/Y beside models--X/blobs).
  status open_external(const std::string &name, const input_file *&out) {
    if (auto found = external_.find(name); found != external_.end()) {
      out = &found->second;
      return ok_status();
    }
    if (settings_.weights.empty())
      return bad_input("the model's weights lie in " + quote(name) + "; give its folder with --weights");
    bool leaves = name.empty() || name[0] == '/';
    for (std::size_t from = 0; from <= name.size() && !leaves;) {
      std::size_t slash = std::min(name.find('/', from), name.size());
      leaves = name.compare(from, slash - from, "..") == 0 && slash - from == 2;
      from = slash + 1;
    }
    std::string root = resolved(settings_.weights), path = resolved(join_path(settings_.weights, name));
    if (root.empty())
      return bad_input("--weights " + quote(settings_.weights) + " does not exist");
    if (!leaves && path.empty())
      return bad_input(quote(name) + " is missing below --weights " + quote(settings_.weights));
    auto is_below = [&](const std::string &folder) {
      return folder == "/" || path.compare(0, folder.size() + 1, folder + "/") == 0;
    };
    bool is_cached =
        base_name(parent_path(root)) == "snapshots" && is_below(join_path(parent_path(parent_path(root)), "blobs"));
    if (leaves || !(is_below(root) || is_cached))
      return bad_input("external file " + quote(name) + " leaves --weights " + quote(settings_.weights));
    input_file file;
    WINDLASS_TRY(file.open(path));
    out = &external_.emplace(name, std::move(file)).first->second;
    return ok_status();
  }

  const parameter_settings &settings_;
  std::optional<safetensors_file> packed_;
  std::map<std::string, input_file> external_;
};

/// Writes the initial values of elements from `first` on. Each depends on its own number only, so that any number of
/// threads writes the same.
void fill_normal(std::uint64_t seed, std::uint64_t name, std::int64_t first, std::int64_t count, float *out,
                 std::int32_t threads) {
  constexpr std::int64_t grain = 1 << 12;
  constexpr double deviation = 0.02;
  const std::int64_t end = first + count, first_pair = first / 2, pairs = (end + 1) / 2 - first_pair;
  detail::parallel(threads, pairs, grain, [=](std::int64_t begin_pair, std::int64_t end_pair, std::int32_t) {
    for (std::int64_t pair = first_pair + begin_pair; pair < first_pair + end_pair; ++pair) {
      const std::array<double, 2> values = normal_pair(seed, name, static_cast<std::uint64_t>(pair));
      for (std::int64_t half = 0; half < 2; ++half)
        if (const std::int64_t i = 2 * pair + half; i >= first && i < end)
          out[i - first] = static_cast<float>(deviation * values[static_cast<std::size_t>(half)]);
    }
  });
}

class loader {
public:
  loader(const member &its, context &c, const parameter_settings &settings)
      : its_(its), c_(c), settings_(settings), files_(settings) {}

  status fill(const parameter_placement &row) {
    const parameter_entry &parameter = its_.j.parameters[row.parameter];
    WINDLASS_TRY(fill(parameter, parameter.type, row.master_splits, row.master));
    return row.master == row.at ? ok_status() : fill(parameter, row.type, row.splits, row.at);
  }

private:
  status fill(const parameter_entry &row, element_type type, span<split> splits, const place &at) {
    tensor_part part = local_part(sizes_of(row.sizes), splits, its_.position.axes, its_.number);
    host_copy memory(c_, at, part.elements() * size_of(type));
    WINDLASS_TRY(fill(row, {type, std::move(part), memory.data()}));
    return memory.store();
  }

  status fill(const parameter_entry &row, const destination &to) {
    fill_up(to.part, to.memory, size_of(to.type));
    if (const named_values::tensor its = settings_.named.find(row.name); its.entry)
      return copy_entry(row, *its.file, *its.entry, to);
    if (settings_.is_random && row.is_trainable)
      return fill_random(row, to);
    switch (row.bytes.kind) {
    case source_kind::packed:
      return fill_packed(row, to);
    case source_kind::external:
      return fill_external(row, to);
    case source_kind::none:
      break;
    }
    return no_values(row);
  }

  status fill_random(const parameter_entry &row, const destination &to) {
    std::uint64_t name = fnv1a(row.name, std::strlen(row.name));
    const bool is_direct = to.type == element_type::f32;
    std::vector<float> values(is_direct ? 0 : static_cast<std::size_t>(to.part.elements()));
    float *out = is_direct ? reinterpret_cast<float *>(to.memory) : values.data();
    const float constant = row.random == initializer::ones ? 1.0F : 0.0F;
    for_each_run(whole_box(sizes_of(row.sizes)), to.part, [&](std::int64_t from, std::int64_t at, std::int64_t count) {
      if (row.random == initializer::normal)
        fill_normal(settings_.seed, name, from, count, out + at, c_.compute().threads());
      else
        std::fill_n(out + at, count, constant);
    });
    if (!is_direct && !convert_elements(element_type::f32, reinterpret_cast<const std::byte *>(out), to.type, to.memory,
                                        to.part.elements()))
      return bad_input(quote(row.name) + " is " + safetensors_name(to.type) +
                       "; --init random fills floating-point parameters only");
    return ok_status();
  }

  /// Copies the rank's part out of a whole tensor that `read` gives.
  template <class Read>
  status copy_part(const parameter_entry &tensor, element_type type, const destination &to, const Read &read) {
    bool fits = true;
    WINDLASS_TRY(read_overlap(whole_box(sizes_of(tensor.sizes)), type, read, to.part, to.type, to.memory, fits));
    if (!fits)
      return bad_input(quote(tensor.name) + " is " + safetensors_name(type) + " in its file, the program takes " +
                       safetensors_name(to.type));
    return ok_status();
  }

  status copy_entry(const parameter_entry &tensor, const safetensors_file &file, const safetensors_entry &entry,
                    const destination &to) {
    return copy_part(tensor, entry.type, to, [&](std::int64_t offset, std::int64_t bytes, void *out) {
      return file.read(entry, offset, bytes, out);
    });
  }

  status fill_packed(const parameter_entry &tensor, const destination &to) {
    const safetensors_entry *entry = nullptr;
    WINDLASS_TRY(files_.find_packed(tensor, entry));
    return copy_entry(tensor, files_.packed(), *entry, to);
  }

  status fill_external(const parameter_entry &row, const destination &to) {
    const input_file *file = nullptr;
    WINDLASS_TRY(files_.find_external(row, file));
    return copy_part(row, row.bytes.type, to, [&](std::int64_t offset, std::int64_t bytes, void *out) {
      return file->read(row.bytes.offset + offset, bytes, out);
    });
  }

  const member &its_;
  context &c_;
  const parameter_settings &settings_;
  value_files files_;
};

} // namespace

status check_parameters(const job &j, const parameter_settings &settings) {
  value_files files(settings);
  for (const parameter_entry &row : j.parameters) {
    if (settings.named.find(row.name).entry || (settings.is_random && row.is_trainable))
      continue;
    const safetensors_entry *entry = nullptr;
    const input_file *file = nullptr;
    if (row.bytes.kind == source_kind::none)
      return no_values(row);
    if (row.bytes.kind == source_kind::packed && !settings.packed.empty())
      WINDLASS_TRY(files.find_packed(row, entry));
    if (row.bytes.kind == source_kind::external)
      WINDLASS_TRY(files.find_external(row, file));
  }
  return ok_status();
}

status load_parameters(const member &its, context &c, const parameter_settings &settings) {
  loader l(its, c, settings);
  for (const parameter_placement &row : its.p.parameters)
    WINDLASS_TRY(l.fill(row));
  for (const stored_tensor &tensor : stored_tensors(its.j))
    if (tensor.is_state && tensor.is_held_by(its.rank)) {
      const std::int64_t bytes = stored_part(tensor, its.rank).elements() * size_of(tensor.type);
      host_copy memory(c, tensor.at, bytes);
      std::memset(memory.data(), 0, static_cast<std::size_t>(bytes));
      WINDLASS_TRY(memory.store());
    }
  return ok_status();
}

} // namespace windlass::rt
