#include "windlass/rt/file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace windlass::rt {
namespace fs = std::filesystem;

static status system_error(const char *verb, const std::string &path) {
  return bad_input(std::string("cannot ") + verb + " " + quote(path) + ": " + std::generic_category().message(errno));
}

std::string quote(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 200)) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      const char *digits = "0123456789abcdef";
      out += "\\x";
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out + (text.size() > 200 ? "...'" : "'");
}

input_file::input_file(input_file &&other) noexcept
    : descriptor_(other.descriptor_), size_(other.size_), path_(std::move(other.path_)) {
  other.descriptor_ = -1;
}

input_file &input_file::operator=(input_file &&other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

input_file::~input_file() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

status input_file::open(const std::string &path) {
  // Non-blocking, so that a named pipe is refused below instead of waiting for a writer.
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return system_error("open", path);
  struct stat info = {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return bad_input(quote(path) + " is not a regular file");
  }
  if (descriptor_ >= 0)
    ::close(descriptor_);
  descriptor_ = descriptor;
  size_ = info.st_size;
  path_ = path;
  return ok_status();
}

status input_file::read(std::int64_t offset, std::int64_t bytes, void *out) const {
  if (offset < 0 || bytes < 0 || offset > size_ || bytes > size_ - offset)
    return bad_input(quote(path_) + " is too short: bytes " + std::to_string(offset) + " to " +
                     std::to_string(offset + bytes) + " were asked of " + std::to_string(size_));
  char *to = static_cast<char *>(out);
  while (bytes > 0) {
    ssize_t got = ::pread(descriptor_, to, static_cast<std::size_t>(std::min<std::int64_t>(bytes, 1 << 30)), offset);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return system_error("read", path_);
    if (got == 0)
      return bad_input(quote(path_) + " became shorter while it was read");
    to += got;
    offset += got;
    bytes -= got;
  }
  return ok_status();
}

output_file::~output_file() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
}

status output_file::create(const std::string &path, bool appends) {
  if (descriptor_ >= 0)
    ::close(descriptor_);
  path_ = path;
  descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (appends ? O_APPEND : O_TRUNC), 0666);
  return descriptor_ < 0 ? system_error("create", path) : ok_status();
}

status output_file::write(const void *data, std::int64_t bytes) {
  const char *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t put = ::write(descriptor_, from, static_cast<std::size_t>(std::min<std::int64_t>(bytes, 1 << 30)));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return system_error("write", path_);
    from += put;
    bytes -= put;
  }
  return ok_status();
}

status output_file::finish() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL)
    return system_error("sync", path_);
  int result = ::close(descriptor_);
  descriptor_ = -1;
  return result != 0 ? system_error("close", path_) : ok_status();
}

status read_text(const std::string &path, std::int64_t limit, std::string &out) {
  input_file file;
  WINDLASS_TRY(file.open(path));
  if (file.size() > limit)
    return bad_input(quote(path) + " has " + std::to_string(file.size()) + " bytes, more than the " +
                     std::to_string(limit) + " allowed");
  out.resize(static_cast<std::size_t>(file.size()));
  return file.read(0, file.size(), out.data());
}

status replace_file(const std::string &path, std::string_view text) {
  std::string temporary = join_path(parent_path(path), "." + base_name(path) + ".partial");
  output_file file;
  WINDLASS_TRY(file.create(temporary));
  WINDLASS_TRY(file.write(text));
  WINDLASS_TRY(file.finish());
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return system_error("rename a file to", path);
  return sync_folder(parent_path(path));
}

status make_folders(const std::string &path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!is_folder(path))
    return bad_input("cannot create the folder " + quote(path) + ": " +
                     (error ? error.message() : std::string("a file of that name exists")));
  return ok_status();
}

status sync_folder(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return system_error("open the folder", path);
  int result = ::fsync(descriptor);
  int error = errno;
  ::close(descriptor);
  errno = error;
  // Some network file systems cannot sync folders and say EINVAL; their renames are synchronous.
  return result != 0 && error != EINVAL ? system_error("sync the folder", path) : ok_status();
}

status remove_flat_folder(const std::string &path) {
  std::error_code error;
  if (!is_folder(path))
    return ok_status();
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
    if (::unlink(entry->path().c_str()) != 0)
      return system_error("remove", entry->path().string());
  if (error || ::rmdir(path.c_str()) != 0)
    return system_error("remove the folder", path);
  return ok_status();
}

bool is_folder(const std::string &path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_file(const std::string &path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string join_path(const std::string &folder, const std::string &name) {
  if (folder.empty())
    return name;
  return folder.back() == '/' ? folder + name : folder + "/" + name;
}

std::string parent_path(const std::string &path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string base_name(const std::string &path) {
  std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

} // namespace windlass::rt
