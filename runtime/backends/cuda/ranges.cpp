// Ranges for NVIDIA's tools. NVTX is headers only: it opens the tool that its environment names when it is first used.
#include "windlass/rt/detail/backend.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define WINDLASS_HAS_NVTX
#endif

namespace windlass::rt::detail {

#if defined(WINDLASS_HAS_NVTX)
void push_range(const char *name) { nvtxRangePushA(name); }
void pop_range() { nvtxRangePop(); }
#else
void push_range(const char *) {}
void pop_range() {}
#endif

} // namespace windlass::rt::detail
