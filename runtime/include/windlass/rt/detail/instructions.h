// Which of the processor's vector instructions kernels use.
#ifndef WINDLASS_RT_DETAIL_INSTRUCTIONS_H
#define WINDLASS_RT_DETAIL_INSTRUCTIONS_H

#include <cstdint>

namespace windlass::rt::detail {

/// Each includes those before it. `baseline` is what the program is compiled for: on x86-64 AVX2 and FMA.
enum class instruction_set : std::int32_t { baseline, avx512 };

/// What kernels use: the most that this processor has, up to the limit. Results may differ between sets in rounding.
instruction_set instructions();
inline bool uses_avx512() { return instructions() == instruction_set::avx512; }

/// Of the whole process, and for good; to be called before its first kernel. Only the lowest of several limits counts.
void limit_instructions(instruction_set most);

} // namespace windlass::rt::detail

#endif
