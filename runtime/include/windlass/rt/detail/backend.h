// The functions that differ between back ends, other than kernels.
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
class event;
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

/// Whether commands run on a device with a memory of its own, concurrently with the thread that issues them.
#if defined(WINDLASS_BACKEND_CUDA)
constexpr bool backend_has_device = true;
#else
constexpr bool backend_has_device = false;
#endif

// For back ends with a device only.

/// Chooses the device of this thread's rank and checks that it can run the program and has `bytes` bytes free.
/// Collective over ranks that are processes, no two of which may have the same device.
status open_device(transport &world, std::int64_t bytes);
/// Returns the name of this thread's rank's device, as its driver gives it.
std::string device_name();
status allocate_memory(memory_kind kind, std::int64_t bytes, const char *what, std::byte *&out);
void free_memory(memory_kind kind, std::byte *memory);
/// Copies after the commands of `s` issued so far. `copy_to_device` may return before the copy is made; `from` may
/// change then unless it is pinned.
status copy_to_device(stream &s, std::byte *to, const std::byte *from, std::int64_t bytes);
status copy_to_host(stream &s, std::byte *to, const std::byte *from, std::int64_t bytes);
/// Lets the calling thread wait until `s` has come to where it recorded `e` last.
status wait_on_host(stream &s, event &e);
/// Begins a range of the host's time for tools that watch programs for devices (NVTX), `pop_range` ends it; both do
/// nothing without such a tool. Names are copied.
void push_range(const char *name);
void pop_range();
/// Computes products of `s` by the chosen algorithms, and fused ones by the library, where the choices are for this
/// device and its library. Returns a text that says whether they are.
std::string choose_products(stream &s, const product_choices &choices);
/// Describes how many shapes of products `s` has seen, and for how many a choice was taken.
std::string describe_products(stream &s);
/// Makes `s` try several algorithms for the first product of each later shape, and keep the fastest; for a fused
/// product it also tries two kernels.
void tune_products(stream &s);
/// The result of tuning a product.
struct tuned_product {
  std::string product;
  product_algorithm algorithm;
  double seconds, first_seconds; ///< one product by that algorithm, and by the library's first guess
};
const std::vector<tuned_product> &tuned_products(stream &s);
std::string product_library(stream &s);
/// Computes by the library, or by `apart`, which computes the same.
status run_fused(stream &s, const fused_product &of, const std::function<status()> &apart);
struct tuned_epilogue {
  double seconds, apart_seconds; ///< by the library in one pass, and as two kernels
};
/// Takes the times of the last fused product since the last call; false where there was none that the library can
/// compute.
bool take_tuned_epilogue(stream &s, tuned_epilogue &out);
/// Prepares what the library of attentions needs for the chosen ones, and tries each once on `bytes` bytes of
/// memory, which it overwrites; our own kernels compute all others. Returns a text that says what came of it.
std::string choose_attentions(stream &s, span<attention_choice> choices, std::byte *memory, std::int64_t bytes);
/// Makes `s` try both ways for the first attention of each later shape, and keep the faster one. Returns a text that
/// says whether there is a library.
std::string tune_attentions(stream &s);
struct tuned_attention {
  double seconds, own_seconds; ///< one attention by the library, and by our own kernels
  std::int64_t workspace_bytes;
};
/// Takes the times of the last attention since the last call; false where there was none that the library can compute.
bool take_tuned_attention(stream &s, tuned_attention &out);
std::string attention_library_name(stream &s);
/// The commands of several streams that a device has recorded, and runs as one.
class recorded_commands {
public:
  virtual ~recorded_commands() = default;
  /// Runs the commands after all that the streams were given before, and before all that they are given later.
  virtual status run() = 0;
};
/// Makes the streams record later commands instead of running them. Events recorded before and during the recording do
/// not mix: waiting for one from the other side does nothing.
status begin_recording(const std::vector<stream *> &streams);
/// Ends the recording. `out` stays empty where the device could not record, or `is_wanted` is false; the streams are as
/// before.
status end_recording(const std::vector<stream *> &streams, bool is_wanted, std::unique_ptr<recorded_commands> &out);
/// Makes a communicator for collectives on the device's memory, for a group whose hosts reach each other by `hosts`;
/// they run on `s`. Collective over the members.
status make_device_communicator(const transport &world, std::unique_ptr<communicator> hosts, stream &s,
                                std::unique_ptr<communicator> &out);

/// A named range of the host's time, as long as the object's life; nothing in back ends without a device.
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

// For back ends without a device.

/// Returns the bytes that kernels, or the library that they call, keep for a team of `threads` threads.
std::int64_t kernel_bytes(std::int32_t threads);

// For every back end.

/// Allocates what kernels keep for each thread of the team that the calling thread leads, so that no step allocates.
status prepare_kernels(std::int32_t threads);

} // namespace windlass::rt::detail

#endif
