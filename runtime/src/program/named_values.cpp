#include "named_values.h"

#include "windlass/rt/json.h"
#include "windlass/rt/words.h"

#include "box.h"

#include <set>
#include <tuple>

namespace windlass::rt {

namespace {

constexpr std::int64_t largest_index = 64 << 20; // bytes
constexpr std::size_t most_named = 4;

/// Returns the first part of a name with its dot; empty where it has no parts.
std::string head_of(const std::string &name) { return name.substr(0, name.find('.') + 1); }

std::string list(const std::vector<std::string> &names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < most_named; ++i)
    out += (i == 0 ? "" : ", ") + quote(names[i]);
  return names.size() > most_named ? out + " and " + std::to_string(names.size() - most_named) + " more" : out;
}

} // namespace

status named_values::open_file(const std::string &path) {
  const std::size_t number = files_.size();
  WINDLASS_TRY(files_.emplace_back().open(path));
  const std::vector<safetensors_entry> &entries = files_[number].entries();
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (auto [other, is_new] = tensors_.emplace(entries[i].name, std::make_pair(number, i)); !is_new)
      return bad_input(quote(path) + " holds " + quote(entries[i].name) + ", and so does " +
                       quote(files_[other->second.first].path()) + "; give each tensor once");
  return ok_status();
}

status named_values::open_index(const std::string &path) {
  std::string text;
  json root;
  WINDLASS_TRY(read_text(path, largest_index, text));
  if (status parsed = parse_json(text, root); !parsed.is_ok())
    return bad_input(quote(path) + " is " + parsed.message());
  const json *map = root.find("weight_map");
  if (!map || !map->is_object())
    return bad_input(quote(path) + " has no object 'weight_map', which names the file of each tensor");
  std::set<std::string> names;
  for (const json &name : map->items) {
    if (!name.is_string() || name.string.empty() || name.string.find('/') != std::string::npos)
      return bad_input(quote(path) + " names a file " +
                       (name.is_string() ? quote(name.string) : std::string("that is no text")) +
                       "; files have to lie beside it");
    names.insert(name.string);
  }
  for (const std::string &name : names)
    WINDLASS_TRY(open_file(join_path(parent_path(path), name)));
  return ok_status();
}

status named_values::open(const std::vector<std::string> &paths, const job &j) {
  for (const std::string &path : paths)
    WINDLASS_TRY(has_extension(path, ".json") ? open_index(path) : open_file(path));
  std::set<std::string> parameter_heads, tensor_heads;
  for (const parameter_entry &row : j.parameters)
    parameter_heads.insert(head_of(row.name));
  for (const auto &[name, place] : tensors_)
    tensor_heads.insert(head_of(name));
  std::int64_t most = count_found(j);
  std::pair<std::string, std::string> best;
  const auto try_heads = [&](const std::string &parameter_head, const std::string &tensor_head) {
    parameter_head_ = parameter_head;
    tensor_head_ = tensor_head;
    if (const std::int64_t found = count_found(j); found > most) {
      most = found;
      best = {parameter_head, tensor_head};
    }
  };
  for (const std::string &head : parameter_heads)
    try_heads(head, "");
  for (const std::string &head : tensor_heads)
    try_heads("", head);
  std::tie(parameter_head_, tensor_head_) = best;
  if (most == 0)
    return bad_input("no tensor of " + list(paths) + " has a parameter's name; the first " +
                     (tensors_.empty() ? "is missing" : "is " + quote(tensors_.begin()->first)) +
                     (j.parameters.size ? ", the model's " + quote(j.parameters[0].name) : ""));
  for (const parameter_entry &row : j.parameters)
    if (const tensor its = find(row.name); its.entry && its.entry->sizes != sizes_of(row.sizes))
      return bad_input(quote(its.file->path()) + " holds " + quote(its.entry->name) + " as " +
                       sizes_text(its.entry->sizes) + ", the program takes " + sizes_text(sizes_of(row.sizes)));
  return ok_status();
}

named_values::tensor named_values::find(const std::string &parameter) const {
  const bool is_cut = !parameter_head_.empty() && parameter.compare(0, parameter_head_.size(), parameter_head_) == 0;
  auto found = tensors_.find(is_cut ? parameter.substr(parameter_head_.size()) : tensor_head_ + parameter);
  if (found == tensors_.end())
    found = tensors_.find(parameter); // of what the model has beside its base
  if (found == tensors_.end())
    return {};
  const auto &[file, entry] = found->second;
  return {&files_[file], &files_[file].entries()[entry]};
}

std::int64_t named_values::count_found(const job &j) const {
  std::int64_t count = 0;
  for (const parameter_entry &row : j.parameters)
    count += find(row.name).entry != nullptr;
  return count;
}

std::string named_values::describe(const job &j) const {
  std::vector<std::string> missing, unused;
  std::set<const safetensors_entry *> used;
  for (const parameter_entry &row : j.parameters) {
    const tensor its = find(row.name);
    if (its.entry)
      used.insert(its.entry);
    else
      missing.push_back(row.name);
  }
  for (const auto &[name, place] : tensors_)
    if (used.count(&files_[place.first].entries()[place.second]) == 0)
      unused.push_back(name);
  std::string out = "initial values: " + std::to_string(used.size()) + " of " +
                    count_of(static_cast<std::int64_t>(j.parameters.size), "parameter") + " from " +
                    count_of(static_cast<std::int64_t>(files_.size()), "file");
  if (!parameter_head_.empty())
    out += ", whose names lack " + quote(parameter_head_);
  if (!tensor_head_.empty())
    out += ", whose names have " + quote(tensor_head_) + " in front";
  if (!missing.empty())
    out += "; not in them: " + list(missing);
  if (!unused.empty())
    out += "; no parameters: " + list(unused);
  return out;
}

} // namespace windlass::rt
