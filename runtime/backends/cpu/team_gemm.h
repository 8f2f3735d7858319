// A product of matrices that a team divides.
#ifndef WINDLASS_BACKENDS_CPU_TEAM_GEMM_H
#define WINDLASS_BACKENDS_CPU_TEAM_GEMM_H

#include "gemm.h"

#include "windlass/rt/detail/team.h"

namespace windlass::rt::cpu {

/// The floating-point operations that are worth a thread of the team.
constexpr std::int64_t gemm_flops_per_thread = 1 << 19;

/// How the result of one GEMM is cut among threads: borders on multiples of 16, parts as square as can be.
struct gemm_grid {
  std::int64_t rows = 1, columns = 1;
  gemm_grid(std::int64_t m, std::int64_t n, std::int64_t parts) {
    std::int64_t best = -1;
    for (std::int64_t r = 1; r <= parts; ++r) {
      if (parts % r != 0)
        continue;
      const std::int64_t c = parts / r;
      const auto span = [](std::int64_t size, std::int64_t p) { return ((size + 15) / 16 + p - 1) / p * 16; };
      const std::int64_t height = span(m, r), width = span(n, c);
      // The longest thread's work first, then what it reads.
      const std::int64_t cost = height * width * 64 + height + width;
      if (best < 0 || cost < best) {
        best = cost;
        rows = r;
        columns = c;
      }
    }
  }
  static std::int64_t begin(std::int64_t size, std::int64_t parts, std::int64_t part) {
    const std::int64_t blocks = (size + 15) / 16;
    return std::min(size, blocks * part / parts * 16);
  }
};

/// c = a b + beta * c, divided among as many of the threads as it is worth; any strides.
inline void team_gemm(const matrix &c, const matrix &a, const matrix &b, float beta, std::int32_t threads) {
  const std::int32_t parts = detail::part_count(2 * c.rows * c.columns * a.columns, gemm_flops_per_thread, threads);
  const gemm_grid cut(c.rows, c.columns, parts);
  detail::for_parts(parts, parts, [&](std::int64_t begin, std::int64_t end, std::int32_t) {
    for (std::int64_t part = begin; part < end; ++part) {
      const std::int64_t row = gemm_grid::begin(c.rows, cut.rows, part / cut.columns),
                         height = gemm_grid::begin(c.rows, cut.rows, part / cut.columns + 1) - row,
                         column = gemm_grid::begin(c.columns, cut.columns, part % cut.columns),
                         width = gemm_grid::begin(c.columns, cut.columns, part % cut.columns + 1) - column;
      if (height > 0 && width > 0)
        gemm(c.part(row, column, height, width), a.part(row, 0, height, a.columns), b.part(0, column, b.rows, width),
             1.0f, beta);
    }
  });
}

} // namespace windlass::rt::cpu

#endif
