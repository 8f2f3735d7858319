#include "windlass/rt/reserve.h"

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/stream.h"
#include "windlass/rt/transport.h"

namespace windlass::rt {

namespace {

constexpr std::int64_t kib = 1024, mib = 1024 * kib;

// Measured on Debian 12 and rounded up. A process without MPI: 7.5 MiB of code, libraries and heap; Open MPI 4.1 adds
// 9 to 11 MiB in jobs of 2 to 8 ranks of one host. A thread touches up to 300 KiB of its stack and heap.
constexpr std::int64_t process_bytes = 12 * mib, mpi_bytes = 16 * mib, thread_bytes = 512 * kib;
// Names, rows of tables, and the manifest of a checkpoint while it is written or read.
constexpr std::int64_t tensor_bytes = 8 * kib;
// The windows through which files are read.
constexpr std::int64_t file_bytes = 2 * mib;

} // namespace

reserve declare_reserve(const reserve_need &need) {
  reserve out;
  out.program = process_bytes + file_bytes + need.tensors * tensor_bytes + 4 * need.input_bytes;
  out.threads = need.threads * (thread_bytes + need.scratch_bytes) + detail::kernel_bytes(need.threads);
  if (need.has_processes)
    out.communication = mpi_bytes + message_bytes(need.ranks, need.is_one_host); // what the host's control exchanges
  for (const std::int32_t members : need.communicators) {
    if (members < 2)
      continue;
    out.communication += stream_bytes + thread_bytes;
    if (need.has_processes)
      out.communication += message_bytes(members, need.is_one_host);
  }
  return out;
}

} // namespace windlass::rt
