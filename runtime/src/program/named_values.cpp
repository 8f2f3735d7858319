#include "named_values.h"

#include "windlass/rt/json.h"
#include "windlass/rt/words.h"

#include "box.h"

#include <algorithm>
#include <set>

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

status check_sizes(const parameter_entry &row, const safetensors_file &file, const safetensors_entry &entry) {
  if (entry.sizes == sizes_of(row.sizes))
    return ok_status();
  return bad_input(quote(file.path()) + " holds " + quote(entry.name) + " as " + sizes_text(entry.sizes) +
                   ", the program takes " + sizes_text(sizes_of(row.sizes)));
}

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
  if (tensors_.empty())
    return bad_input("there are no tensors in " + list(paths));
  const std::int64_t found = choose_heads(j);
  if (found == 0)
    return bad_input("no tensor in " + list(paths) + " has the name of a parameter; the first tensor is " +
                     quote(tensors_.begin()->first) +
                     (j.parameters.size ? ", the first parameter " + quote(j.parameters[0].name) : ""));
  choose_table(j);
  for (const parameter_entry &row : j.parameters)
    if (const tensor its = find(row.name); its.entry)
      WINDLASS_TRY(check_sizes(row, *its.file, *its.entry));
  return ok_status();
}

named_values::tensor named_values::find(const std::string &parameter) const {
  const bool is_cut = !parameter_head_.empty() && parameter.compare(0, parameter_head_.size(), parameter_head_) == 0;
  auto found = tensors_.find(is_cut ? parameter.substr(parameter_head_.size()) : tensor_head_ + parameter);
  if (found == tensors_.end())
    found = tensors_.find(parameter); // what a model has beside its base keeps its name
  if (found == tensors_.end() && parameter == table_)
    found = tensors_.find(name_of_table_);
  if (found == tensors_.end())
    return {};
  const auto &[file, entry] = found->second;
  return {&files_[file], &files_[file].entries()[entry]};
}

std::int64_t named_values::choose_heads(const job &j) {
  // Counted in one pass over either side: a file may have as many heads as tensors.
  std::map<std::string, std::int64_t> more_without, more_behind;
  std::set<std::string> missing;
  std::int64_t most = 0;
  for (const parameter_entry &row : j.parameters) {
    const std::string name = row.name, head = head_of(name);
    if (tensors_.count(name) != 0)
      ++most;
    else if (missing.insert(name).second && !head.empty() && tensors_.count(name.substr(head.size())) != 0)
      ++more_without[head];
  }
  for (const auto &[name, place] : tensors_)
    if (const std::string head = head_of(name); !head.empty() && missing.count(name.substr(head.size())) != 0)
      ++more_behind[head];
  std::int64_t more = 0;
  for (const auto &[head, count] : more_without)
    if (count > more) {
      more = count;
      parameter_head_ = head;
    }
  for (const auto &[head, count] : more_behind)
    if (count > more) {
      more = count;
      parameter_head_.clear();
      tensor_head_ = head;
    }
  return most + more;
}

named_values::leftovers named_values::find_leftovers(const job &j) const {
  leftovers left;
  std::set<const safetensors_entry *> used;
  for (const parameter_entry &row : j.parameters) {
    const tensor its = find(row.name);
    if (its.entry)
      used.insert(its.entry);
    else
      left.parameters.push_back(&row);
  }
  for (const auto &[name, place] : tensors_)
    if (const safetensors_entry &entry = files_[place.first].entries()[place.second]; used.count(&entry) == 0)
      left.tensors.push_back(&entry);
  return left;
}

void named_values::choose_table(const job &j) {
  const auto is_table = [&](const std::vector<std::int64_t> &sizes) {
    return sizes.size() == 2 && std::any_of(j.inputs.begin(), j.inputs.end(), [&](const input_entry &input) {
             return input.vocabulary > 0 && input.vocabulary == sizes[0];
           });
  };
  leftovers left = find_leftovers(j);
  std::vector<const parameter_entry *> &missing = left.parameters;
  std::vector<const safetensors_entry *> &unused = left.tensors;
  missing.erase(std::remove_if(missing.begin(), missing.end(),
                               [&](const parameter_entry *row) { return !is_table(sizes_of(row->sizes)); }),
                missing.end());
  unused.erase(std::remove_if(unused.begin(), unused.end(),
                              [&](const safetensors_entry *entry) { return !is_table(entry->sizes); }),
               unused.end());
  if (missing.size() == 1 && unused.size() == 1 && unused[0]->sizes == sizes_of(missing[0]->sizes)) {
    table_ = missing[0]->name;
    name_of_table_ = unused[0]->name;
  }
}

std::string named_values::describe(const job &j) const {
  const leftovers left = find_leftovers(j);
  std::vector<std::string> missing, unused;
  for (const parameter_entry *row : left.parameters)
    missing.push_back(row->name);
  for (const safetensors_entry *entry : left.tensors)
    unused.push_back(entry->name);
  std::string out = "initial values: " + std::to_string(j.parameters.size - static_cast<std::int64_t>(missing.size())) +
                    " of " + count_of(j.parameters.size, "parameter") + " from " +
                    count_of(static_cast<std::int64_t>(files_.size()), "file");
  if (!parameter_head_.empty())
    out += ", whose names lack " + quote(parameter_head_);
  if (!tensor_head_.empty())
    out += ", whose names have " + quote(tensor_head_) + " in front";
  if (!table_.empty())
    out += "; " + quote(table_) + " is the table " + quote(name_of_table_);
  if (!missing.empty())
    out += "; not in them: " + list(missing);
  if (!unused.empty())
    out += "; not used: " + list(unused);
  return out;
}

} // namespace windlass::rt
