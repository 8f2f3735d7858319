// The memory that a rank takes besides its arenas, declared before it runs: a part of the memory that a plan predicts.
#ifndef WINDLASS_RT_RESERVE_H
#define WINDLASS_RT_RESERVE_H

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace windlass::rt {

struct job;
class transport;

/// The inputs that the reserve follows from.
struct reserve_need {
  std::int32_t ranks = 1, threads = 1;
  bool has_processes = false; ///< ranks are MPI processes, not threads of one process
  bool is_one_host = true;
  struct communicator {
    std::int32_t members = 1;
    bool exchanges = false; ///< it has all-to-alls or permutes, which send from each member to others
  };
  std::vector<communicator> communicators; ///< the plan's communicators
  std::int32_t copy_streams = 0;           ///< between the device's memory and the host's
  std::int32_t host_streams = 0;           ///< of kernels on the host's memory, each with a team of `threads`
  std::int32_t disk_streams = 0;           ///< between the disk and the host's memory
  std::int64_t scratch_bytes = 0;          ///< of the compute stream, per thread
  std::int64_t tensors = 0;                ///< parameters, optimizer state and inputs
  std::int64_t input_bytes = 0;            ///< of the inputs of one micro-batch
};

/// The reserved bytes by cause. What --profile measures with and what --dump-gradients gathers comes on top of them.
struct reserve {
  std::int64_t context = 0;       ///< for a device: what its driver keeps for a process
  std::int64_t program = 0;       ///< code and libraries; for a process also tables and buffers of files
  std::int64_t threads = 0;       ///< stacks, scratch, and what kernels or their library keep for each thread
  std::int64_t workspaces = 0;    ///< for a device: scratch of the plan and of libraries
  std::int64_t communication = 0; ///< staging areas, queues of commands, MPI or NCCL itself
  /// What the user gave (`windlass plan --reserve`): the total, whatever the causes above take.
  std::optional<std::int64_t> given;
  std::vector<std::pair<const char *, std::int64_t>> causes() const {
    if (given)
      return {{"given", *given}};
    return {{"context", context},
            {"program", program},
            {"threads", threads},
            {"workspaces", workspaces},
            {"communication", communication}};
  }
  std::int64_t total() const { return given ? *given : context + program + threads + workspaces + communication; }
};

/// The scratch of a device's compute stream besides what the program plans: for the library of products and for partial
/// sums.
constexpr std::int64_t device_workspace_bytes = std::int64_t(64) << 20;
/// The most channels that a communicator of NCCL is given.
constexpr std::int32_t nccl_channels = 24;

/// Returns the reserve in a device's memory of a rank that has the device to itself. Back ends without devices can
/// compute it too: plans are made without devices.
reserve declare_device_reserve(const reserve_need &need);

/// Returns the reserve with the back end that this is compiled for, on this machine, in the memory that holds arenas.
/// Ranks that are threads of one process count as one each.
reserve declare_reserve(const reserve_need &need);

/// Returns the reserve of each rank of position `position` of a job, with what its causes take where the total is
/// given.
reserve reserve_of(const job &j, std::int32_t position, const transport &world, std::int32_t threads);

} // namespace windlass::rt

#endif
