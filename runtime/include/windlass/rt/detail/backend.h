// What differs between back ends outside the kernels.
#ifndef WINDLASS_RT_DETAIL_BACKEND_H
#define WINDLASS_RT_DETAIL_BACKEND_H

#include "windlass/rt/attention_shape.h"
#include "windlass/rt/place.h"
#include "windlass/rt/products.h"
#include "windlass/rt/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace windlass::rt {
class communicator;
class stream;
class transport;
} // namespace windlass::rt

namespace windlass::rt::detail {

struct fused_product;

/// The null back end reserves address space only and must not touch it.
#if defined(WINDLASS_BACKEND_NULL)
constexpr bool backend_moves_data = false;
#else
constexpr bool backend_moves_data = true;
#endif

/// Whether commands run on a device with a memory of its own, beside the thread that issues them.
#if defined(WINDLASS_BACKEND_CUDA)
constexpr bool backend_has_device = true;
#else
constexpr bool backend_has_device = false;
#endif

// Of back ends with a device only.

/// Chooses the device of this thread's rank and checks that it can run the program and has that many bytes free.
/// Collective over ranks that are processes, of which no two may have the same device.
status open_device(transport &world, std::int64_t bytes);
/// Of this thread's rank, as its driver calls it.
std::string device_name();
status allocate_memory(memory_kind kind, std::int64_t bytes, const char *what, std::byte *&out);
void free_memory(memory_kind kind, std::byte *memory);
/// After the commands of `s` issued so far; the first may return before the copy is made, but not before `from` may
/// change.
status copy_to_device(stream &s, std::byte *to, const std::byte *from, std::int64_t bytes);
status copy_to_host(stream &s, std::byte *to, const std::byte *from, std::int64_t bytes);
/// Ranges of the host's time for tools that watch programs for devices (NVTX); nothing where no tool does. Names are
/// copied.
void push_range(const char *name);
void pop_range();
/// Products of `s` are computed as chosen, and fused ones by the library, where the choices are for this device and its
/// library. Says whether they are.
std::string choose_products(stream &s, const product_choices &choices);
/// How many shapes of products `s` has seen, and of how many a choice was taken.
std::string describe_products(stream &s);
/// From now on the first product of each shape makes `s` try several algorithms, and stay with the fastest; a fused one
/// also whether two kernels are faster.
void tune_products(stream &s);
/// What that has found.
struct tuned_product {
  std::string product;
  product_algorithm algorithm;
  double seconds, first_seconds; ///< of one product by it, and by the library's first guess
};
const std::vector<tuned_product> &tuned_products(stream &s);
std::string product_library(stream &s);
/// Computes by the library, or by `apart`, which computes the same.
status run_fused(stream &s, const fused_product &of, const std::function<status()> &apart);
struct tuned_epilogue {
  double seconds, apart_seconds; ///< by the library in one pass, and as two kernels
};
/// Of the last fused product since this was asked for the last time; false where there was none that the library can
/// compute.
bool take_tuned_epilogue(stream &s, tuned_epilogue &out);
/// Makes what the library of attentions needs for those that were chosen, where the choices are for this device and its
/// library; the own kernels compute all others. Says what came of it.
std::string choose_attentions(stream &s, const attention_choices &choices);
/// From now on the first attention of each shape makes `s` try both, and stay with what is faster. Says whether there
/// is a library.
std::string tune_attentions(stream &s);
struct tuned_attention {
  double seconds, own_seconds; ///< of one by the library, and by the own kernels
  std::int64_t workspace_bytes;
};
/// Of the last attention since this was asked for the last time; false where there was none that the library can
/// compute.
bool take_tuned_attention(stream &s, tuned_attention &out);
std::string attention_library_name(stream &s);
/// Commands of some streams that a device has recorded, and runs as one.
class recorded_commands {
public:
  virtual ~recorded_commands() = default;
  /// After all that the streams were given before, and before all that they are given later.
  virtual status run() = 0;
};
/// From now on the streams record commands instead of running them. Events of before and of the recording do not mix:
/// to wait for one from the other side does nothing.
status begin_recording(const std::vector<stream *> &streams);
/// Ends it. Nothing comes out where the device could not record, or `is_wanted` is false; the streams are as before.
status end_recording(const std::vector<stream *> &streams, bool is_wanted, std::unique_ptr<recorded_commands> &out);
/// Collectives on the device's memory for a group whose hosts reach each other by `hosts`; they run on `s`. Collective
/// over the members.
status make_device_communicator(const transport &world, std::unique_ptr<communicator> hosts, stream &s,
                                std::unique_ptr<communicator> &out);

/// A range as long as its life; nothing in back ends without a device.
class named_range {
public:
  explicit named_range(const char *name) {
    if constexpr (backend_has_device)
      push_range(name);
  }
  named_range(const named_range &) = delete;
  named_range &operator=(const named_range &) = delete;
  ~named_range() {
    if constexpr (backend_has_device)
      pop_range();
  }
};

// Of back ends without a device.

/// Bytes that kernels, or the library that they call, keep for a team of that many threads.
std::int64_t kernel_bytes(std::int32_t threads);

// Of every back end.

/// Makes what kernels keep for each thread of the team that the calling thread leads, so that no step allocates.
status prepare_kernels(std::int32_t threads);

} // namespace windlass::rt::detail

#endif
