// Messages of up to 1 GiB: between threads, and under mpirun between two processes, through shared memory and through
// MPI itself.
#include "message_checks.h"

#include <cstdio>
#include <thread>

using namespace windlass::rt;

namespace {

/// Half a GiB both ways at once, and 1 GiB one way, which 8 bytes behind it show to be no longer.
std::string check_large(transport &world) {
  std::unique_ptr<communicator> c;
  if (const status s = world.make_communicator({0, 1}, c); !s.is_ok())
    return s.message();
  constexpr std::int64_t gib = std::int64_t(1) << 30;
  if (std::string failure = testing::check_message_size(*c, gib / 2 + 4); !failure.empty())
    return failure;
  testing::message_set one(*c);
  c->index() == 0 ? one.send(1, gib) : one.receive(0, gib);
  return testing::outcome(one.run_together(), one);
}

int report(const transport &world, const char *way, const std::string &failure) {
  if (!failure.empty())
    std::fprintf(stderr, "rank %d, %s: %s\n", world.rank(), way, failure.c_str());
  return failure.empty() ? 0 : 1;
}

int check_processes() {
  int failures = 0;
  std::unique_ptr<transport> shared, by_messages;
  if (!make_mpi_transport(shared).is_ok() || !make_mpi_transport(by_messages, false).is_ok())
    return 1;
  failures += report(*shared, "shared memory", check_large(*shared));
  failures += report(*by_messages, "messages", check_large(*by_messages));
  by_messages.reset();
  return failures;
}

} // namespace

int main() {
  if (is_started_by_mpi())
    return check_processes() == 0 ? 0 : 1;
  std::vector<std::unique_ptr<transport>> world = make_local_transports(2);
  int failures[2] = {};
  std::thread other([&] { failures[1] = report(*world[1], "threads", check_large(*world[1])); });
  failures[0] = report(*world[0], "threads", check_large(*world[0]));
  other.join();
  return failures[0] + failures[1] == 0 ? 0 : 1;
}
