// How the ranks of a job reach each other.
#ifndef WINDLASS_RT_TRANSPORT_H
#define WINDLASS_RT_TRANSPORT_H

#include "windlass/rt/communicator.h"

#include <memory>
#include <vector>

namespace windlass::rt {

/// Makes the transports of `ranks` ranks that are threads of this process; element r belongs to rank r's thread. After
/// one rank aborts, every collective of the others returns an error (code `stopped`) that carries the first reason.
std::vector<std::unique_ptr<transport>> make_local_transports(std::int32_t ranks);

/// Joins the processes that mpirun or srun started. Initialises MPI if it is not yet initialised, and then finalises it
/// with the transport (or its last communicator). Groups on one host exchange through shared memory, unless
/// `shares_memory` is false, others by MPI. `abort` prints the reason and does not return. Returns bad_input when the
/// program was built without MPI.
status make_mpi_transport(std::unique_ptr<transport> &out, bool shares_memory = true);

/// Returns the bytes that a communicator takes in the process of each of its members.
std::int64_t message_bytes(std::int32_t members, bool is_one_host);

/// Returns whether this process was started by an MPI launcher.
bool is_started_by_mpi();
/// Returns whether the program was built with MPI.
bool has_mpi();

} // namespace windlass::rt

#endif
