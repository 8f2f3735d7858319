// What differs between back ends outside the kernels.
#ifndef WINDLASS_RT_DETAIL_BACKEND_H
#define WINDLASS_RT_DETAIL_BACKEND_H

namespace windlass::rt::detail {

/// The null back end reserves address space only and must not touch it.
#if defined(WINDLASS_BACKEND_NULL)
constexpr bool backend_moves_data = false;
#else
constexpr bool backend_moves_data = true;
#endif

} // namespace windlass::rt::detail

#endif
