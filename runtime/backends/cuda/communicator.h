// Collectives on memory of the device.
#ifndef WINDLASS_BACKENDS_CUDA_COMMUNICATOR_H
#define WINDLASS_BACKENDS_CUDA_COMMUNICATOR_H

#include "windlass/rt/communicator.h"

#include <memory>

namespace windlass::rt::cuda {

/// By NCCL, which is opened when it is first needed; bad_input where it is not installed. The members are processes,
/// each with a device of its own, and reach each other by `hosts`. Collective over them.
status make_nccl_communicator(std::unique_ptr<communicator> hosts, stream &s, std::unique_ptr<communicator> &out);

} // namespace windlass::rt::cuda

#endif
