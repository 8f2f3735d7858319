// One rank's part of an input, from the data to the memory that the step reads.
#ifndef WINDLASS_RT_SRC_PROGRAM_LOCAL_INPUT_H
#define WINDLASS_RT_SRC_PROGRAM_LOCAL_INPUT_H

#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "merged_input.h"
#include "staging.h"

#include <memory>
#include <optional>
#include <vector>

namespace windlass::rt {

/// A rank's part of an input, and where it goes in each slot of its chunk. It allocates nothing after `open`.
class local_input {
public:
  local_input(const job &j, const input_placement &row, tensor_part part)
      : job_(j), row_(row), input_(j, row.input, std::move(part)) {}
  std::int32_t chunk() const { return row_.chunk; }
  /// Finds its slots; `threads` threads touch new memory first.
  status open(context &c, std::int32_t slots, std::int32_t threads);
  /// Fills a slot with merged micro-batches; on a device, after the commands issued so far.
  status write(data_source &from, std::uint64_t seed, const micro_batch_range &which, std::int32_t slot);
  /// Reads what the next `write` will want while a device is at work, where that has a memory of its own. What goes
  /// wrong is for that `write` to say.
  void read_ahead(data_source &from, std::uint64_t seed, const micro_batch_range &which);

private:
  status read_staged(data_source &from, std::uint64_t seed, const micro_batch_range &which);

  const job &job_;
  const input_placement &row_;
  merged_input input_;
  std::vector<std::byte *> slots_;
  std::unique_ptr<staging> staging_; ///< where the host does not reach the slots
  /// What the block of `staging_` to be sent next holds, if anything, and how reading it went.
  struct read_block {
    const data_source *from;
    std::int64_t first;
    status result;
  };
  std::optional<read_block> ahead_;
};

} // namespace windlass::rt

#endif
