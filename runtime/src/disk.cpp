#include "windlass/rt/disk.h"

#include "windlass/rt/context.h"
#include "windlass/rt/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace windlass::rt {

namespace {

std::int64_t round_up(std::int64_t bytes) { return (bytes + disk_page - 1) / disk_page * disk_page; }

bool is_aligned(const std::byte *memory) { return reinterpret_cast<std::uintptr_t>(memory) % disk_page == 0; }

} // namespace

disk_file::~disk_file() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

status disk_file::open(const std::string &folder, std::int64_t bytes) {
  folder_ = folder;
  const auto error = [&](const std::string &what, int number) {
    return bad_input("cannot " + what + " in " + quote(folder) + ": " + std::generic_category().message(number) +
                     "; give another folder with --disk, or plan with --offload weights")
        .as(diagnostic::output);
  };
  std::string path = folder + "/.windlass-disk-XXXXXX";
  descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (descriptor_ < 0)
    return error("make a file", errno);
  if (::unlink(path.c_str()) != 0)
    return error("remove the name of a file", errno);
  const std::int64_t size = round_up(std::max<std::int64_t>(bytes, 1));
  if (const int number = ::posix_fallocate(descriptor_, 0, size); number != 0)
    return error("reserve " + std::to_string(size) + " bytes for the optimizer's state", number);
  // Memory file systems refuse this: they are a cache themselves.
  ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) | O_DIRECT);
  writing_.writes = true;
  for (channel *way : {&reading_, &writing_}) {
    auto *pages = static_cast<std::byte *>(std::aligned_alloc(disk_page, disk_stream_bytes));
    if (pages == nullptr)
      return bad_input("cannot allocate " + std::to_string(disk_stream_bytes) + " bytes between memory and disk")
          .as(diagnostic::allocation);
    std::memset(pages, 0, disk_stream_bytes);
    way->pages = {pages, std::free};
  }
  return {};
}

status disk_file::move_pages(bool writes, std::int64_t offset, std::byte *memory, std::int64_t bytes) {
  for (std::int64_t done = 0; done < bytes;) {
    const auto rest = static_cast<std::size_t>(bytes - done);
    const ssize_t moved = writes ? ::pwrite(descriptor_, memory + done, rest, offset + done)
                                 : ::pread(descriptor_, memory + done, rest, offset + done);
    if (moved < 0 && errno == EINTR)
      continue;
    if (moved <= 0)
      return bad_input(std::string("cannot ") + (writes ? "write to" : "read from") +
                       " the file of optimizer state in " + quote(folder_) + ": " +
                       (moved < 0 ? std::generic_category().message(errno) : std::string("it ends too early")) +
                       "; continue from the last checkpoint with --resume, with another --disk folder")
          .as(diagnostic::output);
    done += moved;
  }
  return {};
}

status disk_file::move(channel &way, std::int64_t offset, std::byte *memory, std::int64_t bytes) {
  const std::lock_guard<std::mutex> guard(way.turn);
  const double begin = clock_seconds();
  const std::int64_t whole = is_aligned(memory) ? bytes / disk_page * disk_page : 0;
  if (whole > 0)
    WINDLASS_TRY(move_pages(way.writes, offset, memory, whole));
  for (std::int64_t done = whole; done < bytes;) {
    const std::int64_t part = std::min(disk_stream_bytes, bytes - done);
    const auto size = static_cast<std::size_t>(part);
    if (way.writes)
      std::memcpy(way.pages.get(), memory + done, size);
    WINDLASS_TRY(move_pages(way.writes, offset + done, way.pages.get(), round_up(part)));
    if (!way.writes)
      std::memcpy(memory + done, way.pages.get(), size);
    done += part;
  }
  link_.wait(begin, bytes);
  return {};
}

status copy_disk(context &c, stream &s, const view &out, const view &in) {
  if (!out.is_contiguous() || !in.is_contiguous() || out.type != in.type || out.elements() != in.elements())
    return internal_error("a copy between memory and disk got views that are not alike and dense");
  arena *read = c.find_disk(in.data), *written = c.find_disk(out.data);
  if ((read == nullptr) == (written == nullptr))
    return internal_error("a copy between memory and disk got none of the disk, or two");
  disk_file *file = (read ? read : written)->file();
  const std::int64_t offset = read ? in.data - read->at(0) : out.data - written->at(0);
  const std::int64_t bytes = in.elements() * size_of(in.type);
  const work what = {read ? "disk_read" : "disk_write", 0, bytes, {in.elements()}};
  std::byte *memory = read ? out.data : in.data;
  return s.submit(what, [file, offset, memory, bytes, reads = read != nullptr]() -> status {
    return reads ? file->read(offset, memory, bytes) : file->write(offset, memory, bytes);
  });
}

} // namespace windlass::rt
