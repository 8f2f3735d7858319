// Collectives of the runtime beside those of MPI, in turns within one job.
//
// usage: mpirun -n RANKS windlass_collectives [LARGEST_MIB [TURNS]]
//
// Sizes are those of the larger buffer of a rank; the buffers lie in an arena, as a program's do. Each time is the
// longest of all ranks' from a barrier on; printed are the medians over the turns.
#include "windlass/rt/context.h"
#include "windlass/rt/kernel_times.h"
#include "windlass/rt/transport.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <vector>

using namespace windlass::rt;

namespace {

double median_seconds(int turns, const std::function<void()> &run) {
  std::vector<double> seconds(static_cast<std::size_t>(turns));
  for (double &taken : seconds) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = clock_seconds();
    run();
    taken = clock_seconds() - start;
    MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  }
  std::nth_element(seconds.begin(), seconds.begin() + turns / 2, seconds.end());
  return seconds[static_cast<std::size_t>(turns / 2)];
}

void expect(const status &done) {
  if (done.is_ok())
    return;
  std::fprintf(stderr, "%s\n", done.message().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

} // namespace

int main(int argc, char **argv) {
  const std::int64_t most = (argc > 1 ? std::atol(argv[1]) : 256) << 20;
  const int most_turns = argc > 2 ? std::atoi(argv[2]) : 50;
  std::unique_ptr<transport> world;
  std::unique_ptr<communicator> all;
  if (const status started = make_mpi_transport(world); !started.is_ok())
    return std::fprintf(stderr, "%s\n", started.message().c_str()), 1;
  std::vector<std::int32_t> members(static_cast<std::size_t>(world->size()));
  std::iota(members.begin(), members.end(), 0);
  if (most < 1 << 20 || most_turns < 1 || !world->make_communicator(members, all).is_ok())
    return std::fprintf(stderr, "usage: mpirun -n RANKS windlass_collectives [LARGEST_MIB [TURNS]]\n"), 2;
  const std::int32_t ranks = world->size();
  arena memory;
  expect(memory.allocate(2 * most, "benchmark's"));
  std::byte *const from = memory.at(0), *const to = memory.at(most);
  auto *const in = reinterpret_cast<float *>(from), *const out = reinterpret_cast<float *>(to);
  std::fill(in, in + most / 4, 1.0f);
  if (world->rank() == 0)
    std::printf("%d ranks; milliseconds of Windlass and of MPI, and how many times as fast the first is\n%10s"
                "  %-26s%-26s%-26s%-26s\n",
                ranks, "bytes", "all-reduce", "all-gather", "reduce-scatter", "all-to-all");
  for (std::int64_t bytes = 1024; bytes <= most; bytes *= 4) {
    const auto n = static_cast<int>(bytes / 4), each = n / ranks;
    const int turns = std::clamp(static_cast<int>((std::int64_t(1) << 30) / bytes), 5, most_turns);
    const std::pair<std::function<void()>, std::function<void()>> pairs[] = {
        {[&] { expect(all->all_reduce(to, n, element_type::f32, reduction::sum)); },
         [&] { MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }},
        {[&] { expect(all->all_gather(to, from, each * 4)); },
         [&] { MPI_Allgather(in, each, MPI_FLOAT, out, each, MPI_FLOAT, MPI_COMM_WORLD); }},
        {[&] { expect(all->reduce_scatter(to, from, each, element_type::f32)); },
         [&] { MPI_Reduce_scatter_block(in, out, each, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }},
        {[&] { expect(all->all_to_all(to, from, each * 4)); },
         [&] { MPI_Alltoall(in, each, MPI_FLOAT, out, each, MPI_FLOAT, MPI_COMM_WORLD); }}};
    if (world->rank() == 0)
      std::printf("%10lld", static_cast<long long>(bytes));
    for (const auto &[own, rival] : pairs) {
      std::fill(out, out + most / 4, 0.0f); // sums of sums would overflow
      own();
      rival();
      const double ours = median_seconds(turns, own), theirs = median_seconds(turns, rival);
      if (world->rank() == 0)
        std::printf("  %8.3f %8.3f %5.2f ", ours * 1e3, theirs * 1e3, theirs / ours);
    }
    if (world->rank() == 0)
      std::printf("\n"), std::fflush(stdout);
  }
  return 0;
}
