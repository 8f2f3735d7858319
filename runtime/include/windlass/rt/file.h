// Files as the runtime reads and writes them: bounded reads at offsets, and writes that are durable when they are
// reported done.
#ifndef WINDLASS_RT_FILE_H
#define WINDLASS_RT_FILE_H

#include "windlass/rt/folder.h"
#include "windlass/rt/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace windlass::rt {

/// A regular file opened for reading. Reads are checked against its size, so that a file cut short is an error and not
/// a signal.
class input_file {
public:
  input_file() = default;
  input_file(input_file &&other) noexcept;
  input_file &operator=(input_file &&other) noexcept;
  ~input_file();
  /// Opens a file that the user names, links followed.
  status open(const std::string &path);
  /// Opens the file `name` of a folder, which must not be a link.
  status open(const folder &in, const std::string &name);
  bool is_open() const { return descriptor_ >= 0; }
  const std::string &path() const { return path_; }
  std::int64_t size() const { return size_; }
  /// Reads exactly `bytes` bytes that start at `offset`.
  status read(std::int64_t offset, std::int64_t bytes, void *out) const;

private:
  status take(int descriptor, const std::string &path);
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::string path_;
};

/// A file of a folder, opened for writing. What stands under its name is never written through: a link is removed, and
/// so is a file that has other names too. `finish` returns once the bytes are on disk.
class output_file {
public:
  output_file() = default;
  output_file(output_file &&other) noexcept { swap(other); }
  output_file &operator=(output_file &&other) noexcept;
  ~output_file();
  /// Creates `name` anew.
  status create(const folder &in, const std::string &name);
  /// Continues the file `name`, or creates it.
  status append(const folder &in, const std::string &name);
  /// Writes a file that takes the place of `name` as one step when it is finished, and is dropped when it is not.
  status replace(const folder &in, const std::string &name);
  bool is_open() const { return descriptor_ >= 0; }
  std::string path() const { return in_.path_of(name_); }
  status write(const void *data, std::int64_t bytes);
  status write(std::string_view text) { return write(text.data(), static_cast<std::int64_t>(text.size())); }
  status finish();

private:
  void swap(output_file &other) noexcept;
  int descriptor_ = -1;
  folder in_;
  std::string name_, temporary_; ///< the latter until `replace` is finished
};

/// Returns whether `output_file::replace` could have given a file this name.
bool is_temporary_name(const std::string &name);

/// Reads a whole file of at most `limit` bytes.
status read_text(const std::string &path, std::int64_t limit, std::string &out);
status read_text(const folder &in, const std::string &name, std::int64_t limit, std::string &out);
/// Calls `f` with every line of a file, without its end; for a line of more than `longest` bytes, with an empty text.
status for_each_line(const input_file &file, std::size_t longest, const std::function<status(std::string_view)> &f);
/// Replaces a file as one step. A `path` is a file that the user names.
status replace_file(const folder &in, const std::string &name, std::string_view text);
status replace_file(const std::string &path, std::string_view text);
bool is_folder(const std::string &path);
bool is_file(const std::string &path);
/// Returns `folder` and `name` joined by a slash.
std::string join_path(const std::string &folder, const std::string &name);
/// Returns the part before the last slash ("." without one).
std::string parent_path(const std::string &path);
/// Returns the part after the last slash.
std::string base_name(const std::string &path);
/// Returns whether a path ends with `extension`, which has its dot.
bool has_extension(std::string_view path, std::string_view extension);
/// Returns `text` in single quotes for a one-line message: control characters and bytes outside ASCII escaped, long
/// text cut.
std::string quote(std::string_view text);

} // namespace windlass::rt

#endif
