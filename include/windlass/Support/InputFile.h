// Files that users name.
#ifndef WINDLASS_SUPPORT_INPUTFILE_H
#define WINDLASS_SUPPORT_INPUTFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstdint>
#include <memory>

namespace windlass {

/// Returns the bytes of a regular file of at most `mostBytes`, a multiple of 1 MiB. Fails with one line that says what
/// the file was read as, such as "plan".
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readInputFile(llvm::StringRef path, int64_t mostBytes,
                                                                  llvm::StringRef readAs);

} // namespace windlass

#endif
