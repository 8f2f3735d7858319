#include "cuda_runtime.h"
#include "streams.h"

#include "windlass/rt/detail/team.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

thread_local emulated_place threadIdx, blockIdx, blockDim, gridDim;

namespace windlass::rt::cuda::emulation {

namespace {

/// The bytes of memory that nobody has written, where orders are drawn: NaN in every type of floats.
constexpr int not_written = 0xff;

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
    if (has_drawn_orders()) {
      mprotect(out, size, PROT_READ | PROT_WRITE);
      std::memset(out, not_written, bytes);
    }
    mprotect(out, size, users_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
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

constexpr std::size_t stack_bytes = 64 << 10;
constexpr unsigned warp = 32;

/// Where a fiber goes on. The compiler's own jumps, unlike the C library's, look for nothing to clean up on the way,
/// which took a third of the time of kernels with reductions. No function may both set a place and jump, so these are
/// not inlined.
using place = void *[5];
[[noreturn, gnu::noinline]] void go_on(place &at) { __builtin_longjmp(at, 1); }

/// One thread of a block. A fiber runs thread after thread on one stack: fibers change places by jumps, which cost no
/// system call.
struct fiber {
  ucontext_t context; ///< until it runs for the first time
  place here;
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
    order_.resize(threads);
    for (unsigned i = 0; i < threads; ++i) {
      fiber &f = *fibers_[i];
      f.number = i;
      f.turn = 0;
      f.state = fiber::running;
    }
    while (true) {
      unsigned left = 0;
      bool moved = false;
      draw_order(threads, order_.data());
      for (unsigned i : order_) {
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

  [[gnu::noinline]] void wait(decltype(fiber::state) where) {
    current_->state = where;
    if (__builtin_setjmp(current_->here) == 0)
      go_on(main_);
    others_ran();
  }
  void exchange(void *value, std::size_t bytes, unsigned lane) {
    const unsigned other = give(value, bytes) + lane;
    if (lane < warp && other < count_)
      std::memcpy(value, fibers_[other]->value[current_->turn], bytes);
  }
  void collect(const void *value, std::size_t bytes, char *all) {
    const unsigned first = give(value, bytes);
    for (unsigned lane = 0; lane < warp && first + lane < count_; ++lane)
      std::memcpy(all + lane * bytes, fibers_[first + lane]->value[current_->turn], bytes);
  }

private:
  /// Gives the warp's lanes a value, waits until all have given theirs, and returns the number of the first lane.
  unsigned give(const void *value, std::size_t bytes) {
    fiber &own = *current_;
    if (bytes > sizeof own.value[0])
      std::abort();
    own.turn ^= 1;
    std::memcpy(own.value[own.turn], value, bytes);
    wait(fiber::at_warp);
    return current_->number / warp * warp;
  }

  static void enter();
  /// The compiler does not see that other fibers have written to memory between a jump and the return.
  static void others_ran() { asm volatile("" ::: "memory"); }

  [[gnu::noinline]] void resume(fiber &f) {
    current_ = &f;
    threadIdx.x = f.number;
    if (__builtin_setjmp(main_) != 0)
      return others_ran();
    if (f.is_started)
      go_on(f.here);
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
  std::vector<unsigned> order_; ///< in which threads take turns
  place main_;
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

/// What the process has given to devices, which is printed at its end where WINDLASS_EMULATED_COUNT is set.
struct given_counts {
  std::atomic<long long> launches{0}, copies{0}, fills{0};
  ~given_counts() {
    if (std::getenv("WINDLASS_EMULATED_COUNT") != nullptr)
      std::fprintf(stderr, "emulated: %lld launches, %lld copies, %lld fills\n", launches.load(), copies.load(),
                   fills.load());
  }
};
static given_counts counts;

open_memory::open_memory() { memory().open(); }
open_memory::~open_memory() { memory().close(); }

static void run(unsigned blocks, unsigned threads, const std::function<void()> &thread) {
  const open_memory open;
  detail::flush_denormals();
  gridDim.x = blocks;
  blockDim.x = threads;
  std::vector<unsigned> order(blocks);
  draw_order(blocks, order.data());
  for (unsigned b : order) {
    blockIdx.x = b;
    mine().run_block(threads, thread);
  }
}

int launch(emulated_stream *stream, unsigned blocks, unsigned threads, std::function<void()> thread) {
  ++counts.launches;
  give(stream, [=, thread = std::move(thread)](bool) {
    run(blocks, threads, thread);
    return true;
  });
  return cudaSuccess;
}

void exchange(void *value, std::size_t bytes, unsigned lane) { mine().exchange(value, bytes, lane); }
void collect(const void *value, std::size_t bytes, void *all) {
  mine().collect(value, bytes, static_cast<char *>(all));
}

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
/// Memory that the device reaches too, by its begin.
static std::mutex pinned_mutex;
static std::map<const char *, std::size_t> pinned;

static bool is_pinned(const void *memory) {
  const std::lock_guard<std::mutex> lock(pinned_mutex);
  const char *const at = static_cast<const char *>(memory);
  auto area = pinned.upper_bound(at);
  return area != pinned.begin() && at < (--area)->first + area->second;
}

cudaError_t cudaHostAlloc(void **out, std::size_t bytes, unsigned) {
  *out = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (*out == nullptr)
    return cudaErrorMemoryAllocation;
  if (emulation::has_drawn_orders())
    std::memset(*out, emulation::not_written, bytes);
  const std::lock_guard<std::mutex> lock(pinned_mutex);
  pinned[static_cast<const char *>(*out)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void *memory) {
  {
    const std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned.erase(static_cast<const char *>(memory));
  }
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  ++emulation::counts.copies;
  // CUDA takes what is not pinned before the call returns.
  std::shared_ptr<std::vector<char>> taken;
  if (kind == cudaMemcpyHostToDevice && emulation::has_drawn_orders() && !is_pinned(from))
    taken =
        std::make_shared<std::vector<char>>(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
  emulation::give(stream, [=](bool) {
    const emulation::open_memory open;
    std::memcpy(to, taken ? taken->data() : from, bytes);
    return true;
  });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *memory, int value, std::size_t bytes, cudaStream_t stream) {
  ++emulation::counts.fills;
  emulation::give(stream, [=](bool) {
    const emulation::open_memory open;
    std::memset(memory, value, bytes);
    return true;
  });
  return cudaSuccess;
}
// The host reaches its own memory only.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
  emulation::give(stream, [=](bool) {
    function(data);
    return true;
  });
  return cudaSuccess;
}
