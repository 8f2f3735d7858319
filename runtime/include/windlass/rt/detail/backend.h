// What differs between back ends outside the kernels.
#ifndef WINDLASS_RT_DETAIL_BACKEND_H
#define WINDLASS_RT_DETAIL_BACKEND_H

#include "windlass/rt/status.h"

#include <cstdint>

namespace windlass::rt::detail {

/// The null back end reserves address space only and must not touch it.
#if defined(WINDLASS_BACKEND_NULL)
constexpr bool backend_moves_data = false;
#else
constexpr bool backend_moves_data = true;
#endif

/// Bytes that kernels, or the library that they call, keep for a team of that many threads.
std::int64_t kernel_bytes(std::int32_t threads);
/// Makes what kernels keep for each thread of the team that the calling thread leads, so that no step allocates.
status prepare_kernels(std::int32_t threads);

} // namespace windlass::rt::detail

#endif
