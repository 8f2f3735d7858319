#include "merged_input.h"

namespace windlass::rt {

std::vector<std::int64_t> merged_sizes(const job &j, const input_entry &input) {
  std::vector<std::int64_t> sizes = sizes_of(input.sizes);
  if (!sizes.empty())
    sizes[0] *= j.merge;
  return sizes;
}

merged_input::merged_input(const job &j, std::int32_t input, tensor_part part)
    : j_(j), input_(input), part_(std::move(part)) {
  if (j.merge == 1)
    return;
  const input_entry &entry = j.inputs[input];
  const std::int64_t batch = entry.sizes[0];
  std::int64_t most = 0;
  for (const local_box &each : part_.boxes)
    for (std::int32_t number = 0; number < j.merge; ++number) {
      box in_all = each.held;
      const std::int64_t begin = std::max(in_all.begin[0], number * batch),
                         end = std::min(in_all.begin[0] + in_all.sizes[0], (number + 1) * batch);
      if (begin >= end)
        continue;
      in_all.begin[0] = begin;
      in_all.sizes[0] = end - begin;
      box in_one = in_all;
      in_one.begin[0] -= number * batch;
      most = std::max(most, in_one.elements());
      pieces_.push_back({number, in_all, part_of(in_one)});
    }
  buffer_.resize(static_cast<std::size_t>(most * size_of(entry.type)));
}

status merged_input::read(data_source &data, std::uint64_t seed, const micro_batch_range &which, std::byte *out) {
  if (j_.merge == 1)
    return read_one(data, seed, which.at(0), part_, out);
  for (const piece &each : pieces_) {
    WINDLASS_TRY(read_one(data, seed, which.at(each.number), each.in_one, buffer_.data()));
    copy_overlap(each.in_all, buffer_.data(), part_, out, size_of(j_.inputs[input_].type));
  }
  return ok_status();
}

status merged_input::read_one(data_source &data, std::uint64_t seed, std::int64_t k, const tensor_part &part,
                              std::byte *out) const {
  if (input_ < data_inputs(j_).size)
    return data.read(static_cast<std::size_t>(input_), k, part, out).as(diagnostic::data_file);
  write_dropout_keys(j_.inputs[input_], seed, k, part, out);
  return ok_status();
}

} // namespace windlass::rt
