// Functions that device code calls too.
#ifndef WINDLASS_RT_DETAIL_FUNCTION_H
#define WINDLASS_RT_DETAIL_FUNCTION_H

#if defined(__CUDACC__)
#define WINDLASS_FN __host__ __device__ inline
#else
#define WINDLASS_FN inline
#endif

#endif
