// The processor's vector instructions that kernels use.
#ifndef WINDLASS_RT_DETAIL_INSTRUCTIONS_H
#define WINDLASS_RT_DETAIL_INSTRUCTIONS_H

#include <cstdint>

namespace windlass::rt::detail {

/// The sets of instructions; each includes those before it. `baseline` is what the program is compiled for: on x86-64
/// AVX2 and FMA.
enum class instruction_set : std::int32_t { baseline, avx512 };

/// Returns the set that kernels use: the largest that this processor has, up to the limit. Results may differ between
/// sets in rounding.
instruction_set instructions();
inline bool uses_avx512() { return instructions() == instruction_set::avx512; }

/// Limits the set for the whole process and for good; to be called before its first kernel. Of several limits the
/// lowest counts.
void limit_instructions(instruction_set most);

} // namespace windlass::rt::detail

#endif
