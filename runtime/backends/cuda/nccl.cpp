// Collectives and messages between devices of several processes by NCCL, which is opened at run time so that programs
// of one rank need none of it.
#include "communicator.h"
#include "kernel.h"
#include "row_routes.h"

#include "windlass/rt/reserve.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
#define WINDLASS_HAS_NCCL
#endif

#include <dlfcn.h>

#include <cstdlib>
#include <ctime>
#include <vector>

namespace windlass::rt::cuda {

#if defined(WINDLASS_HAS_NCCL)

namespace {

struct library {
  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclGetErrorString) error_text = nullptr;
  decltype(&::ncclGroupStart) group_start = nullptr;
  decltype(&::ncclGroupEnd) group_end = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;
  status opened;

private:
#if defined(WINDLASS_CUDA_EMULATED) // linked
  void open() {}
#define WINDLASS_FIND(function, name) function = &::name
#else
#define WINDLASS_FIND(function, name) find(function, #name)
  void *file_ = nullptr;
  void open() {
    file_ = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (file_ == nullptr)
      opened =
          bad_input("several processes need NCCL, but libnccl.so.2 cannot be opened; install it or name its folder in "
                    "LD_LIBRARY_PATH, or run the ranks as threads with --communicator local")
              .as(diagnostic::backend);
  }
  template <class F> void find(F &function, const char *name) {
    if (file_ == nullptr)
      return;
    function = reinterpret_cast<F>(dlsym(file_, name));
    if (function == nullptr && opened.is_ok())
      opened = bad_input(std::string("libnccl.so.2 has no ") + name + "; install NCCL 2.18 or newer")
                   .as(diagnostic::backend);
  }
#endif

public:
  library() {
    // Sums in the switches take 2.25 GiB for each communicator of eight H100 (vllm-project/vllm#9699), which no plan
    // counts. Whoever has that memory can set the variable to 1.
    setenv("NCCL_NVLS_ENABLE", "0", /*overwrite=*/0);
    open();
    WINDLASS_FIND(get_unique_id, ncclGetUniqueId);
    WINDLASS_FIND(init, ncclCommInitRankConfig);
    WINDLASS_FIND(async_error, ncclCommGetAsyncError);
    WINDLASS_FIND(abort, ncclCommAbort);
    WINDLASS_FIND(error_text, ncclGetErrorString);
    WINDLASS_FIND(group_start, ncclGroupStart);
    WINDLASS_FIND(group_end, ncclGroupEnd);
    WINDLASS_FIND(all_reduce, ncclAllReduce);
    WINDLASS_FIND(all_gather, ncclAllGather);
    WINDLASS_FIND(reduce_scatter, ncclReduceScatter);
    WINDLASS_FIND(broadcast, ncclBroadcast);
    WINDLASS_FIND(send, ncclSend);
    WINDLASS_FIND(receive, ncclRecv);
  }
};

const library &nccl() {
  static const library one;
  return one;
}

bool type_of(element_type type, ncclDataType_t &out) {
  switch (type) {
  case element_type::f32:
    out = ncclFloat32;
    return true;
  case element_type::f64:
    out = ncclFloat64;
    return true;
  case element_type::bf16:
    out = ncclBfloat16;
    return true;
  case element_type::f16:
    out = ncclFloat16;
    return true;
  case element_type::i64:
    out = ncclInt64;
    return true;
  case element_type::i32:
    out = ncclInt32;
    return true;
  case element_type::u8:
  case element_type::boolean:
    out = ncclUint8;
    return true;
  case element_type::u16:
    return false;
  }
  return false;
}

class nccl_communicator final : public communicator {
public:
  nccl_communicator(std::unique_ptr<communicator> hosts, stream &s) : hosts_(std::move(hosts)), stream_(s) {}
  /// Commands are done by then, or the job has failed: either way nothing is waited for.
  ~nccl_communicator() override {
    if (group_ != nullptr)
      nccl().abort(group_);
  }

  status create() {
    WINDLASS_TRY(open_nccl());
    ncclUniqueId id = {};
    if (index() == 0)
      WINDLASS_TRY(check_nccl(nccl().get_unique_id(&id), "a name for the group"));
    WINDLASS_TRY(hosts_->broadcast(reinterpret_cast<std::byte *>(&id), sizeof id, 0));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.maxCTAs = nccl_channels; // the reserve counts the buffers of `nccl_channels`
    const ncclResult_t result = nccl().init(&group_, size(), id, index(), &config);
    return settle(result, "joining the group");
  }

  std::int32_t size() const override { return hosts_->size(); }
  std::int32_t index() const override { return hosts_->index(); }

