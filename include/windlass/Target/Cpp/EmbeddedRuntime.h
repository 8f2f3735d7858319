// The runtime's source files, embedded in the compiler.
#ifndef WINDLASS_TARGET_CPP_EMBEDDEDRUNTIME_H
#define WINDLASS_TARGET_CPP_EMBEDDEDRUNTIME_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace windlass::cpp {

struct EmbeddedFile {
  llvm::StringRef path; ///< relative to the runtime's folder
  llvm::StringRef text;
};

/// Returns the files of the runtime that projects are emitted with.
llvm::ArrayRef<EmbeddedFile> getEmbeddedRuntime();

} // namespace windlass::cpp

#endif
