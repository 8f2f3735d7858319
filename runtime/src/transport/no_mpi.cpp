// Stands in for the MPI transport in programs that are built without MPI.
#include "windlass/rt/transport.h"

namespace windlass::rt {

status make_mpi_transport(std::unique_ptr<transport> &, bool) {
  return bad_input("this program was built without MPI: use --communicator local, or rebuild with -DWINDLASS_MPI=ON");
}

std::int64_t message_bytes(std::int32_t, bool) { return 0; }

bool has_mpi() { return false; }

} // namespace windlass::rt
