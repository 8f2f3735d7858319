#include "cuda_runtime.h"

#include "windlass/rt/kernel_times.h"

#include "windlass/rt/detail/team.h"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

thread_local emulated_place threadIdx, blockIdx, blockDim, gridDim;

/// Commands in an order in which they may run.
struct emulated_graph {
  std::vector<std::function<void()>> commands;
};
/// Records for a graph, or does at once what it is given. `news` counts what it was given while it recorded.
struct emulated_stream {
  std::shared_ptr<emulated_graph> recording;
  std::uint64_t news = 0, joined = 0;
  int priority = 0;
};
struct emulated_event {
  double seconds = 0;                        ///< when it was recorded last
  std::shared_ptr<emulated_graph> recording; ///< in which that was, of which stream and after how much of its news
  emulated_stream *stream = nullptr;
  std::uint64_t news = 0;
};

namespace {

/// That record for the graph, besides the one that began it.
std::vector<emulated_stream *> &forked_streams() {
  static thread_local std::vector<emulated_stream *> streams;
  return streams;
}

/// Does a command when the stream comes to it.
cudaError_t give(emulated_stream *stream, std::function<void()> command) {
  if (stream == nullptr || stream->recording == nullptr) {
    command();
    return cudaSuccess;
  }
  ++stream->news;
  stream->recording->commands.push_back(std::move(command));
  return cudaSuccess;
}

} // namespace

namespace windlass::rt::cuda::emulation {

namespace {

/// The device's memory, open to the process only while something runs on the device.
class guarded_memory {
public:
  void *allocate(std::size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Large pages, of which few have to be opened and closed, at multiples of their size.
    const std::size_t size = (bytes + page - 1) / page * page;
    void *mapped = mmap(nullptr, size + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
      return nullptr;
    const auto begin = reinterpret_cast<std::uintptr_t>(mapped), base = (begin + page - 1) / page * page;
    if (base > begin)
      munmap(mapped, base - begin);
    if (begin + page > base)
      munmap(reinterpret_cast<void *>(base + size), begin + page - base);
    void *const out = reinterpret_cast<void *>(base);
    madvise(out, size, MADV_HUGEPAGE); // a hint
    if (users_ > 0)
      mprotect(out, size, PROT_READ | PROT_WRITE);
    areas_[out] = size;
    return out;
  }
  void free(void *base) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = areas_.find(base);
    if (found == areas_.end())
      return;
    munmap(base, found->second);
    areas_.erase(found);
  }
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (users_++ == 0)
      protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--users_ == 0)
      protect(PROT_NONE);
  }

private:
  static constexpr std::size_t page = std::size_t(2) << 20;

  void protect(int how) {
    for (const auto &[base, size] : areas_)
      mprotect(base, size, how);
  }
  std::mutex mutex_;
  std::map<void *, std::size_t> areas_;
  int users_ = 0;
};

guarded_memory &memory() {
  static guarded_memory all;
  return all;
}

struct open_memory {
  open_memory() { memory().open(); }
  ~open_memory() { memory().close(); }
};

constexpr std::size_t stack_bytes = 64 << 10;
constexpr unsigned warp = 32;

/// One thread of a block. A fiber runs thread after thread on one stack: fibers change places by jumps, which cost no
/// system call.
struct fiber {
  ucontext_t context; ///< until it runs for the first time
  jmp_buf place;
  bool is_started = false;
  std::unique_ptr<char[]> stack{new char[stack_bytes]};
  unsigned number = 0;
  enum { running, at_block, at_warp, done } state = done;
  /// What it gives to the others of its warp: now, and the time before, which they may still be reading.
  unsigned long long value[2][4] = {};
  unsigned turn = 0;
};

/// The blocks that one thread of the process runs, one after another.
class scheduler {
public:
  void run_block(unsigned threads, const std::function<void()> &thread) {
    thread_ = &thread;
    while (fibers_.size() < threads)
      fibers_.push_back(std::make_unique<fiber>());
    count_ = threads;
    for (unsigned i = 0; i < threads; ++i) {
      fiber &f = *fibers_[i];
      f.number = i;
      f.turn = 0;
      f.state = fiber::running;
    }
    while (true) {
      unsigned left = 0;
      bool moved = false;
      for (unsigned i = 0; i < threads; ++i) {
        if (fibers_[i]->state == fiber::running) {
          resume(*fibers_[i]);
          moved = true;
        }
        left += fibers_[i]->state != fiber::done;
      }
      if (left == 0)
        return;
      moved |= release(0, threads, fiber::at_block);
      for (unsigned first = 0; first < threads; first += warp)
        moved |= release(first, std::min(first + warp, threads), fiber::at_warp);
      if (!moved) {
        std::fputs("emulation: threads of a block wait at different barriers\n", stderr);
        std::abort();
      }
    }
  }

  void wait(decltype(fiber::state) where) {
    current_->state = where;
    if (_setjmp(current_->place) == 0)
      _longjmp(main_, 1);
  }
  void exchange(void *value, std::size_t bytes, unsigned lane) {
    fiber &own = *current_;
    if (bytes > sizeof own.value[0])
      std::abort();
    own.turn ^= 1;
    std::memcpy(own.value[own.turn], value, bytes);
    wait(fiber::at_warp);
    const unsigned other = own.number / warp * warp + lane;
    if (lane < warp && other < count_)
      std::memcpy(value, fibers_[other]->value[own.turn], bytes);
  }

private:
  static void enter();

