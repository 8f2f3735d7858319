// Files that hold what is on a disk, and copies between them and memory.
#include "one_job.h"
#include "testing.h"

#include "windlass/rt/context.h"
#include "windlass/rt/disk.h"
#include "windlass/rt/host_copy.h"
#include "windlass/rt/transport.h"

#include <filesystem>
#include <stdlib.h>
#include <string>
#include <vector>

namespace windlass::rt::testing {
namespace {

namespace fs = std::filesystem;

class Disk : public ::testing::Test {
protected:
  Disk() {
    std::string path = (fs::temp_directory_path() / "windlass-disk-XXXXXX").string();
    folder_ = ::mkdtemp(path.data());
  }
  ~Disk() override { fs::remove_all(folder_); }

  std::string folder_;
};

std::vector<std::byte> make_bytes(std::int64_t count, int first) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>((static_cast<std::size_t>(first) + i * 7 + i / 251) % 256);
  return bytes;
}

TEST_F(Disk, KeepsEachOfSeveralRanges) {
  disk_file file;
  constexpr std::int64_t pages = 700; // more than pass at once where memory is not aligned
  EXPECT_STATUS_OK(file.open(folder_, pages * disk_page));
  EXPECT_TRUE(fs::is_empty(folder_));
  struct range {
    std::int64_t offset, bytes;
  };
  const std::vector<range> ranges = {
      {0, 4}, {disk_page, disk_page}, {2 * disk_page, 600 * disk_page + 12}, {699 * disk_page, 40}};
  const test_memory memory = allocate_zeros(602 * disk_page);
  const auto aligned =
      disk_page - static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(memory.get()) % disk_page);
  for (const std::int64_t shift : {aligned % disk_page, aligned % disk_page + 8}) {
    for (const range &each : ranges) {
      const std::vector<std::byte> bytes = make_bytes(each.bytes, static_cast<int>(each.offset / disk_page + shift));
      std::copy(bytes.begin(), bytes.end(), memory.get() + shift);
      EXPECT_STATUS_OK(file.write(each.offset, memory.get() + shift, each.bytes));
    }
    for (const range &each : ranges) {
      std::fill_n(memory.get(), 602 * disk_page, std::byte(0));
      EXPECT_STATUS_OK(file.read(each.offset, memory.get() + shift, each.bytes));
      EXPECT_EQ(std::vector<std::byte>(memory.get() + shift, memory.get() + shift + each.bytes),
                make_bytes(each.bytes, static_cast<int>(each.offset / disk_page + shift)));
      EXPECT_EQ(memory[static_cast<std::size_t>(shift + each.bytes)], std::byte(0)); // no more than was asked for
    }
  }
}

TEST_F(Disk, SaysWhyItCannotBeUsed) {
  disk_file none;
  const status missing = none.open(folder_ + "/none", 4096);
  EXPECT_EQ(missing.kind(), diagnostic::output);
  EXPECT_NE(missing.message().find("No such file"), std::string::npos) << missing.message();
  disk_file large;
  const status full = large.open(folder_, std::int64_t(1) << 60);
  EXPECT_EQ(full.code(), status_code::bad_input);
  EXPECT_NE(full.message().find("1152921504606846976 bytes"), std::string::npos) << full.message();
  EXPECT_TRUE(fs::is_empty(folder_));
  disk_file small;
  EXPECT_STATUS_OK(small.open(folder_, disk_page));
  const test_memory memory = allocate_zeros(disk_page);
  const status behind = small.read(16 * disk_page, memory.get(), 8);
  EXPECT_NE(behind.message().find("ends too early"), std::string::npos) << behind.message();
}

const arena_entry arenas[] = {{memory_kind::device, 4096, "device"},
                              {memory_kind::pinned, 3 * 4096, "host"},
                              {memory_kind::disk, 3 * 4096, "disk"}};
const stream_entry streams[] = {{stream_kind::compute, "compute"},
                                {stream_kind::disk_read, "from the disk"},
                                {stream_kind::disk_write, "to the disk"}};

TEST_F(Disk, IsReadAndWrittenByStreams) {
  program p = {};
  p.arenas = {arenas, 3};
  p.streams = {streams, 3};
  p.events = 1;
  const one_job job({nullptr, 0}, p);
  std::vector<std::unique_ptr<transport>> world = make_local_transports(1);
  context c;
  EXPECT_STATUS_OK(c.create(job, *world[0], 1, folder_));
  const auto at = [&](std::int32_t arena, std::int64_t page) {
    return dense_view(c.at({arena, page * disk_page}), element_type::f32, {1000});
  };
  float *values = at(1, 0).as<float>(), *others = at(1, 1).as<float>(), *back = at(1, 2).as<float>();
  for (int i = 0; i < 1000; ++i) {
    values[i] = static_cast<float>(i);
    others[i] = -static_cast<float>(i);
  }
  stream &reads = c.get_stream(1), &writes = c.get_stream(2);
  EXPECT_STATUS_OK(copy_disk(c, writes, at(2, 0), at(1, 0)));
  EXPECT_STATUS_OK(copy_disk(c, writes, at(2, 2), at(1, 1)));
  EXPECT_STATUS_OK(writes.record(c.get_event(0)));
  EXPECT_STATUS_OK(reads.wait(c.get_event(0)));
  EXPECT_STATUS_OK(copy_disk(c, reads, at(1, 2), at(2, 2)));
  EXPECT_STATUS_OK(c.synchronize());
  EXPECT_EQ(std::vector<float>(back, back + 1000), std::vector<float>(others, others + 1000));

  host_copy held(c, {2, 0}, 4000);
  EXPECT_STATUS_OK(held.load());
  EXPECT_EQ(held.as<float>()[999], 999);
  held.as<float>()[999] = 0.5f;
  EXPECT_STATUS_OK(held.store());
  EXPECT_STATUS_OK(copy_disk(c, reads, at(1, 2), at(2, 0)));
  EXPECT_STATUS_OK(c.synchronize());
  EXPECT_EQ(back[998], 998);
  EXPECT_EQ(back[999], 0.5f);

  EXPECT_EQ(copy_disk(c, reads, at(1, 0), at(1, 2)).code(), status_code::internal); // neither is on the disk
  EXPECT_EQ(copy_disk(c, reads, at(2, 0), at(2, 2)).code(), status_code::internal);
}

} // namespace
} // namespace windlass::rt::testing
