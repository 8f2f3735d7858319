// The numbers that a step is given, such as its learning rate.
#ifndef WINDLASS_RT_SRC_PROGRAM_STEP_SCALARS_H
#define WINDLASS_RT_SRC_PROGRAM_STEP_SCALARS_H

#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "staging.h"

#include <memory>
#include <vector>

namespace windlass::rt {

/// The scalars of a rank's program. Those whose places follow one another go to a device in one copy. It allocates
/// nothing after `open`.
class step_scalars {
public:
  /// `threads` threads touch new memory first.
  status open(context &c, span<scalar_entry> rows, std::int32_t threads);
  /// Sets what scalar `i` of the rows is from the next `write` on.
  void set(std::int64_t i, float value) { values_[static_cast<std::size_t>(i)] = value; }
  /// Writes all; on a device, after the commands issued so far.
  status write();

private:
  /// Scalars that follow one another.
  struct run {
    std::byte *to;                    ///< the first one
    std::vector<std::size_t> numbers; ///< among the rows
    std::unique_ptr<staging> staged;  ///< where the host does not reach them
    std::int64_t bytes() const;
  };
  std::vector<run> runs_;
  std::vector<float> values_;
};

} // namespace windlass::rt

#endif
