// Run under mpirun: the collectives between processes, through shared memory and through MPI itself.
#include "collective_checks.h"

#include "windlass/rt/transport.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#if defined(__linux__)
#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

using namespace windlass::rt;

namespace {

/// From now on the system refuses to let this process read the memory of others, as hardened systems do.
bool refuse_peer_memory() {
#if defined(__linux__)
  sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_process_vm_readv, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter = {sizeof rules / sizeof *rules, rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
#else
  return true;
#endif
}

} // namespace

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
  const bool refuses = argc > 1 && std::strcmp(argv[1], "--refuse") == 0;
  // One rank is enough: the others must not read either.
  if (refuses && world->rank() == world->size() - 1 && !refuse_peer_memory())
    return std::fprintf(stderr, "cannot install a filter of system calls\n"), 1;
  int failures = 0;
  for (transport *each : {world.get(), by_messages.get()}) {
    if (refuses && each == by_messages.get())
      continue; // MPI found out before that it can
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
