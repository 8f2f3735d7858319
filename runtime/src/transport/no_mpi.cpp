// Stands in for the MPI transport in programs that are built without MPI.
#include "windlass/rt/transport.h"

namespace windlass::rt {

status make_mpi_transport(std::unique_ptr<transport> &, bool) {
  return bad_input(
      "this program was built without MPI: use --communicator local or tcp, or rebuild with -DWINDLASS_MPI=ON");
}

bool has_mpi() { return false; }

} // namespace windlass::rt
