// An input of several micro-batches that a rank computes at once.
#ifndef WINDLASS_RT_SRC_PROGRAM_MERGED_INPUT_H
#define WINDLASS_RT_SRC_PROGRAM_MERGED_INPUT_H

#include "box.h"
#include "data.h"

namespace windlass::rt {

/// Returns the sizes of an input in `j.merge` micro-batches, which follow one another in its first dim.
std::vector<std::int64_t> merged_sizes(const job &j, const input_entry &input);

/// Micro-batches of the data: `merge` of them from number `first` on. Those from `end` on, which the data may lack, are
/// replaced by number 0.
struct micro_batch_range {
  std::int64_t first = 0, end = INT64_MAX;
  std::int64_t at(std::int32_t number) const { return first + number < end ? first + number : 0; }
};

/// A rank's part of an input in merged micro-batches. It allocates nothing after its construction.
class merged_input {
public:
  /// `part` is the rank's part of the input of `merged_sizes`.
  merged_input(const job &j, std::int32_t input, tensor_part part);
  std::int64_t elements() const { return part_.elements(); }
  /// Reads the part to its dense memory. The keys of dropouts come from `seed`, all other inputs from `data`.
  status read(data_source &data, std::uint64_t seed, const micro_batch_range &which, std::byte *out);

private:
  /// What the part holds of one micro-batch, in one box.
  struct piece {
    std::int32_t number = 0; ///< among those that are merged
    box in_all;              ///< in the merged input
    tensor_part in_one;      ///< in the micro-batch
  };
  status read_one(data_source &data, std::uint64_t seed, std::int64_t k, const tensor_part &part, std::byte *out) const;

  const job &j_;
  std::int32_t input_;
  tensor_part part_;
  std::vector<piece> pieces_;
  std::vector<std::byte> buffer_;
};

} // namespace windlass::rt

#endif
