#include "openblas.h"

#include "windlass/rt/detail/instructions.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

namespace windlass::rt::cpu::openblas {

namespace {

// Constants of cblas.h, which may not be installed.
constexpr int column_major = 102, no_transpose = 111, transpose = 112;
using sgemm_function = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                                const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

struct library {
  sgemm_function sgemm = nullptr;
  void (*set_team)(int) = nullptr; // of the OpenMP that the library brings, if it does
  std::string file, core_name;
  status result;
};

/// The core type whose kernels suit this processor, or null to let the library choose. Release 0.3.21 does not know
/// processors newer than itself and falls back to kernels for SSE2 on them.
const char *core_type() {
#if defined(__x86_64__)
  if (detail::uses_avx512())
    return "SKYLAKEX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool is_amd = __get_cpuid(0, &a, &b, &c, &d) != 0 && b == 0x68747541; // "Auth"enticAMD
    return is_amd ? "ZEN" : "HASWELL";
  }
#endif
  return nullptr;
}

library open_library() {
  library lib;
  // The library reads this while it is opened; afterwards the environment is as it was.
  constexpr const char *variable = "OPENBLAS_CORETYPE";
  const char *const old = std::getenv(variable);
  const std::string before = old == nullptr ? "" : old;
  const char *const core = core_type();
  if (core != nullptr)
    setenv(variable, core, 1);
  // The build that uses OpenMP, in Debian's folder and under Fedora's name, then any other build.
  constexpr const char *names[] = {
#if defined(__x86_64__)
      "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0",
#elif defined(__aarch64__)
      "/usr/lib/aarch64-linux-gnu/openblas-openmp/libopenblas.so.0",
#endif
      "libopenblaso.so.0",
      "libopenblas.so.0",
      "libopenblas.so",
  };
  void *handle = nullptr;
  for (const char *name : names)
    if (handle = dlopen(name, RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      lib.file = name;
      break;
    }
  if (core != nullptr && old != nullptr)
    setenv(variable, before.c_str(), 1);
  else if (core != nullptr)
    unsetenv(variable);
  if (handle == nullptr) {
    lib.result = bad_input("cannot open libopenblas.so.0, which multiplies matrices: install the package "
                           "libopenblas0-openmp (Debian, Ubuntu) or openblas-openmp (Fedora)")
                     .as(diagnostic::backend);
    return lib;
  }
  lib.sgemm = reinterpret_cast<sgemm_function>(dlsym(handle, "cblas_sgemm"));
  if (lib.sgemm == nullptr) {
    lib.result = bad_input("libopenblas.so.0 has no cblas_sgemm: install the package libopenblas0-openmp")
                     .as(diagnostic::backend);
    return lib;
  }
  if (const auto set_threads = reinterpret_cast<void (*)(int)>(dlsym(handle, "openblas_set_num_threads"))) {
#if defined(_OPENMP)
    // The build that uses OpenMP sets the size of the calling thread's team with its own.
    const int team = omp_get_max_threads();
    set_threads(1);
    omp_set_num_threads(team);
#else
    set_threads(1);
#endif
  }
  lib.set_team = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
  if (const auto name = reinterpret_cast<char *(*)()>(dlsym(handle, "openblas_get_corename")))
    lib.core_name = name();
  return lib;
}

const library &loaded() {
  static const library lib = open_library();
  return lib;
}

/// Leading dimension and orientation of a matrix in column-major storage.
struct operand {
  int transposed, leading;
};
operand operand_of(const matrix &m) {
  const auto at_least = [](std::int64_t stride, std::int64_t n) {
    return static_cast<int>(std::max<std::int64_t>({stride, n, 1}));
  };
  const bool is_column_major = m.row_stride == 1 || m.rows == 1;
  // A vector fits both ways; the one with a valid leading dimension is taken.
  if (is_column_major && (m.columns == 1 || m.column_stride >= m.rows))
    return {no_transpose, at_least(m.columns == 1 ? 0 : m.column_stride, m.rows)};
  return {transpose, at_least(m.rows == 1 ? 0 : m.row_stride, m.columns)};
}

/// Whether BLAS takes the matrix as it is: one unit stride, the other large enough not to overlap.
bool is_blas_matrix(const matrix &m) {
  constexpr std::int64_t limit = 0x7fffffff;
  if (m.rows > limit || m.columns > limit || m.row_stride > limit || m.column_stride > limit)
    return false;
  const auto fits = [](std::int64_t minor, std::int64_t minor_stride, std::int64_t major, std::int64_t major_stride) {
    return (minor == 1 || minor_stride == 1) && (major == 1 || major_stride >= minor);
  };
  return fits(m.rows, m.row_stride, m.columns, m.column_stride) ||
         fits(m.columns, m.column_stride, m.rows, m.row_stride);
}

} // namespace

status load() { return loaded().result; }
std::string description() { return loaded().file + ", kernels for " + loaded().core_name; }

void multiply(const matrix &c, const matrix &a, const matrix &b, float alpha, float beta) {
  if (c.rows == 0 || c.columns == 0)
    return;
  if (a.columns == 0 || !is_blas_matrix(a) || !is_blas_matrix(b) || !is_blas_matrix(c))
    return gemm_loops(c, a, b, alpha, beta);
  const operand out = operand_of(c);
  if (out.transposed == transpose) // row-major: compute the transpose
    return multiply(c.transposed(), b.transposed(), a.transposed(), alpha, beta);
#if defined(_OPENMP)
  // Outside of a parallel region the library would start a team of its own.
  if (!omp_in_parallel() && omp_get_max_threads() != 1) {
    const int threads = omp_get_max_threads();
    omp_set_num_threads(1);
    const operand left = operand_of(a), right = operand_of(b);
    loaded().sgemm(column_major, left.transposed, right.transposed, static_cast<int>(c.rows),
                   static_cast<int>(c.columns), static_cast<int>(a.columns), alpha, a.data, left.leading, b.data,
                   right.leading, beta, c.data, out.leading);
    omp_set_num_threads(threads);
    return;
  }
#else
  // The number is of the calling thread: on one that has not set it the library would start a team.
  thread_local bool is_alone = false;
  if (!is_alone && loaded().set_team != nullptr)
    loaded().set_team(1);
  is_alone = true;
#endif
  const operand left = operand_of(a), right = operand_of(b);
  loaded().sgemm(column_major, left.transposed, right.transposed, static_cast<int>(c.rows), static_cast<int>(c.columns),
                 static_cast<int>(a.columns), alpha, a.data, left.leading, b.data, right.leading, beta, c.data,
                 out.leading);
}

} // namespace windlass::rt::cpu::openblas
