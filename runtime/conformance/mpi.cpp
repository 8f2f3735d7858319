// Run under mpirun: the collectives between processes, through shared memory and through MPI itself.
#include "collective_checks.h"

#include "windlass/rt/transport.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace windlass::rt;

int main(int argc, char **argv) {
  std::unique_ptr<transport> world, by_messages;
  // Two transports over one MPI: the first one ends it.
  if (const status s = make_mpi_transport(world); !s.is_ok())
    return std::fprintf(stderr, "%s\n", s.message().c_str()), 1;
  if (const status s = make_mpi_transport(by_messages, false); !s.is_ok())
    return std::fprintf(stderr, "%s\n", s.message().c_str()), 1;
  if (argc > 2 && std::strcmp(argv[1], "--abort") == 0) {
    // One rank gives up while the others wait for it.
    transport &chosen = std::strcmp(argv[2], "shared") == 0 ? *world : *by_messages;
    std::vector<std::int32_t> all;
    for (std::int32_t rank = 0; rank < world->size(); ++rank)
      all.push_back(rank);
    std::unique_ptr<communicator> c;
    if (const status s = chosen.make_communicator(all, c); !s.is_ok())
      return 1;
    if (world->rank() == world->size() - 1)
      chosen.abort(bad_input("no more data"));
    (void)c->barrier();
    return 0;
  }
  int failures = 0;
  for (transport *each : {world.get(), by_messages.get()}) {
    const std::string failure = testing::check_collectives(*each);
    if (!failure.empty()) {
      std::fprintf(stderr, "rank %d, %s: %s\n", each->rank(), each == world.get() ? "shared memory" : "messages",
                   failure.c_str());
      ++failures;
    }
  }
  by_messages.reset();
  return failures == 0 ? 0 : 1;
}
