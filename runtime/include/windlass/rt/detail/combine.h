// The arithmetic of reducing collectives.
#ifndef WINDLASS_RT_DETAIL_COMBINE_H
#define WINDLASS_RT_DETAIL_COMBINE_H

#include "windlass/rt/kernels.h"

namespace windlass::rt::detail {

/// Reduces element i of all `members` parts, in their order, and writes it to each of the `outputs`, which may be the
/// parts themselves. 16-bit floats are summed in f32 and rounded once; booleans are 0 or 1, for which sum is max.
status combine(std::byte *const *outputs, std::int32_t output_count, const std::byte *const *parts,
               std::int32_t members, std::int64_t elements, element_type type, reduction kind);

/// Returns the first element of part `part` when `elements` are divided among `parts` so that borders fall on multiples
/// of 16.
std::int64_t part_begin(std::int64_t elements, std::int32_t parts, std::int32_t part);

} // namespace windlass::rt::detail

#endif
