// The highest rates that this machine reaches, measured: the roof over the kernels' times.
#ifndef WINDLASS_RT_DETAIL_MACHINE_RATES_H
#define WINDLASS_RT_DETAIL_MACHINE_RATES_H

#include <cstdint>

namespace windlass::rt::detail {

/// Returns the f32 floating-point operations per second of multiply-adds on `threads` threads, the best of `turns`
/// turns of about 10 ms. With `loads` one vector comes from the L1 cache for every two multiply-adds, the least that a
/// matrix product with 32 vector registers needs; processors that lower their clock with the power they draw run this
/// variant slower.
double multiply_add_rate(std::int32_t threads, bool loads, int turns);

/// Returns the bytes per second, read and written together, of adding two arrays far larger than the caches into a
/// third; the best of `turns`. Returns 0 when the memory for them (192 MiB) cannot be had.
double memory_rate(std::int32_t threads, int turns);

} // namespace windlass::rt::detail

#endif
