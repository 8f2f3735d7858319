#include "windlass/rt/transport.h"

#include <cerrno>
#include <cstdlib>
#include <string>

namespace windlass::rt {

bool is_started_by_mpi() {
  // The variables of Open MPI; of MPICH and its relatives; of Slurm's own launch with PMIx or PMI-2.
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr)
      return true;
  return false;
}

bool is_started_by_variables() {
  for (const char *name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    if (std::getenv(name) == nullptr)
      return false;
  return true;
}

/// Reads a whole number from a variable.
static status read_number(const char *name, long least, long most, long &out) {
  const char *text = std::getenv(name);
  if (text == nullptr)
    return bad_input(std::string("the variable ") + name +
                     " is not set; a rank needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT")
        .as(diagnostic::launch);
  char *end = nullptr;
  errno = 0;
  out = std::strtol(text, &end, 10);
  if (*text == 0 || *end != 0 || errno != 0 || out < least || out > most)
    return bad_input(std::string("the variable ") + name + " is no whole number from " + std::to_string(least) +
                     " to " + std::to_string(most))
        .as(diagnostic::launch);
  return ok_status();
}

status read_launch_variables(launch_variables &out) {
  long rank = 0, size = 0, port = 0;
  WINDLASS_TRY(read_number("WORLD_SIZE", 1, 1 << 20, size));
  WINDLASS_TRY(read_number("RANK", 0, size - 1, rank));
  WINDLASS_TRY(read_number("MASTER_PORT", 1, 65534, port));
  const char *address = std::getenv("MASTER_ADDR");
  if (address == nullptr || *address == 0)
    return bad_input("the variable MASTER_ADDR is not set; it names the host of rank 0").as(diagnostic::launch);
  // torchrun's own process may keep a store at that port.
  const char *store = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
  const bool is_taken = store != nullptr && std::string(store) == "True";
  out = {static_cast<std::int32_t>(rank), static_cast<std::int32_t>(size), address,
         static_cast<std::uint16_t>(port + (is_taken ? 1 : 0))};
  return ok_status();
}

} // namespace windlass::rt
