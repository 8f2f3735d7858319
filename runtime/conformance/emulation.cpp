// The emulated device draws orders that a real one may have, so that what a program forgets is seen: errors that are
// planted here show under some seeds, and the same work without them gives one result under all.
#include "nccl.h"
#include "streams.h"
#include "testing.h"
#include "windlass/rt/map.h"
#include "windlass/rt/streams.h"

#include "../src/program/staging.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <thread>
#include <vector>

namespace windlass::rt::cuda::emulation {
namespace {

constexpr int seeds = 40;

/// Memory of the device, and its first value after all is done.
struct device_floats {
  explicit device_floats(std::size_t count) : bytes(count * sizeof(float)) {
    void *memory = nullptr;
    cudaMalloc(&memory, bytes);
    data = static_cast<float *>(memory);
  }
  device_floats(const device_floats &) = delete;
  device_floats &operator=(const device_floats &) = delete;
  ~device_floats() { cudaFree(data); }
  std::vector<float> read() const {
    std::vector<float> out(bytes / sizeof(float));
    cudaDeviceSynchronize();
    const open_memory open;
    std::memcpy(out.data(), data, bytes);
    return out;
  }
  std::size_t bytes;
  float *data;
};

/// Two streams and an event.
struct two_streams {
  two_streams() {
    cudaStreamCreateWithPriority(&first, cudaStreamNonBlocking, 0);
    cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, 0);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  two_streams(const two_streams &) = delete;
  two_streams &operator=(const two_streams &) = delete;
  ~two_streams() {
    cudaEventDestroy(event);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
  }
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
};

/// Returns the results of `work` under all seeds.
std::set<float> draw(const std::function<float()> &work) {
  std::set<float> results;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    draw_orders(seed);
    results.insert(work());
  }
  draw_orders(0);
  return results;
}

void write(cudaStream_t stream, float *to, float value) {
  launch(stream, 1, 1, [=] { *to = value; });
}

/// A stream writes 2 over 1, and another one doubles it; with `waits` false, when it likes.
float hand_over(bool waits) {
  const device_floats x(1);
  const two_streams both;
  write(both.first, x.data, 1);
  cudaDeviceSynchronize();
  write(both.first, x.data, 2);
  cudaEventRecord(both.event, both.first);
  if (waits)
    cudaStreamWaitEvent(both.second, both.event, 0);
  launch(both.second, 1, 1, [at = x.data] { *at *= 2; });
  return x.read()[0];
}

TEST(Emulation, AMissingWaitShows) {
  EXPECT_EQ(draw([] { return hand_over(true); }), std::set<float>{4});
  // On a busy machine the device may come to each command before the next one is given: then only more draws show it.
  std::set<float> seen;
  for (int round = 0; round < 50 && seen.size() < 2; ++round)
    seen.merge(draw([] { return hand_over(false); }));
  EXPECT_EQ(seen, (std::set<float>{2, 4}));
}

TEST(Emulation, AnEventIsWhereItWasRecordedWhenTheStreamWaited) {
  EXPECT_EQ(draw([] {
              const device_floats x(2);
              const two_streams both;
              write(both.first, x.data, 1);
              cudaEventRecord(both.event, both.first);
              cudaStreamWaitEvent(both.second, both.event, 0);
              launch(both.second, 1, 1, [at = x.data] { at[1] = at[0]; });
              cudaEventRecord(both.event, both.second);
              cudaStreamWaitEvent(both.first, both.event, 0);
              write(both.first, x.data, 3);
              cudaEventRecord(both.event, both.first);
              return x.read()[1];
            }),
            std::set<float>{1});
}

/// Each thread of a block takes what the thread before it has written; with `waits` false, perhaps before that.
float pass_on(bool waits) {
  constexpr unsigned threads = 64;
  const device_floats x(threads);
  const two_streams both;
  launch(both.first, 1, threads, [=, at = x.data] {
    __shared__ float values[threads];
    values[threadIdx.x] = 0;
    __syncthreads();
    values[threadIdx.x] = 1;
    if (waits)
      __syncthreads();
    at[threadIdx.x] = threadIdx.x == 0 ? 1 : values[threadIdx.x - 1];
  });
  float sum = 0;
  for (const float each : x.read())
    sum += each;
  return sum;
}

TEST(Emulation, AMissingBarrierShows) {
  EXPECT_EQ(draw([] { return pass_on(true); }), std::set<float>{64});
  EXPECT_GT(draw([] { return pass_on(false); }).size(), 1u);
  EXPECT_EQ(pass_on(false), 64) << "threads take turns in their order as a rule, which hides it";
}

TEST(Emulation, BlocksRunInAnyOrder) {
  EXPECT_GT(draw([] {
              const device_floats x(1);
              const two_streams both;
              launch(both.first, 8, 1, [at = x.data] { *at = static_cast<float>(blockIdx.x); });
              return x.read()[0];
            }).size(),
            1u);
}

TEST(Emulation, MemoryIsNotANumberUntilItIsWritten) {
  draw_orders(1);
  const device_floats x(2);
  const two_streams both;
  write(both.first, x.data, 1);
  const std::vector<float> values = x.read();
  draw_orders(0);
  EXPECT_EQ(values[0], 1);
  EXPECT_TRUE(std::isnan(values[1]));
}

/// Loads four neighbours at once from the second element on.
TEST(EmulationDeathTest, AMisalignedAccessEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto load_from = [](std::int64_t first) {
    const device_floats x(8);
    const two_streams both;
    launch(both.first, 1, 1, [at = x.data, first] {
      at[0] = detail::load_pack<4, float>(reinterpret_cast<const std::byte *>(at), first, /*repeats=*/false).of[0];
    });
    cudaDeviceSynchronize();
  };
  load_from(4);
  EXPECT_DEATH(load_from(1), "misaligned address");
}

TEST(Emulation, PagedMemoryIsTakenBeforeACopyReturns) {
  EXPECT_EQ(draw([] {
              const device_floats x(1);
              const two_streams both;
              float value = 5;
              cudaMemcpyAsync(x.data, &value, sizeof value, cudaMemcpyHostToDevice, both.first);
              value = 6;
              return x.read()[0];
            }),
            std::set<float>{5});
}

TEST(Emulation, StagedBytesAreCopiedBeforeTheHostOverwritesThem) {
  constexpr std::size_t sends = 16;
  EXPECT_EQ(draw([] {
              const device_floats x(sends);
              const std::unique_ptr<stream> copies = make_worker_stream(1, nullptr, 0, stream_priority::normal);
              staging blocks;
              EXPECT_STATUS_OK(blocks.allocate(*copies, sizeof(float), 1));
              for (std::size_t i = 0; i < sends; ++i) {
                std::byte *block = nullptr;
                EXPECT_STATUS_OK(blocks.take(block));
                const auto value = static_cast<float>(i);
                std::memcpy(block, &value, sizeof value);
                EXPECT_STATUS_OK(blocks.send(reinterpret_cast<std::byte *>(x.data + i), sizeof value));
              }
              const std::vector<float> values = x.read();
              float arrived = 0;
              for (std::size_t i = 0; i < sends; ++i)
                arrived += values[i] == static_cast<float>(i);
              return arrived;
            }),
            std::set<float>{sends});
}

/// Two ranks that add up over two communicators, each of which has a stream; the streams need not take turns alike.
TEST(Emulation, CollectivesOfTwoStreamsMeetInAnyOrder) {
  EXPECT_EQ(draw([] {
              ncclUniqueId ids[2];
              for (ncclUniqueId &id : ids)
                ncclGetUniqueId(&id);
              float results[2] = {};
              const auto rank = [&](int number) {
                const device_floats x(2);
                const two_streams both;
                ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
                ncclComm_t comms[2];
                for (int i = 0; i < 2; ++i) {
                  ncclCommInitRankConfig(&comms[i], 2, ids[i], number, &config);
                  const cudaStream_t stream = i == 0 ? both.first : both.second;
                  write(stream, x.data + i, static_cast<float>(number + 1));
                  ncclAllReduce(x.data + i, x.data + i, 1, ncclFloat32, ncclSum, comms[i], stream);
                }
                cudaStreamSynchronize(both.first);
                cudaStreamSynchronize(both.second);
                const std::vector<float> sums = x.read();
                results[number] = sums[0] + sums[1];
                for (ncclComm_t comm : comms)
                  ncclCommAbort(comm);
              };
              std::thread other(rank, 1);
              rank(0);
              other.join();
              return results[0] + results[1];
            }),
            std::set<float>{12});
}

} // namespace
} // namespace windlass::rt::cuda::emulation
