// Commands of streams as graphs of the device.
#include "device_event.h"
#include "stream.h"

#include "windlass/rt/detail/backend.h"

#include <atomic>

namespace windlass::rt {
namespace cuda {
namespace {

/// `later` goes on when `earlier` has come to where it is now.
status order(stream &earlier, stream &later, device_event &by) {
  WINDLASS_TRY(by.record(native(earlier)));
  return by.hold(native(later));
}

using stream_list = std::vector<stream *>;

/// The first waits for the others.
status gather(const stream_list &streams, device_event &by) {
  for (std::size_t i = 1; i < streams.size(); ++i)
    WINDLASS_TRY(order(*streams[i], *streams.front(), by));
  return {};
}
/// The others wait for the first.
status scatter(const stream_list &streams, device_event &by) {
  for (std::size_t i = 1; i < streams.size(); ++i)
    WINDLASS_TRY(order(*streams.front(), *streams[i], by));
  return {};
}

class graph final : public detail::recorded_commands {
public:
  graph(const stream_list &streams, cudaGraphExec_t commands) : streams_(streams), commands_(commands) {}
  graph(const graph &) = delete;
  graph &operator=(const graph &) = delete;
  ~graph() override { cudaGraphExecDestroy(commands_); }

  status run() override {
    WINDLASS_TRY(gather(streams_, border_));
    WINDLASS_TRY(check(cudaGraphLaunch(commands_, native(*streams_.front())), "the launch of a graph"));
    return scatter(streams_, border_);
  }

private:
  stream_list streams_;
  cudaGraphExec_t commands_;
  device_event border_;
};

void set_recording(const stream_list &streams, std::uint64_t number) {
  for (stream *each : streams)
    device_stream_of(*each).set_recording(number);
}

} // namespace
} // namespace cuda

status detail::begin_recording(const std::vector<stream *> &streams) {
  static std::atomic<std::uint64_t> recordings{0};
  for (stream *each : streams)
    WINDLASS_TRY(each->synchronize());
  // Other threads of the process, such as NCCL's, may do what they like meanwhile.
  WINDLASS_TRY(cuda::check(cudaStreamBeginCapture(cuda::native(*streams.front()), cudaStreamCaptureModeThreadLocal),
                           "recording commands"));
  cuda::set_recording(streams, ++recordings);
  cuda::device_event fork;
  return cuda::scatter(streams, fork);
}

status detail::end_recording(const std::vector<stream *> &streams, bool is_wanted,
                             std::unique_ptr<recorded_commands> &out) {
  out = nullptr;
  cuda::device_event join;
  const bool has_joined = cuda::gather(streams, join).is_ok();
  cudaGraph_t commands = nullptr;
  cudaGraphExec_t ready = nullptr;
  if (cudaStreamEndCapture(cuda::native(*streams.front()), &commands) != cudaSuccess)
    commands = nullptr;
  // Each command keeps the priority of the stream that recorded it.
  if (is_wanted && has_joined && commands != nullptr &&
      cudaGraphInstantiate(&ready, commands, cudaGraphInstantiateFlagUseNodePriority) == cudaSuccess)
    out = std::make_unique<cuda::graph>(streams, ready);
  if (commands != nullptr)
    cudaGraphDestroy(commands);
  cudaGetLastError(); // what could not be recorded is no error of the next call
  cuda::set_recording(streams, 0);
  for (stream *each : streams)
    cuda::device_stream_of(*each).forget_error();
  return {};
}

} // namespace windlass::rt