  status all_reduce(std::byte *data, std::int64_t elements, element_type type, reduction kind) override {
    // The sum of booleans, 0 or 1, is the maximum.
    const bool is_sum = kind == reduction::sum && type != element_type::boolean;
    const ncclRedOp_t op = is_sum ? ncclSum : kind == reduction::min ? ncclMin : ncclMax;
    ncclDataType_t of;
    WINDLASS_TRY(check_type(type, of));
    return settle(nccl().all_reduce(data, data, count(elements), of, op, group_, on()), "an all-reduce");
  }
  /// A group is one launch.
  status all_gather(const collective_pair *pairs, std::int32_t n) override {
    WINDLASS_TRY(settle(nccl().group_start(), "an all-gather"));
    for (const collective_pair *p = pairs; p != pairs + n; ++p)
      nccl().all_gather(p->in, p->out, count(p->part_bytes()), ncclUint8, group_, on());
    return settle(nccl().group_end(), "an all-gather"); // also says what was wrong inside the group
  }
  status reduce_scatter(const collective_pair *pairs, std::int32_t n) override {
    ncclDataType_t types[collective_pairs::most];
    for (std::int32_t i = 0; i < n; ++i)
      WINDLASS_TRY(check_type(pairs[i].type, types[i]));
    WINDLASS_TRY(settle(nccl().group_start(), "a reduce-scatter"));
    for (std::int32_t i = 0; i < n; ++i)
      nccl().reduce_scatter(pairs[i].in, pairs[i].out, count(pairs[i].elements), types[i],
                            pairs[i].type == element_type::boolean ? ncclMax : ncclSum, group_, on());
    return settle(nccl().group_end(), "a reduce-scatter");
  }
  status all_to_all(std::byte *out, const std::byte *in, std::int64_t bytes) override {
    WINDLASS_TRY(settle(nccl().group_start(), "an all-to-all"));
    for (std::int32_t m = 0; m < size(); ++m) {
      nccl().send(in + m * bytes, count(bytes), ncclUint8, m, group_, on());
      nccl().receive(out + m * bytes, count(bytes), ncclUint8, m, group_, on());
    }
    return settle(nccl().group_end(), "an all-to-all"); // also says what was wrong inside the group
  }
  status permute(std::byte *out, const std::byte *in, std::int64_t bytes, std::int32_t to, std::int32_t from) override {
    WINDLASS_TRY(settle(nccl().group_start(), "a permute"));
    nccl().send(in, count(bytes), ncclUint8, to, group_, on());
    nccl().receive(out, count(bytes), ncclUint8, from, group_, on());
    return settle(nccl().group_end(), "a permute");
  }
  status broadcast(std::byte *data, std::int64_t bytes, std::int32_t root) override {
    return settle(nccl().broadcast(data, data, count(bytes), ncclUint8, root, group_, on()), "a broadcast");
  }
  status gather_rows(std::byte *out, std::byte *scratch, const std::byte *in, const detail::row_routes &of) override {
    return cuda::gather_rows(*this, stream_, out, scratch, in, of);
  }
  status scatter_rows(std::byte *out, std::byte *scratch, std::byte *in, const detail::row_routes &of) override {
    return cuda::scatter_rows(*this, stream_, out, scratch, in, of);
  }
  status barrier() override { return hosts_->barrier(); }
  /// One group, so that the device moves them at once; otherwise a send would keep the stream from what comes after it
  /// until the other member receives.
  status transfer(const message *messages, std::int32_t n) override {
    WINDLASS_TRY(settle(nccl().group_start(), "a transfer"));
    for (const message *m = messages; m != messages + n; ++m)
      if (m->way == direction::send)
        nccl().send(m->data, count(m->bytes), ncclUint8, m->peer, group_, on());
      else
        nccl().receive(m->data, count(m->bytes), ncclUint8, m->peer, group_, on());
    return settle(nccl().group_end(), "a transfer");
  }

  /// What a thread that waits for the device asks again and again: a group with a lost member never ends its kernels.
  status health() {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl().async_error(group_, &state);
    if (asked == ncclSuccess && (state == ncclSuccess || state == ncclInProgress))
      return {};
    const char *const text = nccl().error_text(asked == ncclSuccess ? state : asked);
    nccl().abort(group_);
    group_ = nullptr;
    return status(status_code::stopped, std::string("NCCL lost another rank: ") + text).as(diagnostic::rank_lost);
  }

private:
  static std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }
  cudaStream_t on() const { return native(stream_); }

  static status check_nccl(ncclResult_t result, const char *what) {
    if (result == ncclSuccess)
      return {};
    return internal_error(std::string("NCCL: ") + what + " failed: " + nccl().error_text(result));
  }
  static status check_type(element_type type, ncclDataType_t &out) {
    return type_of(type, out) ? ok_status() : internal_error("NCCL does not reduce 16-bit integers");
  }

  /// Calls of a group that does not block return before they are through; the next may come only after that.
  status settle(ncclResult_t result, const char *what) {
    while (result == ncclInProgress) {
      const timespec nap = {0, 20'000};
      nanosleep(&nap, nullptr);
      if (nccl().async_error(group_, &result) != ncclSuccess)
        return internal_error(std::string("NCCL: ") + what + " lost its group");
    }
    return check_nccl(result, what);
  }

  std::unique_ptr<communicator> hosts_;
  stream &stream_;
  ncclComm_t group_ = nullptr;
};

} // namespace

status open_nccl() { return nccl().opened; }

status make_nccl_communicator(std::unique_ptr<communicator> hosts, stream &s, std::unique_ptr<communicator> &out) {
  auto made = std::make_unique<nccl_communicator>(std::move(hosts), s);
  WINDLASS_TRY(made->create());
  device_stream_of(s).guard_with([group = made.get()] { return group->health(); });
  out = std::move(made);
  return {};
}

#else

status open_nccl() {
  return bad_input(
             "several processes need NCCL, but nccl.h was not found when the program was built; install it, or run "
             "the ranks as threads with --communicator local")
      .as(diagnostic::backend);
}

status make_nccl_communicator(std::unique_ptr<communicator>, stream &, std::unique_ptr<communicator> &) {
  return open_nccl();
}

#endif

} // namespace windlass::rt::cuda
