// The back end that a program computes with: for reports, and for tools that look at a machine before anything runs on
// it.
#ifndef WINDLASS_RT_BACKEND_H
#define WINDLASS_RT_BACKEND_H

#include "windlass/rt/status.h"

#include <string>

namespace windlass::rt {

struct backend_facts {
  std::string name; ///< cpu or null
  std::string
      gemm;      ///< what multiplies matrices: our kernels, or a library's file and its kernels; empty if nothing can
  status result; ///< why the back end cannot run here
};

/// Loads what the back end needs and describes it.
backend_facts describe_backend();

} // namespace windlass::rt

#endif
