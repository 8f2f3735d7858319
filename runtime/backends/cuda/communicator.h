// Collectives on memory of the device.
#ifndef WINDLASS_BACKENDS_CUDA_COMMUNICATOR_H
#define WINDLASS_BACKENDS_CUDA_COMMUNICATOR_H

#include "windlass/rt/communicator.h"

#include <memory>

namespace windlass::rt::cuda {

/// Opens NCCL; bad_input where it is not installed, or was not when the program was built.
status open_nccl();

/// Makes a communicator by NCCL, which is opened when it is first needed. Each member has a device of its own, and they
/// reach each other by `hosts`. Collective over them.
status make_nccl_communicator(std::unique_ptr<communicator> hosts, stream &s, std::unique_ptr<communicator> &out);

} // namespace windlass::rt::cuda

#endif
