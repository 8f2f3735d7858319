// The device of a rank: which one, whether it can run the program, and its memory.
#include "kernel.h"

#include "windlass/rt/backend.h"
#include "windlass/rt/detail/backend.h"
#include "windlass/rt/transport.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

namespace windlass::rt {

namespace cuda {
namespace {

__global__ void probe_kernel() {}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string visible_devices() {
  const char *text = std::getenv("CUDA_VISIBLE_DEVICES");
  return text == nullptr ? "" : text;
}

/// A rank's number among those of its host, as launchers tell it; -1 where none does.
std::int32_t local_number() {
  for (const char *name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"})
    if (const char *text = std::getenv(name))
      return static_cast<std::int32_t>(std::strtol(text, nullptr, 10));
  return -1;
}

status count_devices(int &count) {
  int driver = 0, runtime = 0;
  cudaRuntimeGetVersion(&runtime);
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return bad_input("this machine has no driver for CUDA devices; install it, or build with -DWINDLASS_BACKEND=cpu");
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaErrorInsufficientDriver || driver / 1000 < runtime / 1000)
    return bad_input("the driver is for CUDA " + version_text(driver) + ", the program was built with CUDA " +
                     version_text(runtime) + "; update the driver, or build with an older toolkit");
  if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) {
    const std::string visible = visible_devices();
    return bad_input(std::getenv("CUDA_VISIBLE_DEVICES") == nullptr
                         ? "this machine has no CUDA device; build with -DWINDLASS_BACKEND=cpu"
                         : "no CUDA device is visible: CUDA_VISIBLE_DEVICES is '" + visible +
                               "', which names none that this machine has");
  }
  WINDLASS_TRY(check(result, "counting devices"));
  // The driver leaves out what follows an entry that it does not know, or that is there twice, and says nothing.
  const std::string visible = visible_devices();
  const auto named = std::count(visible.begin(), visible.end(), ',') + 1;
  if (!visible.empty() && named != count)
    return bad_input("CUDA_VISIBLE_DEVICES is '" + visible + "' and names " + std::to_string(named) +
                     " devices, of which the driver shows " + std::to_string(count) +
                     "; name each device that this machine has once");
  return {};
}

/// Whether the device's architecture is among those that the program was compiled for.
status check_architecture(int device, const cudaDeviceProp &properties) {
  cudaFuncAttributes attributes;
  const cudaError_t result = cudaFuncGetAttributes(&attributes, probe_kernel);
  if (result == cudaSuccess)
    return {};
  cudaGetLastError(); // it would be the next call's
  if (result != cudaErrorNoKernelImageForDevice)
    return check(result, "loading the program's kernels");
  return bad_input(
      std::string("the program was not compiled for device ") + std::to_string(device) + ", " + properties.name +
      " of architecture sm_" + std::to_string(properties.major) + std::to_string(properties.minor) +
      "; build with -DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(properties.major) + std::to_string(properties.minor));
}

/// Whether every rank has a device of its own. Collective over all ranks.
status check_shares_none(transport &world, const cudaDeviceProp &mine) {
  constexpr std::size_t bytes = sizeof mine.uuid;
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<std::int32_t> members(ranks);
  std::iota(members.begin(), members.end(), 0);
  std::unique_ptr<communicator> all;
  WINDLASS_TRY(world.make_communicator(members, all));
  std::vector<std::byte> devices(ranks * bytes);
  WINDLASS_TRY(all->all_gather(devices.data(), reinterpret_cast<const std::byte *>(&mine.uuid), bytes));
  for (std::size_t a = 0; a < ranks; ++a)
    for (std::size_t b = a + 1; b < ranks; ++b)
      if (std::memcmp(&devices[a * bytes], &devices[b * bytes], bytes) == 0)
        return bad_input("ranks " + std::to_string(a) + " and " + std::to_string(b) +
                         " are processes with the same CUDA device" +
                         (static_cast<std::int32_t>(a) == world.rank() ? std::string(", ") + mine.name : "") +
                         "; start fewer ranks for each host, or run them as threads with --communicator local");
  return {};
}

} // namespace
} // namespace cuda

status detail::open_device(transport &world, std::int64_t bytes) {
  int count = 0;
  WINDLASS_TRY(cuda::count_devices(count));
  // Threads share the first device. A launcher may show each process a device of its own only.
  const std::int32_t number = world.is_one_process() ? 0 : cuda::local_number();
  const int device = (number < 0 ? world.rank() : number) % count;
  WINDLASS_TRY(cuda::check(cudaSetDevice(device), "choosing a device"));
  cudaDeviceProp properties;
  WINDLASS_TRY(cuda::check(cudaGetDeviceProperties(&properties, device), "asking for the device's properties"));
  WINDLASS_TRY(cuda::check_architecture(device, properties));
  if (!world.is_one_process())
    WINDLASS_TRY(cuda::check_shares_none(world, properties));
  std::size_t free = 0, total = 0;
  WINDLASS_TRY(cuda::check(cudaMemGetInfo(&free, &total), "asking for free memory"));
  if (static_cast<std::int64_t>(free) < bytes)
    return bad_input("device " + std::to_string(device) + " has " + std::to_string(free) + " of " +
                     std::to_string(total) + " bytes free, the plan needs " + std::to_string(bytes) + " for rank " +
                     std::to_string(world.rank()) +
                     "; end what else runs there, or plan with a smaller --memory-limit or more ranks")
        .as(diagnostic::allocation);
  return {};
}

std::string detail::device_name() {
  int device = 0;
  cudaDeviceProp properties = {};
  return cudaGetDevice(&device) == cudaSuccess && cudaGetDeviceProperties(&properties, device) == cudaSuccess
             ? properties.name
             : "";
}

status detail::allocate_memory(memory_kind kind, std::int64_t bytes, const char *what, std::byte *&out) {
  void *memory = nullptr;
  const auto size = static_cast<std::size_t>(bytes);
  const cudaError_t result =
      kind == memory_kind::device ? cudaMalloc(&memory, size) : cudaHostAlloc(&memory, size, cudaHostAllocDefault);
  if (result != cudaSuccess) {
    cudaGetLastError();
    return bad_input("cannot allocate " + std::to_string(bytes) + " bytes for the " + what + " arena " +
                     (kind == memory_kind::device ? "on the device: " : "in pinned host memory: ") +
                     cudaGetErrorString(result) + "; plan with a smaller --memory-limit or more ranks")
        .as(diagnostic::allocation);
  }
  out = static_cast<std::byte *>(memory);
  return {};
}

void detail::free_memory(memory_kind kind, std::byte *memory) {
  if (kind == memory_kind::device)
    cudaFree(memory);
  else
    cudaFreeHost(memory);
}

status detail::copy_to_device(stream &s, std::byte *to, const std::byte *from, std::int64_t bytes) {
  return cuda::check(
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, cuda::native(s)),
      "a copy to the device");
}

status detail::copy_to_host(stream &s, std::byte *to, const std::byte *from, std::int64_t bytes) {
  WINDLASS_TRY(
      cuda::check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, cuda::native(s)),
                  "a copy to the host"));
  return s.synchronize();
}

status detail::wait_on_host(stream &s, event &e) { return cuda::device_stream_of(s).wait_on_host(e); }

status detail::prepare_kernels(std::int32_t) { return {}; }

backend_facts describe_backend() {
  backend_facts facts = {"cuda", "cuBLASLt", {}};
  int count = 0;
  facts.result = cuda::count_devices(count).as(diagnostic::backend);
  return facts;
}

} // namespace windlass::rt
