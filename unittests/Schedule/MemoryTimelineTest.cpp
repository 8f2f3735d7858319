#include "windlass/Schedule/MemoryTimeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <array>
#include <random>

using namespace windlass::schedule;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

namespace {

TEST(ByteRanges, DenseAndTransposedWindowsAreOneRange) {
  bool isExact = false;
  EXPECT_THAT(getByteRanges(8, 4, {3, 5}, {5, 1}, isExact), ElementsAre(Pair(8, 68)));
  EXPECT_THAT(getByteRanges(8, 4, {5, 3}, {1, 5}, isExact), ElementsAre(Pair(8, 68)));
  EXPECT_TRUE(isExact);
}

TEST(ByteRanges, ColumnsAreOneRangePerRow) {
  bool isExact = false;
  EXPECT_THAT(getByteRanges(4, 4, {2, 2}, {5, 1}, isExact), ElementsAre(Pair(4, 12), Pair(24, 32)));
}

TEST(ByteRanges, RepeatedDimsAddNothing) {
  bool isExact = false;
  EXPECT_THAT(getByteRanges(0, 4, {9, 2}, {0, 1}, isExact), ElementsAre(Pair(0, 8)));
  EXPECT_TRUE(getByteRanges(0, 4, {9, 0}, {0, 1}, isExact).empty());
}

TEST(ByteRanges, TooManyRunsBecomeOneRange) {
  bool isExact = true;
  EXPECT_THAT(getByteRanges(0, 4, {100, 1}, {2, 1}, isExact, 10), ElementsAre(Pair(0, 796)));
  EXPECT_FALSE(isExact);
}

TEST(MemoryTimeline, FindsUnwrittenAndOverwrittenBytes) {
  StreamOrder order;
  MemoryTimeline memory(order);
  order.beginCommand(0);
  EXPECT_THAT(memory.read({{0, 16}}, 1), HasSubstr("byte 0 before it is written"));
  EXPECT_EQ(memory.write({{0, 16}}, 1), "");
  EXPECT_EQ(memory.read({{0, 16}}, 1), "");
  EXPECT_EQ(memory.write({{12, 20}}, 2), "");
  EXPECT_THAT(memory.read({{0, 16}}, 1), HasSubstr("reads byte 12 of value 1 after value 2"));
  EXPECT_EQ(memory.read({{0, 12}}, 1), "");
  memory.forget({0, 4});
  EXPECT_THAT(memory.read({{0, 12}}, 1), HasSubstr("before it is written"));
}

TEST(MemoryTimeline, StreamsNeedEvents) {
  StreamOrder order;
  MemoryTimeline memory(order);
  order.beginCommand(0);
  EXPECT_EQ(memory.write({{0, 16}}, 1), "");
  order.record(0, 0);
  order.beginCommand(1);
  EXPECT_THAT(memory.read({{0, 16}}, 1), HasSubstr("without waiting for its write on stream 0"));
  EXPECT_EQ(order.wait(0, 1), "");
  order.beginCommand(1);
  EXPECT_EQ(memory.read({{0, 16}}, 1), "");
  order.beginCommand(0);
  EXPECT_THAT(memory.write({{0, 16}}, 2), HasSubstr("without waiting for its reader on stream 1"));
  order.record(1, 1);
  EXPECT_EQ(order.wait(1, 0), "");
  order.beginCommand(0);
  EXPECT_EQ(memory.write({{0, 16}}, 2), "");
  EXPECT_THAT(order.wait(9, 0), HasSubstr("nothing has recorded"));
}

TEST(MemoryTimeline, PaddingBetweenPartsIsAdopted) {
  StreamOrder order;
  MemoryTimeline memory(order);
  order.beginCommand(0);
  EXPECT_EQ(memory.write({{0, 40}, {64, 128}}, 1), "");
  memory.adoptPadding({0, 128}, 1, 64);
  EXPECT_EQ(memory.read({{0, 128}}, 1), "");
  // A part that is missing is no padding.
  EXPECT_EQ(memory.write({{256, 300}}, 1), "");
  memory.adoptPadding({0, 300}, 1, 64);
  EXPECT_THAT(memory.read({{0, 300}}, 1), HasSubstr("byte 128 before it is written"));
}

TEST(MemoryTimeline, ArenasShareStreamsAndNoByte) {
  StreamOrder order;
  MemoryTimeline device(order), host(order);
  order.beginCommand(0);
  EXPECT_EQ(device.write({{0, 16}}, 1), "");
  EXPECT_THAT(host.read({{0, 16}}, 1), HasSubstr("byte 0 before it is written"));
  order.beginCommand(1);
  EXPECT_EQ(host.write({{0, 16}}, 2), "") << "other bytes: nothing to wait for";
  order.record(0, 0);
  EXPECT_EQ(order.wait(0, 1), "");
  order.beginCommand(1);
  EXPECT_EQ(device.read({{0, 16}}, 1), "") << "one event orders the commands for both";
  EXPECT_EQ(host.read({{0, 16}}, 2), "");
}

/// The same, each byte for itself.
class ByteTimeline {
public:
  void define(const ByteRange &range, int64_t owner) {
    each(range, [&](Byte &byte) { byte = {owner, 0, 0, {}}; });
  }
  void forget(const ByteRange &range) {
    each(range, [](Byte &byte) { byte.owner = MemoryTimeline::kNothing; });
  }
  void beginCommand(int64_t newStream) { clocks[stream = newStream][stream] = ++number; }
  std::string read(const std::vector<ByteRange> &ranges, int64_t owner) {
    for (const ByteRange &range : ranges)
      for (int64_t i = range.first; i < range.second; ++i) {
        std::string at = "reads byte " + std::to_string(i);
        Byte &byte = bytes[i];
        if (byte.owner == MemoryTimeline::kNothing)
          return at + " before it is written";
        if (byte.owner != owner)
          return at + " of value " + std::to_string(owner) + " after value " + std::to_string(byte.owner) +
                 " overwrote it";
        if (!isAfter(byte.writer, byte.written))
          return at + " without waiting for its write on stream " + std::to_string(byte.writer);
        byte.readers[stream] = number;
      }
    return {};
  }
  std::string write(const std::vector<ByteRange> &ranges, int64_t owner) {
    for (const ByteRange &range : ranges)
      for (int64_t i = range.first; i < range.second; ++i) {
        std::string at = "writes byte " + std::to_string(i) + " without waiting for its ";
        Byte &byte = bytes[i];
        if (!isAfter(byte.writer, byte.written))
          return at + "write on stream " + std::to_string(byte.writer);
        for (int64_t reader = 0; reader < kStreams; ++reader)
          if (!isAfter(reader, byte.readers[reader]))
            return at + "reader on stream " + std::to_string(reader);
        byte = {owner, stream, number, {}};
      }
    return {};
  }
  void record(int64_t event, int64_t onStream) { events[event] = clocks[onStream]; }
  void wait(int64_t event, int64_t onStream) {
    for (int64_t other = 0; other < kStreams; ++other)
      clocks[onStream][other] = std::max(clocks[onStream][other], events[event][other]);
  }
  int64_t ownerOf(int64_t byte) const { return bytes[byte].owner; }

