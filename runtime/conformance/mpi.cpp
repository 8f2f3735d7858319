// Run under mpirun: collectives and messages between processes, through shared memory and through MPI itself.
#include "collective_checks.h"
#include "message_checks.h"

#include "windlass/rt/transport.h"

#include <csignal>
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

/// One rank gives up, or stands still, while others wait for it in a collective or for a message.
int wait_for_lost(transport &world, const char *how, const char *which) {
  std::vector<std::int32_t> all;
  for (std::int32_t rank = 0; rank < world.size(); ++rank)
    all.push_back(rank);
  std::unique_ptr<communicator> c;
  if (const status s = world.make_communicator(all, c); !s.is_ok())
    return 1;
  const std::int32_t last = world.size() - 1;
  testing::message_set set(*c);
  if (world.rank() == last && std::strcmp(how, "--lose") == 0)
    std::raise(SIGSTOP);
  if (world.rank() == last)
    world.abort(bad_input("no more data"));
  const bool sends = std::strcmp(which, "send") == 0 || world.rank() % 2 == 1;
  sends ? set.send(last, 1 << 20) : set.receive(last, 1 << 20);
  const status result = std::strcmp(how, "--abort") == 0 ? c->barrier() : set.run_together();
  if (!result.is_ok())
    world.abort(result);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  std::unique_ptr<transport> world, by_messages;
  // Two transports over one MPI: the first one ends it.
  if (const status s = make_mpi_transport(world); !s.is_ok())
    return std::fprintf(stderr, "%s\n", s.message().c_str()), 1;
  if (const status s = make_mpi_transport(by_messages, false); !s.is_ok())
    return std::fprintf(stderr, "%s\n", s.message().c_str()), 1;
  if (argc > 2)
    return wait_for_lost(std::strcmp(argv[2], "messages") == 0 ? *by_messages : *world, argv[1], argv[2]);
  const bool refuses = argc > 1 && std::strcmp(argv[1], "--refuse") == 0;
  // One rank is enough: the others must not read either.
  if (refuses && world->rank() == world->size() - 1 && !refuse_peer_memory())
    return std::fprintf(stderr, "cannot install a filter of system calls\n"), 1;
  int failures = 0;
  for (transport *each : {world.get(), by_messages.get()}) {
    if (refuses && each == by_messages.get())
      continue; // MPI found out before that it can
    std::string failure = testing::check_collectives(*each);
    if (failure.empty() && each->size() > 1)
      failure = testing::check_messages(*each);
    if (!failure.empty()) {
      std::fprintf(stderr, "rank %d, %s: %s\n", each->rank(), each == world.get() ? "shared memory" : "messages",
                   failure.c_str());
      ++failures;
    }
  }
  by_messages.reset();
  return failures == 0 ? 0 : 1;
}
