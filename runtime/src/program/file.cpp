#include "windlass/rt/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/random.h>
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

// Non-blocking, so that a named pipe is refused below instead of waiting for a writer.
constexpr int reading = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

status input_file::open(const std::string &path) { return take(::open(path.c_str(), reading), path); }

status input_file::open(const folder &in, const std::string &name) {
  return take(::openat(in.descriptor(), name.c_str(), reading | O_NOFOLLOW), in.path_of(name));
}

status input_file::take(int descriptor, const std::string &path) {
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

void output_file::swap(output_file &other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(in_, other.in_);
  name_.swap(other.name_);
  temporary_.swap(other.temporary_);
}

output_file &output_file::operator=(output_file &&other) noexcept {
  output_file taken(std::move(other));
  swap(taken);
  return *this;
}

output_file::~output_file() {
  if (descriptor_ >= 0)
    ::close(descriptor_);
  if (!temporary_.empty())
    ::unlinkat(in_.descriptor(), temporary_.c_str(), 0);
}

constexpr int writing = O_WRONLY | O_CLOEXEC | O_NOFOLLOW;

status output_file::create(const folder &in, const std::string &name) {
  *this = output_file();
  in_ = in;
  name_ = name;
  if (::unlinkat(in.descriptor(), name.c_str(), 0) != 0 && errno != ENOENT)
    return system_error("create", path());
  descriptor_ = ::openat(in.descriptor(), name.c_str(), writing | O_CREAT | O_EXCL, 0666);
  return descriptor_ < 0 ? system_error("create", path()) : ok_status();
}

status output_file::append(const folder &in, const std::string &name) {
  *this = output_file();
  in_ = in;
  name_ = name;
  // Non-blocking: a named pipe has no reader to wait for.
  descriptor_ = ::openat(in.descriptor(), name.c_str(), writing | O_APPEND | O_NONBLOCK);
  if (descriptor_ < 0)
    return errno == ENOENT || errno == ELOOP || errno == ENXIO ? create(in, name) : system_error("open", path());
  struct stat info = {};
  const bool is_ours = ::fstat(descriptor_, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1;
  return is_ours ? ok_status() : create(in, name);
}

// Where a name is too long for another part, only its beginning shows whose temporary file it is.
static constexpr std::size_t shown_bytes = 200, random_digits = 16;
static constexpr std::string_view temporary_end = ".partial";

static std::string make_temporary_name(const std::string &name) {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != sizeof number)
    ;
  char digits[random_digits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(number));
  return "." + name.substr(0, shown_bytes) + "." + digits + std::string(temporary_end);
}

bool is_temporary_name(const std::string &name) {
  const std::size_t end = random_digits + temporary_end.size();
  if (name.size() < end + 2 || name[0] != '.' || name[name.size() - end - 1] != '.' ||
      name.compare(name.size() - temporary_end.size(), temporary_end.size(), temporary_end) != 0)
    return false;
  return name.find_first_not_of("0123456789abcdef", name.size() - end) == name.size() - temporary_end.size();
}

status output_file::replace(const folder &in, const std::string &name) {
  *this = output_file();
  in_ = in;
  name_ = name;
  do {
    temporary_ = make_temporary_name(name);
    descriptor_ = ::openat(in.descriptor(), temporary_.c_str(), writing | O_CREAT | O_EXCL, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0)
    temporary_.clear();
  return descriptor_ < 0 ? system_error("create", path()) : ok_status();
}

status output_file::write(const void *data, std::int64_t bytes) {
  const char *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t put = ::write(descriptor_, from, static_cast<std::size_t>(std::min<std::int64_t>(bytes, 1 << 30)));
    if (put < 0 && errno == EINTR)
      continue;
    if (put < 0)
      return system_error("write", path());
    from += put;
    bytes -= put;
  }
  return ok_status();
}

status output_file::finish() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL)
    return system_error("sync", path());
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0)
    return system_error("close", path());
  if (temporary_.empty())
    return ok_status();
  WINDLASS_TRY(in_.rename(temporary_, name_));
  temporary_.clear();
  return in_.sync();
}

static status read_whole(const input_file &file, std::int64_t limit, std::string &out) {
  if (file.size() > limit)
    return bad_input(quote(file.path()) + " has " + std::to_string(file.size()) + " bytes, more than the " +
                     std::to_string(limit) + " allowed");
  out.resize(static_cast<std::size_t>(file.size()));
  return file.read(0, file.size(), out.data());
}

status read_text(const std::string &path, std::int64_t limit, std::string &out) {
  input_file file;
  WINDLASS_TRY(file.open(path));
  return read_whole(file, limit, out);
}

status read_text(const folder &in, const std::string &name, std::int64_t limit, std::string &out) {
  input_file file;
  WINDLASS_TRY(file.open(in, name));
  return read_whole(file, limit, out);
}

status for_each_line(const input_file &file, std::size_t longest, const std::function<status(std::string_view)> &f) {
  std::string window(std::size_t(1) << 20, '\0'), line; // `line` is what came before the window
  bool is_long = false;
  auto add = [&](std::string_view part) {
    is_long |= part.size() > longest - std::min(longest, line.size());
    if (!is_long)
      line.append(part);
  };
  auto end_line = [&] {
    status done = f(is_long ? std::string_view() : std::string_view(line));
    line.clear();
    is_long = false;
    return done;
  };
  std::string_view rest;
  for (std::int64_t at = 0; at < file.size(); at += static_cast<std::int64_t>(rest.size())) {
    const std::int64_t bytes = std::min<std::int64_t>(file.size() - at, static_cast<std::int64_t>(window.size()));
    WINDLASS_TRY(file.read(at, bytes, window.data()));
    rest = std::string_view(window.data(), static_cast<std::size_t>(bytes));
    std::string_view left = rest;
    for (std::size_t end; (end = left.find('\n')) != std::string_view::npos; left.remove_prefix(end + 1)) {
      add(left.substr(0, end));
      WINDLASS_TRY(end_line());
    }
    add(left);
  }
  return line.empty() && !is_long ? ok_status() : end_line();
}

status replace_file(const folder &in, const std::string &name, std::string_view text) {
  output_file file;
  WINDLASS_TRY(file.replace(in, name));
  WINDLASS_TRY(file.write(text));
  return file.finish();
}

status replace_file(const std::string &path, std::string_view text) {
  folder in;
  WINDLASS_TRY(in.open(parent_path(path)));
  return replace_file(in, base_name(path), text);
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

bool has_extension(std::string_view path, std::string_view extension) {
  return path.size() >= extension.size() && path.substr(path.size() - extension.size()) == extension;
}

} // namespace windlass::rt
