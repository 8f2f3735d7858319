// Events of the device with an owner.
#ifndef WINDLASS_BACKENDS_CUDA_DEVICE_EVENT_H
#define WINDLASS_BACKENDS_CUDA_DEVICE_EVENT_H

#include "windlass/rt/detail/cuda_stream.h"

#include <utility>

namespace windlass::rt::cuda {

/// A point in a stream's commands that other streams can wait for, or whose time the device notes.
class device_event {
public:
  enum kind { untimed, timed }; ///< the first costs less
  explicit device_event(kind of = untimed) : kind_(of) {}
  device_event(device_event &&other) noexcept : kind_(other.kind_), native_(std::exchange(other.native_, nullptr)) {}
  device_event &operator=(device_event &&other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(native_, other.native_);
    return *this;
  }
  ~device_event() {
    if (native_ != nullptr)
      cudaEventDestroy(native_);
  }

  /// Makes the event at the first call; `record` does so too.
  status create() {
    if (native_ != nullptr)
      return {};
    return check(cudaEventCreateWithFlags(&native_, kind_ == timed ? cudaEventDefault : cudaEventDisableTiming),
                 "making an event");
  }
  status record(cudaStream_t on) {
    WINDLASS_TRY(create());
    return check(cudaEventRecord(native_, on), "recording an event");
  }
  /// Makes the later commands of `later` wait for the commands before the event.
  status hold(cudaStream_t later) const {
    return check(cudaStreamWaitEvent(later, native_, 0), "waiting for an event");
  }
  /// Returns the seconds between two timed events, after both were reached.
  status seconds_since(const device_event &begin, double &out) const {
    float milliseconds = 0;
    WINDLASS_TRY(check(cudaEventElapsedTime(&milliseconds, begin.native_, native_), "reading a time"));
    out = double(milliseconds) * 1e-3;
    return {};
  }

private:
  kind kind_;
  cudaEvent_t native_ = nullptr;
};

} // namespace windlass::rt::cuda

#endif
