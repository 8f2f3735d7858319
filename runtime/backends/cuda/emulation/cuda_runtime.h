// Stands in for CUDA's header of this name where no device is: the same kernels, compiled by a C++ compiler, run on the
// processor. One block runs after another; its threads are fibers that change places at barriers, so that shared
// memory and warps behave as the kernels expect. Only what the back end uses is here.
//
// Commands are done at once, or in orders that are drawn (streams.h).
//
// Memory of the "device" cannot be reached between launches and copies: host code that touches it ends with a signal,
// as it would with a device.
//
// What the machine lacks is a matter of the environment, for tests: WINDLASS_EMULATED_DEVICES (how many there are; 1),
// _DRIVER (its version as CUDA counts, 0 for none; 13000), _FREE (bytes of a device; 2^40), _KERNELS (0: compiled for
// other architectures).
#ifndef WINDLASS_BACKENDS_CUDA_EMULATION_CUDA_RUNTIME_H
#define WINDLASS_BACKENDS_CUDA_EMULATION_CUDA_RUNTIME_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __shared__ static thread_local

struct emulated_place {
  unsigned x = 0, y = 0, z = 0;
};
struct emulated_stream;
extern thread_local emulated_place threadIdx, blockIdx, blockDim, gridDim;

namespace windlass::rt::cuda::emulation {
/// Runs `thread` once for every thread of every block, when the stream comes to it.
int launch(struct ::emulated_stream *stream, unsigned blocks, unsigned threads, std::function<void()> thread);
/// The bytes that another lane of the warp gave to the same call.
void exchange(void *value, std::size_t bytes, unsigned lane);
/// Those of all 32 lanes, one behind the other.
void collect(const void *value, std::size_t bytes, void *all);
} // namespace windlass::rt::cuda::emulation

void __syncthreads();
void __syncwarp();
template <class T> T __shfl_xor_sync(unsigned, T value, int mask) {
  windlass::rt::cuda::emulation::exchange(&value, sizeof value, threadIdx.x % 32 ^ static_cast<unsigned>(mask));
  return value;
}
template <class T> T __shfl_sync(unsigned, T value, int lane) {
  windlass::rt::cuda::emulation::exchange(&value, sizeof value, static_cast<unsigned>(lane));
  return value;
}
/// Fibers of one thread take turns at barriers only.
inline unsigned long long atomicCAS(unsigned long long *at, unsigned long long expected, unsigned long long value) {
  const unsigned long long old = *at;
  if (old == expected)
    *at = value;
  return old;
}
inline void __threadfence_system() {}

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorNotReady = 600,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureUnjoined = 904,
  cudaErrorStreamCaptureIsolation = 905,
  cudaErrorCapturedEvent = 907,
};
using cudaStream_t = struct emulated_stream *;
using cudaGraph_t = struct emulated_graph *;
using cudaGraphExec_t = struct emulated_graph *;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
using cudaEvent_t = struct emulated_event *;
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};
constexpr unsigned long long cudaGraphInstantiateFlagUseNodePriority = 8;
constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2,
                   cudaHostAllocDefault = 0;
struct cudaDeviceProp {
  char name[256];
  struct {
    char bytes[16];
  } uuid;
  int major, minor;
};
struct cudaFuncAttributes {
  int binaryVersion;
};

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total);
cudaError_t emulated_kernel_image();
template <class F> cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *out, F) {
  *out = {};
  return emulated_kernel_image();
}
cudaError_t cudaMalloc(void **out, std::size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaHostAlloc(void **out, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
using cudaHostFn_t = void (*)(void *);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaMemsetAsync(void *memory, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);
cudaError_t cudaDeviceSynchronize();

#endif
