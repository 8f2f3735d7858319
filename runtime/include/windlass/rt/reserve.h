// What a rank's process takes beside its arenas, declared before it runs: a part of the memory that a plan predicts.
#ifndef WINDLASS_RT_RESERVE_H
#define WINDLASS_RT_RESERVE_H

#include <cstdint>
#include <vector>

namespace windlass::rt {

/// What the reserve follows from.
struct reserve_need {
  std::int32_t ranks = 1, threads = 1;
  bool has_processes = false; ///< ranks are processes under MPI, not threads of one
  bool is_one_host = true;
  std::vector<std::int32_t> communicators; ///< members of each that the plan has
  std::int64_t scratch_bytes = 0;          ///< of the compute stream, per thread
  std::int64_t tensors = 0;                ///< parameters, optimizer state and inputs
  std::int64_t input_bytes = 0;            ///< of the inputs of one micro-batch
};

/// Bytes by cause. What --profile measures with and what --dump-gradients gathers comes on top of it.
struct reserve {
  std::int64_t program = 0;       ///< code and libraries, tables, buffers of files
  std::int64_t threads = 0;       ///< stacks, scratch, what kernels or their library keep for each
  std::int64_t communication = 0; ///< staging areas, queues of commands, MPI itself
  std::int64_t total() const { return program + threads + communication; }
};

/// The reserve with the back end that this is compiled for, on this machine's processor. Ranks that are threads of one
/// process each count as one.
reserve declare_reserve(const reserve_need &need);

} // namespace windlass::rt

#endif
