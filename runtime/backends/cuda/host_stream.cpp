// A stream whose commands run on the host's threads, in the order in which a stream of the device comes to them: events
// order both kinds alike.
#include "stream.h"

#include "windlass/rt/detail/team.h"

#include <atomic>
#include <cstring>
#include <ctime>
#include <mutex>

namespace windlass::rt {
namespace cuda {
namespace {

class host_stream final : public stream {
public:
  explicit host_stream(std::int32_t threads)
      : ring_(slots), queue_(/*is_blocking=*/false, threads, nullptr, 0, stream_priority::normal) {
    threads_ = threads;
  }
  bool is_inline() const override { return false; }
  status record(event &e) override { return queue_.record(e); }
  status wait(event &e) override { return queue_.wait(e); }
  status synchronize() override {
    WINDLASS_TRY(queue_.synchronize());
    return error();
  }

protected:
  status enqueue(const void *command, std::size_t bytes, status (*run)(void *)) override {
    WINDLASS_TRY(wait_for_slot());
    slot &own = ring_[pushed_ % slots];
    own.owner = this;
    own.run = run;
    std::memcpy(own.command, command, bytes);
    WINDLASS_TRY(check(cudaLaunchHostFunc(queue_.native(), run_slot, &own), "giving work to the host"));
    ++pushed_;
    return error();
  }

private:
  struct slot {
    host_stream *owner = nullptr;
    status (*run)(void *) = nullptr;
    alignas(64) std::byte command[slot_bytes];
  };

  status wait_for_slot() {
    while (pushed_ - done_.load() >= slots) {
      const cudaError_t state = cudaStreamQuery(queue_.native());
      if (state != cudaErrorNotReady)
        WINDLASS_TRY(check(state, "a command of the host")); // after an error no function is called any more
      const timespec nap = {0, 20'000};
      nanosleep(&nap, nullptr);
    }
    return {};
  }

  /// On a thread of the driver's, which may not call the device.
  static void run_slot(void *data) {
    slot &own = *static_cast<slot *>(data);
    host_stream &to = *own.owner;
    static thread_local std::int32_t prepared = 0;
    if (std::exchange(prepared, to.threads_) != to.threads_)
      detail::prepare_team(to.threads_);
    if (!to.failed_.load())
      if (status result = own.run(own.command); !result.is_ok()) {
        const std::lock_guard<std::mutex> lock(to.error_mutex_);
        to.error_ = std::move(result);
        to.failed_.store(true);
      }
    to.done_.fetch_add(1);
  }

  status error() {
    if (!failed_.load())
      return {};
    const std::lock_guard<std::mutex> lock(error_mutex_);
    return error_;
  }

  std::vector<slot> ring_;
  std::uint64_t pushed_ = 0;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> failed_{false};
  std::mutex error_mutex_;
  status error_;
  device_stream queue_; // last: it ends before what its commands use
};

} // namespace
} // namespace cuda

std::unique_ptr<stream> make_host_stream(std::int32_t threads) { return std::make_unique<cuda::host_stream>(threads); }

} // namespace windlass::rt
