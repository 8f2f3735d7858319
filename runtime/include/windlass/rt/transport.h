// How the ranks of a job reach each other.
#ifndef WINDLASS_RT_TRANSPORT_H
#define WINDLASS_RT_TRANSPORT_H

#include "windlass/rt/communicator.h"

#include <cstdint>
#include <memory>
#include <string>
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

/// What the environment tells a process of a job in the way of torchrun: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
struct launch_variables {
  std::int32_t rank = 0, size = 1;
  std::string address;    ///< of rank 0's host
  std::uint16_t port = 0; ///< at which rank 0 waits for the others
};

/// Joins the other processes of such a job over TCP; ranks wait three minutes for each other. Groups on one host
/// exchange through shared memory, unless `shares_memory` is false. `abort` prints the reason and does not return.
/// Whoever reaches the port and knows this form may join, as with torchrun: the network has to be trusted.
status make_tcp_transport(const launch_variables &job, std::unique_ptr<transport> &out, bool shares_memory = true);

/// Returns the bytes that a communicator takes in the process of each of its members.
std::int64_t message_bytes(std::int32_t members, bool is_one_host);

/// Returns whether this process was started by an MPI launcher.
bool is_started_by_mpi();
/// Returns whether all variables of such a job are set.
bool is_started_by_variables();
/// Reads them. Where torchrun keeps a store of its own at MASTER_PORT, rank 0 waits at the next port.
status read_launch_variables(launch_variables &out);
/// Returns whether the program was built with MPI.
bool has_mpi();

} // namespace windlass::rt

#endif
