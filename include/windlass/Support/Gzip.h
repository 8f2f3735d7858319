// Files that may be packed.
#ifndef WINDLASS_SUPPORT_GZIP_H
#define WINDLASS_SUPPORT_GZIP_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>

namespace windlass {

/// Returns whether bytes begin as a gzip file does.
inline bool isGzip(llvm::StringRef bytes) { return bytes.starts_with("\x1f\x8b"); }

/// Unpacks a gzip stream (one or several members) to at most `budget` bytes. Memory grows with what really comes out,
/// so a header that promises much costs nothing. Fails where the stream is damaged, truncated or larger.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> unpackGzip(llvm::StringRef packed, llvm::StringRef name,
                                                               int64_t budget);

} // namespace windlass

#endif
