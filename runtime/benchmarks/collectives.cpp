// Collectives of the runtime beside those of MPI, in turns within one job.
//
// usage: mpirun -n RANKS windlass_collectives [LARGEST_MIB [TURNS]]
//
// Sizes are those of the larger buffer of a rank; the buffers lie in an arena, as a program's do. Each time is the
// longest of all ranks' from a barrier on; printed are the medians over the turns.
//
// `rows` are those of tokens that choose 2 of 8 experts at random, 1 KiB each: Windlass gathers all choices and puts
// each row where its token's belongs; with MPI ranks exchange the numbers of rows, and then the rows packed
// (Alltoallv).
#include "windlass/rt/context.h"
#include "windlass/rt/kernel_times.h"
#include "windlass/rt/transport.h"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

constexpr std::int64_t columns = 256, row_bytes = 4 * columns, chosen = 2, experts = 8;

/// An exchange of rows among all ranks.
class row_exchange {
public:
  /// `memory` is for scratch; `from` and `to` for rows.
  row_exchange(communicator &all, std::int64_t tokens, std::byte *from, std::byte *to, std::byte *scratch)
      : all_(all), tokens_(tokens), from_(from), to_(to), scratch_(scratch),
        own_(static_cast<std::size_t>(tokens * chosen)), choices_(own_.size() * static_cast<std::size_t>(all.size())),
        lists_(3, std::vector<int>(static_cast<std::size_t>(all.size()))), coming_(lists_[0]), places_(lists_[0]) {
    std::uint32_t state = 1u + static_cast<std::uint32_t>(all.index());
    const auto draw = [&] {
      return static_cast<std::int64_t>((state = state * 1664525u + 1013904223u) >> 16) % experts;
    };
    for (std::size_t i = 0; i < own_.size(); i += 2) {
      own_[i] = draw();
      own_[i + 1] = (own_[i] + 1 + draw() % (experts - 1)) % experts;
    }
  }

  void run_own() {
    expect(all_.all_gather(reinterpret_cast<std::byte *>(choices_.data()),
                           reinterpret_cast<const std::byte *>(own_.data()), tokens_ * chosen * 8));
    expect(all_.gather_rows(to_, scratch_, from_,
                            {choices_.data(), tokens_, chosen, experts / all_.size(), columns, element_type::f32}));
  }

  void run_rival() {
    std::vector<int> &counts = lists_[0], &begins = lists_[1];
    const detail::row_routes of = {own_.data(), tokens_, chosen, experts / all_.size(), columns, element_type::f32};
    std::byte *next = scratch_;
    for (std::int32_t to = 0; to < all_.size(); ++to) {
      begins[static_cast<std::size_t>(to)] = static_cast<int>((next - scratch_) / 4);
      for (std::int64_t token = 0; token < tokens_; ++token)
        if (of.reaches(token, to)) {
          std::memcpy(next, from_ + token * row_bytes, row_bytes);
          next += row_bytes;
        }
      counts[static_cast<std::size_t>(to)] =
          static_cast<int>((next - scratch_) / 4) - begins[static_cast<std::size_t>(to)];
    }
    MPI_Alltoall(counts.data(), 1, MPI_INT, coming_.data(), 1, MPI_INT, MPI_COMM_WORLD);
    std::exclusive_scan(coming_.begin(), coming_.end(), places_.begin(), 0);
    MPI_Alltoallv(scratch_, counts.data(), begins.data(), MPI_FLOAT, to_, coming_.data(), places_.data(), MPI_FLOAT,
                  MPI_COMM_WORLD);
  }

private:
  communicator &all_;
  std::int64_t tokens_;
  std::byte *from_, *to_, *scratch_;
  std::vector<std::int64_t> own_, choices_;
  std::vector<std::vector<int>> lists_;
  std::vector<int> coming_, places_;
};

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
  arena memory;
  const std::int32_t ranks = world->size();
  // The scratch is for one row of each choice, of this rank's own experts too, and for lists.
  const std::int64_t most_tokens = most / row_bytes / ranks,
                     scratch = chosen * most_tokens * row_bytes + 2 * ranks * (most_tokens + 1) * 4;
  expect(memory.allocate(2 * most + scratch, "benchmark's"));
  std::byte *const from = memory.at(0), *const to = memory.at(most);
  auto *const in = reinterpret_cast<float *>(from), *const out = reinterpret_cast<float *>(to);
  std::fill(in, in + most / 4, 1.0f);
  if (world->rank() == 0)
    std::printf("%d ranks; milliseconds of Windlass and of MPI, and how many times as fast the first is\n%10s"
                "  %-26s%-26s%-26s%-26s%-26s\n",
                ranks, "bytes", "all-reduce", "all-gather", "reduce-scatter", "all-to-all", "rows");
  for (std::int64_t bytes = 1024; bytes <= most; bytes *= 4) {
    const auto n = static_cast<int>(bytes / 4), each = n / ranks;
    row_exchange rows(*all, std::max<std::int64_t>(bytes / row_bytes / ranks, 1), from, to, memory.at(2 * most));
    const int turns = std::clamp(static_cast<int>((std::int64_t(1) << 30) / bytes), 5, most_turns);
    const std::pair<std::function<void()>, std::function<void()>> pairs[] = {
        {[&] { expect(all->all_reduce(to, n, element_type::f32, reduction::sum)); },
         [&] { MPI_Allreduce(MPI_IN_PLACE, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }},
        {[&] { expect(all->all_gather(to, from, each * 4)); },
         [&] { MPI_Allgather(in, each, MPI_FLOAT, out, each, MPI_FLOAT, MPI_COMM_WORLD); }},
        {[&] { expect(all->reduce_scatter(to, from, each, element_type::f32)); },
         [&] { MPI_Reduce_scatter_block(in, out, each, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }},
        {[&] { expect(all->all_to_all(to, from, each * 4)); },
         [&] { MPI_Alltoall(in, each, MPI_FLOAT, out, each, MPI_FLOAT, MPI_COMM_WORLD); }},
        {[&] { rows.run_own(); }, [&] { rows.run_rival(); }}};
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
