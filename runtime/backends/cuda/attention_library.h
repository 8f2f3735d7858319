// Attention by a library of the device.
#ifndef WINDLASS_BACKENDS_CUDA_ATTENTION_LIBRARY_H
#define WINDLASS_BACKENDS_CUDA_ATTENTION_LIBRARY_H

#include "windlass/rt/attention_shape.h"
#include "windlass/rt/status.h"

#include <memory>
#include <string>

namespace windlass::rt {
class stream;
}

namespace windlass::rt::cuda {

/// The addresses of the operands of an attention.
struct attention_memory {
  std::byte *operands[attention_shape::operands];
  std::byte *lse;
};

/// A prepared attention of a library, for one shape.
class prepared_attention {
public:
  virtual ~prepared_attention() = default;
  virtual std::int64_t workspace_bytes() const = 0;
  virtual status run(const attention_memory &memory, std::byte *workspace) = 0;
};

/// A library's handle for one stream. Used by one thread.
class attention_library {
public:
  virtual ~attention_library() = default;
  /// Returns the library's name and version.
  virtual std::string version() const = 0;
  /// Prepares for operands at multiples of 16 bytes. Fails where the library has no way to compute the attention that
  /// gives the same bits again.
  virtual status prepare(const attention_shape &shape, std::unique_ptr<prepared_attention> &out) = 0;
};
/// Opens the library; fails with the reason where there is none.
status open_attention_library(stream &s, std::unique_ptr<attention_library> &out);

} // namespace windlass::rt::cuda

#endif
