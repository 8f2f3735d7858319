// The streams that a context is made of.
#ifndef WINDLASS_RT_STREAMS_H
#define WINDLASS_RT_STREAMS_H

#include "windlass/rt/stream.h"

#include <memory>

namespace windlass::rt {

/// Runs each command on the calling thread before `submit` returns. `scratch` belongs to the caller and outlives it.
std::unique_ptr<stream> make_inline_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes);

/// Whose kernels a device begins first where several streams have some that could begin. Threads have no order.
enum class stream_priority : std::int32_t { normal, high };

/// Runs commands on a thread of its own, which has finished all of them when the stream is destroyed.
std::unique_ptr<stream> make_worker_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes,
                                           stream_priority priority = stream_priority::normal);

/// Runs kernels on a team of so many of the host's threads, beside other streams; events order them and commands of a
/// device both ways. Kernels are the optimizer's, and fused functions as `on_host`.
std::unique_ptr<stream> make_host_stream(std::int32_t threads);

} // namespace windlass::rt

#endif