  void resume(fiber &f) {
    current_ = &f;
    threadIdx.x = f.number;
    if (_setjmp(main_) != 0)
      return;
    if (f.is_started)
      _longjmp(f.place, 1);
    f.is_started = true;
    getcontext(&f.context);
    f.context.uc_stack = {f.stack.get(), 0, stack_bytes};
    f.context.uc_link = nullptr;
    makecontext(&f.context, &scheduler::enter, 0);
    setcontext(&f.context);
  }

  /// Lets [first, last) go on where all that are left wait there.
  bool release(unsigned first, unsigned last, decltype(fiber::state) where) {
    bool any = false;
    for (unsigned i = first; i < last; ++i) {
      if (fibers_[i]->state != where && fibers_[i]->state != fiber::done)
        return false;
      any |= fibers_[i]->state == where;
    }
    for (unsigned i = first; i < last; ++i)
      if (fibers_[i]->state == where)
        fibers_[i]->state = fiber::running;
    return any;
  }

  std::vector<std::unique_ptr<fiber>> fibers_;
  jmp_buf main_;
  fiber *current_ = nullptr;
  const std::function<void()> *thread_ = nullptr;
  unsigned count_ = 0;
};

scheduler &mine() {
  static thread_local scheduler one;
  return one;
}

void scheduler::enter() {
  scheduler &s = mine();
  while (true) {
    (*s.thread_)();
    s.wait(fiber::done);
  }
}

} // namespace

static void run(unsigned blocks, unsigned threads, const std::function<void()> &thread) {
  const open_memory open;
  detail::flush_denormals();
  gridDim.x = blocks;
  blockDim.x = threads;
  for (unsigned b = 0; b < blocks; ++b) {
    blockIdx.x = b;
    mine().run_block(threads, thread);
  }
}

int launch(emulated_stream *stream, unsigned blocks, unsigned threads, std::function<void()> thread) {
  return give(stream, [=, thread = std::move(thread)] { run(blocks, threads, thread); });
}

void exchange(void *value, std::size_t bytes, unsigned lane) { mine().exchange(value, bytes, lane); }

} // namespace windlass::rt::cuda::emulation

namespace emulation = windlass::rt::cuda::emulation;

void __syncthreads() { emulation::mine().wait(emulation::fiber::at_block); }
void __syncwarp() { emulation::mine().wait(emulation::fiber::at_warp); }

const char *cudaGetErrorString(cudaError_t error) { return error == cudaSuccess ? "no error" : "emulated error"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

static long long setting(const char *name, long long value) {
  const char *text = std::getenv(name);
  return text == nullptr ? value : std::atoll(text);
}
cudaError_t cudaGetDeviceCount(int *count) {
  *count = static_cast<int>(setting("WINDLASS_EMULATED_DEVICES", 1));
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
static thread_local int current_device = 0;
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int *device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device) {
  *out = {};
  out->uuid.bytes[0] = static_cast<char>(device);
  std::strcpy(out->name, "emulated on the processor");
  out->major = 9;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  *version = static_cast<int>(setting("WINDLASS_EMULATED_DRIVER", 13000));
  return cudaSuccess;
}
cudaError_t emulated_kernel_image() {
  return setting("WINDLASS_EMULATED_KERNELS", 1) != 0 ? cudaSuccess : cudaErrorNoKernelImageForDevice;
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t *free, std::size_t *total) {
  *total = std::size_t(1) << 40;
  *free = static_cast<std::size_t>(setting("WINDLASS_EMULATED_FREE", 1LL << 40));
  return cudaSuccess;
}
cudaError_t cudaMalloc(void **out, std::size_t bytes) {
  *out = emulation::memory().allocate(bytes);
  return *out == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
  emulation::memory().free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void **out, std::size_t bytes, unsigned) {
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *out == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFreeHost(void *memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return give(stream, [=] {
    const emulation::open_memory open;
    std::memcpy(to, from, bytes);
  });
}
cudaError_t cudaMemsetAsync(void *memory, int value, std::size_t bytes, cudaStream_t stream) {
  return give(stream, [=] {
    const emulation::open_memory open;
    std::memset(memory, value, bytes);
  });
}
// The host reaches its own memory only.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  return give(stream, [=] { function(data); });
}
// Streams do at once what they are given, so that events have always been reached.
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5; // as on an H100
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned, int priority) {
  *out = new emulated_stream;
  (*out)->priority = priority;
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  *priority = stream->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return stream->recording ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaStreamSynchronize(stream); }
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->recording == nullptr)
    return stream->recording ? cudaErrorStreamCaptureIsolation : cudaSuccess;
  if (event->stream->recording != event->recording)
    return cudaErrorCapturedEvent; // of a recording that has ended
  if (stream->recording == nullptr) {
    stream->recording = event->recording;
    stream->news = 1; // the wait
    stream->joined = 0;
    forked_streams().push_back(stream);
  }
  event->stream->joined = std::max(event->stream->joined, event->news);
  return stream->recording == event->recording ? cudaSuccess : cudaErrorStreamCaptureIsolation;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  stream->recording = std::make_shared<emulated_graph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out) {
  bool has_joined = true;
  for (emulated_stream *each : forked_streams()) {
    has_joined = has_joined && each->joined == each->news;
    each->recording = nullptr;
  }
  forked_streams().clear();
  *out = has_joined ? new emulated_graph(*stream->recording) : nullptr;
  stream->recording = nullptr;
  return has_joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long) {
  *out = new emulated_graph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t) {
  for (const std::function<void()> &command : graph->commands)
    command();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) { return cudaGraphDestroy(graph); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned) {
  *out = new emulated_event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->seconds = windlass::rt::clock_seconds();
  event->recording = stream->recording;
  event->stream = stream;
  event->news = stream->news;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>((end->seconds - begin->seconds) * 1e3);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
