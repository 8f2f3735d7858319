// A stream of the device as one of the runtime's streams.
#ifndef WINDLASS_BACKENDS_CUDA_STREAM_H
#define WINDLASS_BACKENDS_CUDA_STREAM_H

#include "device_event.h"

#include "windlass/rt/detail/cuda_device.h"
#include "windlass/rt/streams.h"

#include <functional>
#include <memory>
#include <vector>

namespace windlass::rt::cuda {

/// An error that a kernel found in its data, written by the first thread that finds one. It is in memory that host and
/// device share, and is read when the stream is synchronised.
struct fault {
  unsigned long long kind; ///< 0: none, else a fault_kind
  std::int64_t value, position, limit;
};
enum fault_kind : unsigned long long { no_fault, label_fault, id_fault, index_fault };

class attentions;
class epilogues;
class products;

class device_stream final : public stream {
public:
  /// Makes the stream. With `is_blocking`, every command is done when the call that issues it returns.
  device_stream(bool is_blocking, std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes,
                stream_priority priority);
  ~device_stream() override;
  bool is_inline() const override { return false; }
  bool is_on_host() const override { return false; }
  status record(event &e) override;
  status wait(event &e) override;
  status synchronize() override;
  /// Counts the times between the device's events; commands still run one after another, concurrently with other
  /// streams'.
  void count_times(kernel_times *times) override;

  /// Sets a function that is called while a thread waits for the device; its error ends the wait. Guards are those of
  /// the calling thread's rank, since the streams of a rank wait for each other.
  void guard_with(std::function<status()> guard);
  /// Lets the calling thread wait until this stream has come to where it recorded `e` last.
  status wait_on_host(event &e);

  /// Sets the number of the recording that takes the stream's commands; 0: they run.
  void set_recording(std::uint64_t number) { recording_ = number; }
  /// Forgets what went wrong while commands were recorded.
  void forget_error() { failed_ = {}; }

  cudaStream_t native() const { return native_; }
  fault *faults() const { return fault_; }
  products &gemms();
  cuda::epilogues &epilogues();
  cuda::attentions &attentions();

protected:
  status enqueue(const void *command, std::size_t bytes, status (*run)(void *)) override;
  double begin_command(const work &what) override;
  void end_command(const work &what, double begin, kernel_times &times) override;

private:
  cudaStream_t native_ = nullptr;
  fault *fault_ = nullptr;
  bool is_blocking_;
  std::uint64_t recording_ = 0;
  status wait_for_device();
  bool guards_ = false;  ///< whether this stream has given a guard
  status made_, failed_; ///< of the constructor; the first error of a command, which sticks
  std::unique_ptr<products> gemms_;
  std::unique_ptr<cuda::epilogues> epilogues_;
  std::unique_ptr<cuda::attentions> attentions_;

  /// Commands whose times are still with the device, and events for more.
  struct timed_command {
    work what;
    device_event begin, end;
  };
  device_event take_event();
  void read_times();
  std::vector<timed_command> timed_;
  std::vector<device_event> free_events_;
  device_event origin_{device_event::timed}; ///< of the device's times, and that time of the host
  double origin_seconds_ = 0;
};

inline device_stream &device_stream_of(stream &s) { return static_cast<device_stream &>(s); }

} // namespace windlass::rt::cuda

#endif
