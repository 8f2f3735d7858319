#include "windlass/rt/streams.h"

#include "windlass/rt/detail/team.h"
#include "windlass/rt/detail/wait.h"

#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace windlass::rt {

namespace {

void reach(event &e, std::uint64_t generation) {
  e.reached.store(generation);
  e.changes.fetch_add(1);
  detail::wake_all(e.changes, e.sleepers);
}

void block_until(event &e, std::uint64_t generation) {
  while (true) {
    const std::uint32_t seen = e.changes.load();
    if (e.reached.load() >= generation)
      return;
    detail::wait_while_equal(e.changes, seen, e.sleepers);
  }
}

class inline_stream final : public stream {
public:
  inline_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes) {
    threads_ = threads;
    scratch_ = scratch;
    scratch_bytes_ = scratch_bytes;
    detail::prepare_team(threads);
  }
  bool is_inline() const override { return true; }
  status record(event &e) override {
    reach(e, e.issued.fetch_add(1) + 1);
    return {};
  }
  status wait(event &e) override {
    block_until(e, e.issued.load());
    return {};
  }
  status synchronize() override { return {}; }

protected:
  status enqueue(const void *, std::size_t, status (*)(void *)) override {
    return internal_error("an inline stream has no queue");
  }
};

class worker_stream final : public stream {
public:
  worker_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes) : ring_(slots) {
    threads_ = threads;
    scratch_ = scratch;
    scratch_bytes_ = scratch_bytes;
    thread_ = std::thread([this] { work(); });
  }
  ~worker_stream() override {
    stopping_.store(true);
    pushed_.fetch_add(1); // changes the word that the worker sleeps on; `tail_` says how many commands there are
    detail::wake_all(pushed_, push_sleepers_);
    thread_.join();
  }
  bool is_inline() const override { return false; }

  status record(event &e) override {
    const std::uint64_t generation = e.issued.fetch_add(1) + 1;
    push([&](slot &s) {
      s.what = kind::record;
      s.target = &e;
      s.generation = generation;
    });
    return error();
  }
  status wait(event &e) override {
    const std::uint64_t generation = e.issued.load();
    if (e.reached.load() >= generation)
      return error();
    push([&](slot &s) {
      s.what = kind::wait;
      s.target = &e;
      s.generation = generation;
    });
    return error();
  }
  status synchronize() override {
    while (true) {
      const std::uint32_t seen = popped_.load();
      if (head_.load() == tail_.load())
        return error();
      detail::wait_while_equal(popped_, seen, pop_sleepers_);
    }
  }

protected:
  status enqueue(const void *command, std::size_t bytes, status (*run)(void *)) override {
    push([&](slot &s) {
      s.what = kind::call;
      s.run = run;
      std::memcpy(s.command, command, bytes);
    });
    return error();
  }

private:
  enum class kind { call, record, wait };
  struct slot {
    kind what = kind::call;
    status (*run)(void *) = nullptr;
    event *target = nullptr;
    std::uint64_t generation = 0;
    alignas(64) std::byte command[slot_bytes];
  };
  static_assert(slots * sizeof(slot) <= stream_bytes);

  template <class F> void push(F fill) {
    const std::uint64_t place = tail_.load(std::memory_order_relaxed);
    while (true) {
      const std::uint32_t seen = popped_.load();
      if (place - head_.load() < slots)
        break;
      detail::wait_while_equal(popped_, seen, pop_sleepers_);
    }
    fill(ring_[place % slots]);
    tail_.store(place + 1);
    pushed_.fetch_add(1);
    detail::wake_all(pushed_, push_sleepers_);
  }

  void work() {
    detail::prepare_team(threads_);
    while (true) {
      const std::uint32_t seen = pushed_.load();
      const std::uint64_t place = head_.load(std::memory_order_relaxed);
      if (place == tail_.load()) {
        if (stopping_.load())
          return;
        detail::wait_while_equal(pushed_, seen, push_sleepers_);
        continue;
      }
      run(ring_[place % slots]);
      head_.store(place + 1);
      popped_.fetch_add(1);
      detail::wake_all(popped_, pop_sleepers_);
    }
  }

  void run(slot &s) {
    switch (s.what) {
    case kind::call:
      if (!failed_.load())
        if (status result = s.run(s.command); !result.is_ok())
          fail(std::move(result));
      return;
    case kind::record: // even after an error: others wait for it
      reach(*s.target, s.generation);
      return;
    case kind::wait:
      block_until(*s.target, s.generation);
      return;
    }
  }

  void fail(status why) {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    error_ = std::move(why);
    failed_.store(true);
  }
  status error() {
    if (!failed_.load())
      return {};
    const std::lock_guard<std::mutex> lock(error_mutex_);
    return error_;
  }

  std::vector<slot> ring_;
  std::atomic<std::uint64_t> head_{0}, tail_{0};
  // Words that change with head_ and tail_, for sleeping on.
  std::atomic<std::uint32_t> pushed_{0}, push_sleepers_{0}, popped_{0}, pop_sleepers_{0};
  std::atomic<bool> stopping_{false}, failed_{false};
  std::mutex error_mutex_;
  status error_;
  std::thread thread_;
};

} // namespace

event::~event() = default;

std::unique_ptr<stream> make_inline_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes) {
  return std::make_unique<inline_stream>(threads, scratch, scratch_bytes);
}

std::unique_ptr<stream> make_worker_stream(std::int32_t threads, std::byte *scratch, std::int64_t scratch_bytes,
                                           stream_priority) {
  return std::make_unique<worker_stream>(threads, scratch, scratch_bytes);
}

std::unique_ptr<stream> make_host_stream(std::int32_t threads) {
  return std::make_unique<worker_stream>(threads, nullptr, 0);
}

} // namespace windlass::rt
