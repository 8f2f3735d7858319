#include "stream.h"

#include "attentions.h"
#include "epilogues.h"
#include "products.h"

#include "windlass/rt/detail/backend.h"

#include <ctime>
#include <map>

namespace windlass::rt {

event::~event() {
  if (native != nullptr)
    cudaEventDestroy(static_cast<cudaEvent_t>(native));
}

namespace cuda {

cudaStream_t native(const stream &s) { return static_cast<const device_stream &>(s).native(); }

device_stream::device_stream(bool is_blocking, std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes,
                             stream_priority priority)
    : is_blocking_(is_blocking) {
  threads_ = threads;
  scratch_ = scratch;
  scratch_bytes_ = scratch_bytes;
  // The greatest priority is the least number; 0 is that of other streams. A device without priorities says 0 twice.
  int least = 0, greatest = 0;
  made_ = check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "making a stream");
  if (made_.is_ok())
    made_ = check(
        cudaStreamCreateWithPriority(&native_, cudaStreamNonBlocking, priority == stream_priority::high ? greatest : 0),
        "making a stream");
  void *memory = nullptr;
  if (made_.is_ok())
    made_ = check(cudaHostAlloc(&memory, sizeof(fault), cudaHostAllocDefault), "making a stream");
  fault_ = static_cast<fault *>(memory);
  if (fault_ != nullptr)
    *fault_ = {};
}

namespace {

/// By stream; a rank's streams are made, used and ended by one thread.
std::map<const device_stream *, std::function<status()>> &guards_of_thread() {
  static thread_local std::map<const device_stream *, std::function<status()>> guards;
  return guards;
}

} // namespace

void device_stream::guard_with(std::function<status()> guard) {
  guards_of_thread()[this] = std::move(guard);
  guards_ = true;
}

/// Waits until `query` says that the device has come to something, while the thread's guards find nothing wrong;
/// without guards `wait` waits for the same.
template <class Query, class Wait> static status wait_guarded(Query query, Wait wait) {
  const auto &guards = guards_of_thread();
  if (guards.empty())
    return check(wait(), "a command of the device");
  while (true) {
    const cudaError_t state = query();
    if (state != cudaErrorNotReady)
      return check(state, "a command of the device");
    for (const auto &[s, guard] : guards)
      WINDLASS_TRY(guard());
    const timespec nap = {0, 20'000};
    nanosleep(&nap, nullptr);
  }
}

status device_stream::wait_for_device() {
  return wait_guarded([this] { return cudaStreamQuery(native_); }, [this] { return cudaStreamSynchronize(native_); });
}

status device_stream::wait_on_host(event &e) {
  if (!failed_.is_ok() || e.native == nullptr)
    return failed_;
  const auto native = static_cast<cudaEvent_t>(e.native);
  failed_ =
      wait_guarded([native] { return cudaEventQuery(native); }, [native] { return cudaEventSynchronize(native); });
  return failed_;
}

device_event device_stream::take_event() {
  device_event out(device_event::timed);
  if (!free_events_.empty()) {
    out = std::move(free_events_.back());
    free_events_.pop_back();
  }
  if (status recorded = out.record(native_); !recorded.is_ok())
    failed_ = std::move(recorded);
  return out;
}

void device_stream::count_times(kernel_times *times) {
  if (times_ != nullptr)
    read_times();
  times_ = times;
  if (times == nullptr || !made_.is_ok())
    return;
  origin_seconds_ = clock_seconds();
  origin_ = take_event();
}

double device_stream::begin_command(const work &what) {
  detail::push_range(what.name);
  timed_.push_back({what, take_event(), device_event()});
  return 0;
}

void device_stream::end_command(const work &, double, kernel_times &) {
  timed_.back().end = take_event();
  detail::pop_range();
}

void device_stream::read_times() {
  const bool is_done = synchronize().is_ok();
  for (timed_command &command : timed_) {
    double from = 0, to = 0;
    if (is_done && command.begin.seconds_since(origin_, from).is_ok() && command.end.seconds_since(origin_, to).is_ok())
      times_->add(command.what, origin_seconds_ + from, origin_seconds_ + to);
    free_events_.push_back(std::move(command.begin));
    free_events_.push_back(std::move(command.end));
  }
  timed_.clear();
  free_events_.push_back(std::move(origin_));
}

device_stream::~device_stream() {
  if (guards_)
    guards_of_thread().erase(this);
  if (native_ != nullptr) {
    if (failed_.is_ok()) // what has failed may never end
      cudaStreamSynchronize(native_);
    attentions_ = nullptr; // what the library holds of the stream
    cudaStreamDestroy(native_);
  }
  if (fault_ != nullptr)
    cudaFreeHost(fault_);
}

products &device_stream::gemms() {
  if (gemms_ == nullptr)
    gemms_ = std::make_unique<products>(make_gemm_library());
  return *gemms_;
}

epilogues &device_stream::epilogues() {
  if (epilogues_ == nullptr)
    epilogues_ = std::make_unique<cuda::epilogues>(gemms());
  return *epilogues_;
}

attentions &device_stream::attentions() {
  if (attentions_ == nullptr)
    attentions_ = std::make_unique<cuda::attentions>(
        [this](std::unique_ptr<attention_library> &out) { return open_attention_library(*this, out); });
  return *attentions_;
}

status device_stream::record(event &e) {
  WINDLASS_TRY(made_);
  if (e.native == nullptr) {
    cudaEvent_t made = nullptr;
    WINDLASS_TRY(check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event"));
    e.native = made;
  }
  e.recording = recording_;
  return check(cudaEventRecord(static_cast<cudaEvent_t>(e.native), native_), "recording an event");
}

status device_stream::wait(event &e) {
  WINDLASS_TRY(made_);
  // Never recorded, or on the other side of a recording's border, where all streams meet.
  if (e.native == nullptr || e.recording != recording_)
    return {};
  return check(cudaStreamWaitEvent(native_, static_cast<cudaEvent_t>(e.native), 0), "waiting for an event");
}

status device_stream::synchronize() {
  WINDLASS_TRY(made_);
  if (!failed_.is_ok())
    return failed_;
  failed_ = wait_for_device();
  if (!failed_.is_ok() || fault_->kind == no_fault)
    return failed_;
  const fault found = *fault_;
  const char *what = found.kind == label_fault ? "label " : found.kind == id_fault ? "id " : "index ";
  const char *where = found.kind == label_fault ? " classes" : "";
  failed_ = bad_input(what + std::to_string(found.value) + " at position " + std::to_string(found.position) +
                      " is outside of the " + (found.kind == label_fault ? "" : "table of ") +
                      std::to_string(found.limit) + where + "; check the data");
  return failed_;
}

status device_stream::enqueue(const void *command, std::size_t, status (*run)(void *)) {
  WINDLASS_TRY(made_);
  if (!failed_.is_ok())
    return failed_;
  status result = run(const_cast<void *>(command));
  if (result.is_ok() && is_blocking_)
    result = synchronize();
  if (!result.is_ok())
    failed_ = result;
  return result;
}

} // namespace cuda

std::unique_ptr<stream> make_inline_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes) {
  return std::make_unique<cuda::device_stream>(true, threads, scratch, scratch_bytes, stream_priority::normal);
}

std::unique_ptr<stream> make_worker_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes,
                                           stream_priority priority) {
  return std::make_unique<cuda::device_stream>(false, threads, scratch, scratch_bytes, priority);
}

} // namespace windlass::rt
