// What a GPU's memory holds for a rank beside its arena. docs/memory.md has the figures and their sources as a table.
#include "windlass/rt/reserve.h"

#include <algorithm>

namespace windlass::rt {

namespace {

constexpr std::int64_t kib = 1024, mib = 1024 * kib;

// What the driver keeps for a process: 555 MiB on 188 multiprocessors, 107 MiB on 34 (ggml-org/llama.cpp#23604), 256
// MiB on 82 (invoke-ai/InvokeAI#9413): at most 3.2 MiB on each. H100 and H200 have the most among the presets, 132.
constexpr std::int64_t multiprocessors = 132, multiprocessor_bytes = 3277 * kib;
// Kernels are loaded when they are first run (CUDA's lazy loading). A context with those of PyTorch and of the library
// of products took about 300 MiB altogether (pytorch/pytorch#107667): this is what 132 multiprocessors leave of 550
// MiB.
constexpr std::int64_t module_bytes = 128 * mib;

// A channel receives from each neighbour through a buffer for each protocol (NVIDIA/nccl, src/init.cc: Simple 4 MiB,
// LL 8 x 512 x 8 x 16 bytes, LL128 120 x 640 x 8 x 8 bytes), in pages of 2 MiB, and has a page to send:
// NVIDIA/nccl#1685 lists allocations of 10485760 and 2097152 bytes.
constexpr std::int64_t page_bytes = 2 * mib;
constexpr std::int64_t protocol_bytes = 4 * mib + 8 * 512 * 8 * 16 + 120 * 640 * 8 * 8;
constexpr std::int64_t buffer_bytes = (protocol_bytes + page_bytes - 1) / page_bytes * page_bytes;
constexpr std::int64_t link_bytes = buffer_bytes + page_bytes;
// What a communicator takes besides. On four A100 one of 2 members took 544 MiB, one of more 688 MiB
// (NVIDIA/nccl#964); with 24 channels, as on A100, this makes 544 MiB and 832 MiB.
constexpr std::int64_t group_bytes = 256 * mib;
// Channels between two members that send to each other, which are a power of 2, and what each takes: an all-to-all of 8
// H100 took 3.28 GB (NVIDIA/nccl#1685), 14 MiB for each of 7 x 32.
constexpr std::int64_t pair_channels = 32, pair_bytes = 14 * mib;
// Members that reach each other in one host. Those beyond share buffers (NVIDIA/nccl#1450).
constexpr std::int64_t most_in_host = 8;

std::int64_t communicator_bytes(const reserve_need::communicator &its, bool is_one_host) {
  if (its.members < 2)
    return 0;
  // A ring and a tree in a host have one neighbour on each side, whatever their size (NVIDIA/nccl#986).
  const std::int64_t neighbours = std::min(its.members - 1, 2);
  std::int64_t bytes = group_bytes + nccl_channels * neighbours * link_bytes;
  // From host to host a channel sends and receives through buffers.
  if (!is_one_host)
    bytes += nccl_channels * 2 * buffer_bytes;
  if (its.exchanges)
    bytes += std::min<std::int64_t>(its.members - 1, most_in_host - 1) * pair_channels * pair_bytes;
  return bytes;
}

} // namespace

reserve declare_device_reserve(const reserve_need &need) {
  reserve out;
  out.context = multiprocessors * multiprocessor_bytes;
  out.program = module_bytes;
  out.workspaces = need.scratch_bytes + device_workspace_bytes; // one command runs at a time
  // Threads on one device copy from each other's memory.
  if (need.has_processes)
    for (const reserve_need::communicator &each : need.communicators)
      out.communication += communicator_bytes(each, need.is_one_host);
  return out;
}

} // namespace windlass::rt
