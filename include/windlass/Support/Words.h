// Counts and lists as people write them.
#ifndef WINDLASS_SUPPORT_WORDS_H
#define WINDLASS_SUPPORT_WORDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace windlass {

/// Returns a text such as "1 operator" or "2 operators". `plural` is given where it is not the noun with an s.
std::string countOf(int64_t count, llvm::StringRef noun, llvm::StringRef plural = "");

/// Returns a text such as "1", "1 or 2" or "1, 2 or 4", with `last` before the last number.
std::string listOf(llvm::ArrayRef<int64_t> numbers, llvm::StringRef last = "or");

/// Returns a text such as "512 bytes", "1.5 MiB" or "80 GiB": in the largest unit of which there is one, with at most
/// one decimal.
std::string sizeText(int64_t bytes);

/// Returns a text such as "1610612736 bytes (1.5 GiB)", for places where one byte may decide.
std::string exactSizeText(int64_t bytes);

} // namespace windlass

#endif