  static constexpr int64_t kBytes = 96, kStreams = 3;

private:
  using Clock = std::array<int64_t, kStreams>;
  struct Byte {
    int64_t owner = MemoryTimeline::kNothing, writer = 0, written = 0;
    Clock readers{};
  };
  template <class Function> void each(const ByteRange &range, Function function) {
    for (int64_t i = range.first; i < range.second; ++i)
      function(bytes[i]);
  }
  bool isAfter(int64_t other, int64_t otherNumber) const {
    return otherNumber == 0 || other == stream || clocks[stream][other] >= otherNumber;
  }

  std::array<Byte, kBytes> bytes;
  std::array<Clock, kStreams> clocks{};
  std::array<Clock, kStreams> events{};
  int64_t stream = 0, number = 0;
};

TEST(MemoryTimeline, SaysOfStridedWindowsWhatEachByteSays) {
  std::mt19937 random(1);
  auto below = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint64_t>(most)); };
  int64_t good = 0, wrong = 0;
  for (int episode = 0; episode < 5000; ++episode) {
    StreamOrder order;
    MemoryTimeline memory(order);
    ByteTimeline judge;
    memory.define({0, ByteTimeline::kBytes}, 0);
    judge.define({0, ByteTimeline::kBytes}, 0);
    for (int64_t stream = 0; stream < ByteTimeline::kStreams; ++stream) {
      order.record(stream, stream);
      judge.record(stream, stream);
    }
    // Until the first mistake: what follows one is not defined.
    std::string said;
    for (int command = 0; command < 40 && said.empty(); ++command) {
      // A window of rows, as parts of a row of 24 bytes are.
      int64_t begin = below(24), run = 1 + below(24 - begin), row = below(3), rows = 1 + below(4 - row);
      std::vector<ByteRange> ranges;
      for (int64_t i = row; i < row + rows; ++i)
        if (run == 24 && !ranges.empty())
          ranges.back().second += 24;
        else
          ranges.push_back({24 * i + begin, 24 * i + begin + run});
      int64_t stream = below(ByteTimeline::kStreams);
      for (int64_t other = 0; other < ByteTimeline::kStreams; ++other)
        if (below(4) != 0) {
          ASSERT_EQ(order.wait(other, stream), "");
          judge.wait(other, stream);
        }
      order.beginCommand(stream);
      judge.beginCommand(stream);
      std::string expected;
      switch (below(8)) {
      case 0:
        memory.forget(ranges.front());
        judge.forget(ranges.front());
        break;
      case 1:
      case 2: {
        int64_t owner = 1 + below(2);
        said = memory.write(ranges, owner);
        expected = judge.write(ranges, owner);
        break;
      }
      default: {
        int64_t owner = judge.ownerOf(ranges.front().first);
        said = memory.read(ranges, owner);
        expected = judge.read(ranges, owner);
      }
      }
      order.record(stream, stream);
      judge.record(stream, stream);
      ASSERT_EQ(said, expected) << "episode " << episode << ", command " << command;
      said.empty() ? ++good : ++wrong;
    }
  }
  EXPECT_GT(good, 10000);
  EXPECT_GT(wrong, 1000);
}

} // namespace
