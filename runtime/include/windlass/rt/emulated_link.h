// Links and disks that processors emulate.
#ifndef WINDLASS_RT_EMULATED_LINK_H
#define WINDLASS_RT_EMULATED_LINK_H

#include <cstdint>
#include <mutex>

namespace windlass::rt {

/// One direction of a link, or a disk. What moves over it takes turns, so that all of it together keeps to one rate.
class emulated_link {
public:
  /// Sets the rate in bytes per second; with 0, nothing waits.
  void set_rate(std::int64_t bytes_per_second) { bytes_per_second_ = bytes_per_second; }
  /// Sleeps until the link would have moved `bytes`. It begins to move them at `begin`, in seconds of clock_seconds(),
  /// or when it is done with what came before.
  void wait(double begin, std::int64_t bytes);

private:
  std::int64_t bytes_per_second_ = 0;
  std::mutex mutex_;
  double free_ = 0; ///< when it is done with all that it was given
};

} // namespace windlass::rt

#endif
