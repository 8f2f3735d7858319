// The order of execution on one rank: streams run their commands one after another, and events order commands of two
// streams.
#ifndef WINDLASS_RT_STREAM_H
#define WINDLASS_RT_STREAM_H

#include "windlass/rt/emulated_link.h"
#include "windlass/rt/kernel_times.h"
#include "windlass/rt/status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace windlass::rt {

/// A point in a stream. `record` raises the generation when the stream reaches it; `wait` blocks a stream until the
/// generation that was the newest *recorded or pending* when wait was issued has been reached (as CUDA events do).
/// Only one stream may record an event, so that generations are reached in their order. A second stream could reach a
/// later generation first and so end waits for an earlier one.
class event {
public:
  event() = default;
  event(const event &) {} // vectors of fresh events only
  ~event();
  std::atomic<std::uint64_t> issued{0}, reached{0};
  std::atomic<std::uint32_t> changes{0}, sleepers{0}; ///< what waiting threads sleep on
  void *native = nullptr;                             ///< a device's own event, made when it is first recorded
  std::uint64_t recording = 0;                        ///< the device recording that it was recorded in last; 0: none
};

/// Runs commands in order: `inline` at once on the caller's thread, `worker` on a thread of its own with a fixed ring
/// of command slots (nothing is allocated per command). The first error sticks and later commands are skipped.
class stream {
public:
  virtual ~stream() = default;
  virtual bool is_inline() const = 0;
  /// Returns whether kernels run on the host's threads, and so on host memory, rather than on a device.
  virtual bool is_on_host() const { return true; }
  virtual status record(event &e) = 0;
  virtual status wait(event &e) = 0;
  virtual status synchronize() = 0;
  /// Returns the number of threads in the compute team that commands of this stream may use.
  std::int32_t threads() const { return threads_; }
  /// Returns the stream's scratch area; commands of one stream never run at the same time, so each may use all of it.
  std::byte *scratch() const { return scratch_; }
  std::int64_t scratch_bytes() const { return scratch_bytes_; }

  /// Returns whether f32 products may round their operands to TF32 (10 bits of mantissa), where the device has units
  /// for it.
  bool multiplies_tf32() const { return multiplies_tf32_; }
  void multiply_tf32(bool on) { multiplies_tf32_ = on; }

  /// Lets copies keep to the rate of a link, which outlives the stream's commands; null ends this.
  void use_link(emulated_link *link) { link_ = link; }
  emulated_link *link() const { return link_; }

  /// Adds the time of each later command that says what it does to `times`; null stops this. Called while the stream
  /// has nothing to do; afterwards `times` knows all of its commands.
  virtual void count_times(kernel_times *times) { times_ = times; }

  /// Runs or enqueues `f`, a trivially copyable callable `status()` of at most `slot_bytes`, which does `what`.
  template <class F> status submit(const work &what, F f) {
    if (times_ == nullptr)
      return submit(f);
    return submit([this, f, what, times = times_]() -> status {
      const double begin = begin_command(what);
      status result = f();
      end_command(what, begin, *times);
      return result;
    });
  }
  /// Runs or enqueues `f` as a command that no table of times shows.
  template <class F> status submit(F f) {
    static_assert(sizeof(F) <= slot_bytes && alignof(F) <= 64, "a command must fit into a slot");
    static_assert(std::is_trivially_copyable_v<F>, "a command is copied as bytes");
    if (is_inline())
      return f();
    return enqueue(&f, sizeof(F), [](void *p) -> status { return (*static_cast<F *>(p))(); });
  }
  static constexpr std::size_t slot_bytes = 4096;

  /// The commands that a worker's ring holds.
  static constexpr std::uint64_t slots = 128;

protected:
  virtual status enqueue(const void *command, std::size_t bytes, status (*run)(void *)) = 0;
  /// Called before a command whose time is counted, by what runs it; `end_command` is called after it.
  virtual double begin_command(const work &) { return clock_seconds(); }
  virtual void end_command(const work &what, double begin, kernel_times &times) {
    times.add(what, begin, clock_seconds());
  }
  std::int32_t threads_ = 1;
  std::byte *scratch_ = nullptr;
  std::int64_t scratch_bytes_ = 0;
  emulated_link *link_ = nullptr;
  kernel_times *times_ = nullptr;
  bool multiplies_tf32_ = false;
};

/// The bytes that a worker stream takes besides its thread.
constexpr std::int64_t stream_bytes = static_cast<std::int64_t>(stream::slots * (stream::slot_bytes + 64));

} // namespace windlass::rt

#endif
