#include "windlass/rt/reserve.h"

#include "windlass/rt/detail/backend.h"
#include "windlass/rt/disk.h"
#include "windlass/rt/program.h"
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
  if constexpr (detail::backend_has_device) {
    return declare_device_reserve(need);
  } else {
    reserve out;
    out.program = process_bytes + file_bytes + need.tensors * tensor_bytes + 4 * need.input_bytes;
    out.threads = need.threads * (thread_bytes + need.scratch_bytes) + detail::kernel_bytes(need.threads);
    out.threads += (need.copy_streams + need.disk_streams) * (stream_bytes + thread_bytes);
    out.threads += need.disk_streams * disk_stream_bytes;
    out.threads += need.host_streams * (stream_bytes + need.threads * thread_bytes);
    if (need.has_processes)
      out.communication = mpi_bytes + message_bytes(need.ranks, need.is_one_host); // what the host's control exchanges
    for (const reserve_need::communicator &each : need.communicators) {
      if (each.members < 2)
        continue;
      out.communication += stream_bytes + thread_bytes;
      if (need.has_processes)
        out.communication += message_bytes(each.members, need.is_one_host);
    }
    return out;
  }
}

reserve reserve_of(const job &j, std::int32_t position, const transport &world, std::int32_t threads) {
  const position_entry &own = j.positions[position];
  const program &p = *own.runs;
  reserve_need need;
  need.ranks = world.size();
  need.threads = threads;
  need.has_processes = !world.is_one_process();
  need.is_one_host = world.is_one_host();
  for (const communicator_entry &entry : p.communicators) {
    reserve_need::communicator &its = need.communicators.emplace_back();
    its.members = entry.positions.size > 0 ? static_cast<std::int32_t>(entry.positions.size) : 1;
    for (const std::int32_t a : entry.axes)
      its.members *= own.axes[a].size;
    its.exchanges = entry.exchanges;
  }
  for (std::int64_t i = 0; i < p.peers.size; ++i) {
    reserve_need::communicator &its = need.communicators.emplace_back();
    its.members = 2;
    its.exchanges = true;
  }
  for (const stream_entry &stream : p.streams) {
    need.copy_streams += stream.kind == stream_kind::h2d || stream.kind == stream_kind::d2h;
    need.host_streams += stream.kind == stream_kind::host;
    need.disk_streams += is_of_disk(stream.kind);
  }
  need.scratch_bytes = p.scratch_bytes;
  need.tensors = p.parameters.size + p.states.size + j.inputs.size;
  for (const input_entry &row : j.inputs) {
    std::int64_t bytes = size_of(row.type);
    for (const std::int64_t size : row.sizes)
      bytes *= size;
    need.input_bytes += bytes;
  }
  reserve out = declare_reserve(need);
  if (j.reserve_bytes >= 0)
    out.given = j.reserve_bytes;
  return out;
}

} // namespace windlass::rt
