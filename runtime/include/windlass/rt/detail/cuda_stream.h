// Streams and errors of CUDA devices, for code that has no kernels.
#ifndef WINDLASS_RT_DETAIL_CUDA_STREAM_H
#define WINDLASS_RT_DETAIL_CUDA_STREAM_H

#include "windlass/rt/status.h"

#include <cuda_runtime.h>

#include <string>

namespace windlass::rt {
class stream;
}

namespace windlass::rt::cuda {

inline status check(cudaError_t result, const char *what) {
  if (result == cudaSuccess)
    return {};
  return internal_error(std::string("cuda: ") + what + " failed: " + cudaGetErrorString(result));
}

/// Returns the device's stream behind one of the runtime's.
cudaStream_t native(const stream &s);

} // namespace windlass::rt::cuda

#endif
