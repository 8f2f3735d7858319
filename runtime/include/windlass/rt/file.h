// Files as the runtime reads and writes them: bounded reads at offsets, writes that are on disk when they are said to
// be.
#ifndef WINDLASS_RT_FILE_H
#define WINDLASS_RT_FILE_H

#include "windlass/rt/status.h"

#include <cstddef>
#include <cstdint>
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
  status open(const std::string &path);
  bool is_open() const { return descriptor_ >= 0; }
  const std::string &path() const { return path_; }
  std::int64_t size() const { return size_; }
  /// Reads exactly `bytes` bytes that start at `offset`.
  status read(std::int64_t offset, std::int64_t bytes, void *out) const;

private:
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::string path_;
};

/// A file opened for writing. `finish` returns once its bytes are on disk.
class output_file {
public:
  output_file() = default;
  output_file(const output_file &) = delete;
  output_file &operator=(const output_file &) = delete;
  ~output_file();
  /// Creates or empties `path`; with `appends` keeps what it holds.
  status create(const std::string &path, bool appends = false);
  bool is_open() const { return descriptor_ >= 0; }
  status write(const void *data, std::int64_t bytes);
  status write(std::string_view text) { return write(text.data(), static_cast<std::int64_t>(text.size())); }
  status finish();

private:
  int descriptor_ = -1;
  std::string path_;
};

/// The whole of a file of at most `limit` bytes.
status read_text(const std::string &path, std::int64_t limit, std::string &out);
/// Replaces `path` as one step: a dotted neighbour is written, synced and renamed over it.
status replace_file(const std::string &path, std::string_view text);
/// Creates a folder and its parents where they are missing.
status make_folders(const std::string &path);
/// Makes the entries of a folder durable.
status sync_folder(const std::string &path);
/// Removes a folder that holds files only. A missing one is no error.
status remove_flat_folder(const std::string &path);
bool is_folder(const std::string &path);
bool is_file(const std::string &path);
/// `folder` and `name` joined by a slash.
std::string join_path(const std::string &folder, const std::string &name);
/// The part before the last slash ("." without one).
std::string parent_path(const std::string &path);
/// The part after the last slash.
std::string base_name(const std::string &path);
/// `text` in single quotes for a one-line message: control characters and bytes outside ASCII escaped, long text cut.
std::string quote(std::string_view text);

} // namespace windlass::rt

#endif
