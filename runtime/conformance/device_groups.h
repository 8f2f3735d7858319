// Ranks that are threads, with one device for all of them or one for each.
#ifndef WINDLASS_CONFORMANCE_DEVICE_GROUPS_H
#define WINDLASS_CONFORMANCE_DEVICE_GROUPS_H

#include "testing.h"

#include "communicator.h"
#include "windlass/rt/detail/cuda_stream.h"

#include "windlass/rt/transport.h"

#include <functional>
#include <numeric>
#include <string>
#include <thread>

namespace windlass::rt::testing {

/// How a member opens its device, and then makes its communicator from that of the hosts.
struct device_group {
  std::function<status(transport &)> open;
  std::function<status(const transport &, std::unique_ptr<communicator> hosts, stream &,
                       std::unique_ptr<communicator> &)>
      make;
};

inline device_group shared_device_group() {
  return {[](transport &world) { return detail::open_device(world, 0); }, detail::make_device_communicator};
}

inline device_group nccl_group() {
  return {[](transport &world) { return cuda::check(cudaSetDevice(world.rank()), "a device"); },
          [](const transport &, std::unique_ptr<communicator> hosts, stream &s, std::unique_ptr<communicator> &out) {
            return cuda::make_nccl_communicator(std::move(hosts), s, out);
          }};
}

/// NCCL refuses two ranks of one device; there are as many emulated ones as are asked for. Says what is missing; empty:
/// nothing.
inline std::string missing_for_nccl(std::int32_t ranks) {
  int devices = ranks;
#if !defined(WINDLASS_CUDA_EMULATED)
  if (cudaGetDeviceCount(&devices) != cudaSuccess)
    devices = 0;
#endif
  if (devices < ranks)
    return "needs " + std::to_string(ranks) + " devices, there are " + std::to_string(devices);
  return cuda::open_nccl().message();
}

/// The communicator of all ranks on that stream; the device is open.
inline std::unique_ptr<communicator> make_group(transport &world, const device_group &group, stream &s) {
  std::vector<std::int32_t> members(static_cast<std::size_t>(world.size()));
  std::iota(members.begin(), members.end(), 0);
  std::unique_ptr<communicator> c;
  EXPECT_STATUS_OK(world.make_communicator(members, c));
  EXPECT_STATUS_OK(group.make(world, std::move(c), s, c));
  return c;
}

/// Runs f(transport) for each rank on a thread of its own.
inline void run_members(std::int32_t ranks, const std::function<void(transport &)> &f) {
  std::vector<std::unique_ptr<transport>> world = make_local_transports(ranks);
  std::vector<std::thread> threads;
  for (std::unique_ptr<transport> &each : world)
    threads.emplace_back([&] { f(*each); });
  for (std::thread &t : threads)
    t.join();
}

/// By the number of ranks.
class SharedDevice : public ::testing::TestWithParam<std::int32_t> {};
class Nccl : public ::testing::TestWithParam<std::int32_t> {};

} // namespace windlass::rt::testing

#endif
