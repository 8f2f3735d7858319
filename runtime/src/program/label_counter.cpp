#include "label_counter.h"

#include "schedule.h"

namespace windlass::rt {

status check_labels(const job &j) {
  auto wrong = [](const std::string &what) { return internal_error("the program's tables are wrong: " + what); };
  if (has_scalar(j, scalar::inverse_label_count) && !averages_tokens(j))
    return wrong("a step needs the number of its labels, but there is no table of them");
  if (!averages_tokens(j))
    return ok_status();
  const counted_labels &labels = j.labels;
  if (labels.input < 0 || labels.input >= data_inputs(j).size)
    return wrong("labels of no input");
  const input_entry &input = j.inputs[labels.input];
  bool fits = is_integer(input.type) && labels.starts.size == input.sizes.size && labels.sizes.size == input.sizes.size;
  for (std::int64_t i = 0; fits && i < input.sizes.size; ++i)
    fits = labels.starts[i] >= 0 && labels.sizes[i] >= 1 && labels.starts[i] <= input.sizes[i] - labels.sizes[i];
  return fits ? ok_status() : wrong(std::string("labels that lie outside of '") + input.name + "'");
}

label_counter::label_counter(const job &j) : is_needed_(averages_tokens(j)), labels_(j.labels) {
  if (!is_needed_)
    return;
  type_ = j.inputs[labels_.input].type;
  part_ = part_of({{labels_.starts.begin(), labels_.starts.end()}, {labels_.sizes.begin(), labels_.sizes.end()}});
  values_.resize(static_cast<std::size_t>(part_.elements() * size_of(type_)));
}

status label_counter::count(data_source &from, std::int64_t k, std::int64_t &labels) {
  labels = 1;
  if (!is_needed_)
    return ok_status();
  WINDLASS_TRY(from.read(static_cast<std::size_t>(labels_.input), k, part_, values_.data()).as(diagnostic::data_file));
  labels = 0;
  for (std::int64_t i = 0, elements = part_.elements(); i < elements; ++i)
    labels += integer_at(type_, values_.data(), i) != labels_.ignored;
  return ok_status();
}

} // namespace windlass::rt
