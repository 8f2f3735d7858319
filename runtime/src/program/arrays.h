// Dense arrays inside data files, whatever the format: token streams, samples and explicit batches are made of them.
#ifndef WINDLASS_RT_SRC_PROGRAM_ARRAYS_H
#define WINDLASS_RT_SRC_PROGRAM_ARRAYS_H

#include "windlass/rt/file.h"
#include "windlass/rt/status.h"
#include "windlass/rt/view.h"

#include <memory>
#include <string>
#include <vector>

namespace windlass::rt {

struct file_array {
  std::shared_ptr<input_file> file;
  std::string name; ///< within the file; empty where the format has one array without a name
  element_type type = element_type::u8;
  bool is_wide_unsigned = false; ///< u32 or u64 in the file, held as i32 or i64 here
  std::vector<std::int64_t> sizes;
  std::int64_t offset = 0; ///< bytes into the file

  std::int64_t elements() const {
    std::int64_t count = 1;
    for (std::int64_t size : sizes)
      count *= size;
    return count;
  }
};

/// Opens the arrays of one data file. The format follows from the file's first bytes, `.bin` without a known header
/// being raw u16 (nanoGPT); `as_bytes` takes any file as one array of bytes.
status open_arrays(const std::string &path, bool as_bytes, std::vector<file_array> &out);

/// Opens the arrays of an `.npy` at `offset` of a file with `length` bytes, and of an `.npz` with stored entries.
status open_npy(const std::shared_ptr<input_file> &file, std::int64_t offset, std::int64_t length,
                const std::string &name, std::vector<file_array> &out);
status open_npz(const std::shared_ptr<input_file> &file, std::vector<file_array> &out);

} // namespace windlass::rt

#endif
