// Jobs of one position, as tests put them together by hand.
#ifndef WINDLASS_RT_CONFORMANCE_ONE_JOB_H
#define WINDLASS_RT_CONFORMANCE_ONE_JOB_H

#include "windlass/rt/program.h"

namespace windlass::rt {

/// A job whose ranks all run one program, on a mesh of these axes.
struct one_job {
  explicit one_job(span<axis> axes, const program &its = {}, const job &of = {}) : p(its), j(of) {
    position = {axes, 0, 1, &p};
    for (const axis &each : axes)
      position.ranks *= each.size;
    j.version = job_version;
    j.positions = {&position, 1};
  }
  one_job(const one_job &other) : one_job(other.position.axes, other.p, other.j) {}
  one_job &operator=(const one_job &) = delete;
  operator const job &() const { return j; }

  program p;
  position_entry position;
  job j;
};

} // namespace windlass::rt

#endif
