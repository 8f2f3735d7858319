#include "streams.h"

#include "cuda_runtime.h"

#include "windlass/rt/kernel_times.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace emulation = windlass::rt::cuda::emulation;

namespace {

/// The commands that a stream has not come to.
struct stream_queue {
  std::deque<emulation::command> commands;
  std::uint64_t given = 0;
  std::atomic<std::uint64_t> done{0};
  bool is_held = false; ///< by an event or by other ranks, since the last command that was done
  bool has_ended = false;
};

/// Whether this thread draws orders, and what from.
thread_local std::mt19937_64 *random_of_thread = nullptr;

/// The thread that runs what streams are given, where orders are drawn.
class device_thread {
public:
  device_thread() {
    if (const char *seed = std::getenv("WINDLASS_EMULATED_SEED"))
      start(std::strtoull(seed, nullptr, 10));
  }
  device_thread(const device_thread &) = delete;
  device_thread &operator=(const device_thread &) = delete;
  ~device_thread() { start(0); }

  bool is_running() const { return thread_.joinable(); }

  void start(std::uint64_t seed) {
    if (thread_.joinable()) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        stops_ = true;
        changed_.notify_all();
      }
      thread_.join();
      stops_ = false;
    }
    if (seed == 0)
      return;
    random_.seed(seed);
    thread_ = std::thread([this] { run(); });
  }

  void add(std::shared_ptr<stream_queue> queue) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queues_.push_back(std::move(queue));
  }
  /// Returns how many commands the queue has been given with this one.
  std::uint64_t give(stream_queue &queue, emulation::command next) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue.commands.push_back(std::move(next));
    changed_.notify_all();
    return ++queue.given;
  }
  /// Lets the queue go when all of it is done.
  void end(stream_queue &queue) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue.has_ended = true;
    drop_ended();
  }
  /// Waits until a command makes `is_true` true.
  template <class Condition> void wait_until(Condition is_true) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return is_true() || !is_running(); });
  }
  void drain(stream_queue &queue) {
    wait_until([&] { return queue.commands.empty(); });
  }
  void drain_all() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] {
      return std::all_of(queues_.begin(), queues_.end(), [](const auto &each) { return each->commands.empty(); });
    });
  }
  bool is_empty(const stream_queue &queue) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return queue.commands.empty();
  }

private:
  /// Now and then the device is slow, so that streams have several commands to choose from.
  void rest(std::unique_lock<std::mutex> &lock) {
    if (random_() % 4 != 0)
      return;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 50));
    lock.lock();
  }

  void run() {
    random_of_thread = &random_;
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stops_) {
      drop_ended();
      std::vector<std::shared_ptr<stream_queue>> ready;
      bool any = false;
      for (const std::shared_ptr<stream_queue> &each : queues_) {
        any = any || !each->commands.empty();
        if (!each->commands.empty() && !each->is_held)
          ready.push_back(each);
      }
      if (ready.empty()) {
        if (any)
          changed_.wait_for(lock, std::chrono::microseconds(100));
        else
          changed_.wait(lock);
        release();
        continue;
      }
      rest(lock);
      stream_queue &queue = *ready[random_() % ready.size()];
      const emulation::command &next = queue.commands.front();
      lock.unlock();
      const bool is_through = next(/*may_wait=*/false);
      lock.lock();
      if (!is_through) {
        queue.is_held = true;
        continue;
      }
      queue.commands.pop_front();
      queue.done.fetch_add(1);
      release();
      changed_.notify_all();
    }
  }
  void drop_ended() {
    queues_.erase(std::remove_if(queues_.begin(), queues_.end(),
                                 [](const auto &each) { return each->has_ended && each->commands.empty(); }),
                  queues_.end());
  }
  void release() {
    for (const std::shared_ptr<stream_queue> &each : queues_)
      each->is_held = false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<stream_queue>> queues_;
  std::mt19937_64 random_;
  bool stops_ = false;
  std::thread thread_;
};

device_thread &device() {
  static device_thread one;
  return one;
}

/// A point among the commands of a stream.
struct stream_point {
  std::shared_ptr<stream_queue> queue;
  std::uint64_t number = 0; ///< of commands up to it
  double seconds = 0;       ///< when the stream came to it

  bool is_reached() const { return queue == nullptr || queue->done.load() >= number; }
};

} // namespace

/// Commands in an order in which they may run.
struct emulated_graph {
  std::vector<emulation::command> commands;
};
/// Records for a graph, or does what it is given. `news` counts what it was given while it recorded.
struct emulated_stream {
  std::shared_ptr<emulated_graph> recording;
  std::uint64_t news = 0, joined = 0;
  int priority = 0;
  std::shared_ptr<stream_queue> queue = std::make_shared<stream_queue>();
};
struct emulated_event {
  std::shared_ptr<stream_point> point = std::make_shared<stream_point>(); ///< where it was recorded last
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

} // namespace

void emulation::give(emulated_stream *stream, command next) {
  if (stream != nullptr && stream->recording != nullptr) {
    ++stream->news;
    stream->recording->commands.push_back(std::move(next));
  } else if (stream != nullptr && device().is_running()) {
    device().give(*stream->queue, std::move(next));
  } else {
    next(/*may_wait=*/true);
  }
}

void emulation::draw_orders(std::uint64_t seed) { device().start(seed); }
bool emulation::has_drawn_orders() { return device().is_running(); }

void emulation::draw_order(unsigned count, unsigned *out) {
  std::iota(out, out + count, 0u);
  if (random_of_thread != nullptr)
    std::shuffle(out, out + count, *random_of_thread);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5; // as on an H100
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned, int priority) {
  *out = new emulated_stream;
  (*out)->priority = priority;
  device().add((*out)->queue);
  return cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  *priority = stream->priority;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  device().end(*stream->queue);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream->recording)
    return cudaErrorStreamCaptureUnsupported;
  device().drain(*stream->queue);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (stream->recording)
    return cudaErrorStreamCaptureUnsupported;
  return device().is_empty(*stream->queue) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  device().drain_all();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->recording == nullptr) {
    if (stream->recording)
      return cudaErrorStreamCaptureIsolation;
    if (event->point->queue != nullptr)
      emulation::give(stream, [point = event->point](bool) { return point->is_reached(); });
    return cudaSuccess;
  }
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
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  for (const emulation::command &each : graph->commands)
    emulation::give(stream, each);
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
  event->recording = stream->recording;
  event->stream = stream;
  event->news = stream->news;
  if (stream->recording != nullptr)
    return cudaSuccess;
  // Who waits for it already waits for the point before.
  event->point = std::make_shared<stream_point>();
  const auto note = [point = event->point](bool) {
    point->seconds = windlass::rt::clock_seconds();
    return true;
  };
  if (!device().is_running()) {
    note(false);
    return cudaSuccess;
  }
  event->point->queue = stream->queue;
  event->point->number = device().give(*stream->queue, note);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) { return event->point->is_reached() ? cudaSuccess : cudaErrorNotReady; }
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  device().wait_until([point = event->point] { return point->is_reached(); });
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>((end->point->seconds - begin->point->seconds) * 1e3);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
