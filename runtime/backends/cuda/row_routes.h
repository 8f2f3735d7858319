// Exchanges of rows in the device's memory.
#ifndef WINDLASS_BACKENDS_CUDA_ROW_ROUTES_H
#define WINDLASS_BACKENDS_CUDA_ROW_ROUTES_H

#include "windlass/rt/communicator.h"

namespace windlass::rt::cuda {

/// communicator::gather_rows on a stream, by the communicator's messages. The host waits for the stream, since it must
/// know how many rows go to each member; actions with such commands are not recorded as graphs.
status gather_rows(communicator &c, stream &s, std::byte *out, std::byte *scratch, const std::byte *in,
                   const detail::row_routes &of);
/// communicator::scatter_rows, likewise.
status scatter_rows(communicator &c, stream &s, std::byte *out, std::byte *scratch, std::byte *in,
                    const detail::row_routes &of);

} // namespace windlass::rt::cuda

#endif
