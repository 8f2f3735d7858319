// The number of rows of queries that attention works on at a time.
#ifndef WINDLASS_RT_DETAIL_ATTENTION_BLOCK_H
#define WINDLASS_RT_DETAIL_ATTENTION_BLOCK_H

#include <cstdint>

namespace windlass::rt::detail {

constexpr std::int64_t attention_block = 128;

} // namespace windlass::rt::detail

#endif
