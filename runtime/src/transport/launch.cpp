#include "windlass/rt/transport.h"

#include <cstdlib>

namespace windlass::rt {

bool is_started_by_mpi() {
  // The variables of Open MPI; of MPICH and its relatives; of Slurm's own launch with PMIx or PMI-2.
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr)
      return true;
  return false;
}

} // namespace windlass::rt
