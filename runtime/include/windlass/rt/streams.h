// The streams that a context is made of.
#ifndef WINDLASS_RT_STREAMS_H
#define WINDLASS_RT_STREAMS_H

#include "windlass/rt/stream.h"

#include <memory>

namespace windlass::rt {

/// Makes a stream that runs each command on the calling thread before `submit` returns. `scratch` belongs to the caller
/// and outlives the stream.
std::unique_ptr<stream> make_inline_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes);

/// The priority of a stream's kernels where a device could begin those of several streams. Threads have no order.
enum class stream_priority : std::int32_t { normal, high };

/// Makes a stream that runs commands on a thread of its own, which has finished all of them when the stream is
/// destroyed.
std::unique_ptr<stream> make_worker_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes,
                                           stream_priority priority = stream_priority::normal);

/// Makes a stream that runs kernels on a team of `threads` host threads, concurrently with other streams; events order
/// them and a device's commands both ways. The kernels are the optimizer's, and fused functions as `on_host`.
std::unique_ptr<stream> make_host_stream(std::int32_t threads);

} // namespace windlass::rt

#endif
