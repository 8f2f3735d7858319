// What ranks tell each other outside the step: errors of the set-up, flags to stop, small values.
#ifndef WINDLASS_RT_SRC_PROGRAM_CONTROL_H
#define WINDLASS_RT_SRC_PROGRAM_CONTROL_H

#include "windlass/rt/communicator.h"
#include "windlass/rt/program.h"

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace windlass::rt {

/// A communicator of all ranks for the host's own use. Every call is collective.
class control {
public:
  status create(transport &world);
  std::int32_t rank() const { return rank_; }
  std::int32_t size() const { return size_; }

  /// Gathers every rank's `bytes` bytes, one after the other in order of rank.
  status gather(const void *mine, std::int64_t bytes, std::vector<std::byte> &out);
  /// Gathers every rank's value in order of rank; `all` is valid until the next call.
  template <class T> status gather(const T &mine, span<T> &all) {
    static_assert(std::is_trivially_copyable_v<T>);
    WINDLASS_TRY(gather(&mine, sizeof(T), room_));
    all = {reinterpret_cast<const T *>(room_.data()), size_};
    return ok_status();
  }
  /// Gives rank 0's text to every rank.
  status share(std::string &text);
  /// Returns the error of the lowest rank that has one, on every rank; ok when none has.
  status agree(const status &mine);
  status barrier();

private:
  std::unique_ptr<communicator> group_;
  std::int32_t rank_ = 0, size_ = 1;
  std::vector<std::byte> room_;
};

} // namespace windlass::rt

#endif
