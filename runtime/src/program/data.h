// The source of the inputs of micro-batches: windows of token files, samples, or explicit batches.
#ifndef WINDLASS_RT_SRC_PROGRAM_DATA_H
#define WINDLASS_RT_SRC_PROGRAM_DATA_H

#include "windlass/rt/program.h"
#include "windlass/rt/status.h"

#include "box.h"
#include "options.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace windlass::rt {

/// Returns the inputs that data feed: all but the keys of dropout.
span<input_entry> data_inputs(const job &j);
/// Writes the part `local` of the keys [batch, dropouts] of micro-batch `k`.
void write_dropout_keys(const input_entry &input, std::uint64_t seed, std::int64_t k, const tensor_part &local,
                        std::byte *out);

class data_source {
public:
  virtual ~data_source() = default;
  /// Writes the part `local` of the data input `input` of micro-batch `k` as dense elements of the input's type.
  virtual status read(std::size_t input, std::int64_t k, const tensor_part &local, std::byte *out) = 0;
  /// Fails when a micro-batch of [first, first + count) is missing.
  virtual status check(std::int64_t first, std::int64_t count) const = 0;
  /// Fails where the first `bytes` bytes of what the run may read hold an id that an input does not take.
  virtual status check_values(std::int64_t bytes) = 0;
  /// Returns the micro-batches of one epoch.
  virtual std::int64_t micro_batches() const = 0;
  /// Returns one line for the log.
  virtual std::string describe() const = 0;
};

struct data_settings {
  std::vector<std::string> files;
  std::vector<std::pair<std::string, feed>> inputs;
  bool bytes = false;
  bool shuffles_windows = true;       ///< of token files, and samples
  bool shuffles_batches = false;      ///< that are explicit
  std::optional<std::int64_t> epochs; ///< at most; without it only explicit batches end, which are then read once
  std::uint64_t seed = 0;
  std::vector<normalization> normalize; ///< of samples
};

status open_data(const job &j, const data_settings &settings, std::unique_ptr<data_source> &out);

/// Converts `count` elements; false where the kinds differ (integer, floating, boolean) or a value does not fit.
bool convert_elements(element_type from, const std::byte *in, element_type to, std::byte *out, std::int64_t count);

/// Returns whether ids of this type can be compared with a vocabulary.
bool is_integer(element_type type);
/// Returns element `i` of dense integers.
std::int64_t integer_at(element_type type, const std::byte *data, std::int64_t i);

} // namespace windlass::rt

#endif
