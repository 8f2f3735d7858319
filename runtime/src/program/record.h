// RUN/run.json: what ran, with which settings, on which machine, in how much memory. For people and `windlass report`.
#ifndef WINDLASS_RT_SRC_PROGRAM_RECORD_H
#define WINDLASS_RT_SRC_PROGRAM_RECORD_H

#include "options.h"

#include "windlass/rt/communicator.h"
#include "windlass/rt/program.h"
#include "windlass/rt/reserve.h"

#include <string>
#include <vector>

namespace windlass::rt {

/// The facts that one rank gives about itself; plain bytes, because ranks exchange them.
struct rank_facts {
  char host[64] = {};
  std::int64_t peak_bytes = 0; ///< resident memory of its process
};
rank_facts describe_rank();

struct run_record {
  std::string data;
  std::uint64_t seed = 0;
  std::int64_t first_step = 0;
  std::int32_t threads = 0;
  std::int64_t started = 0; ///< seconds since 1970
  /// Known at the end: the last step done, and every rank.
  std::int64_t last_step = -1;
  std::vector<rank_facts> ranks;
  reserve beside_arenas;
};

/// Writes the record as one step. Called when a run starts, so that one that dies leaves it, and again when it ends.
status write_record(const job &j, const options &o, const run_record &record);

/// Copies memory.json, which lies beside the program, into the run's folder, so that the page of the run can draw it.
/// Does nothing where the program has no such file.
status keep_memory_file(const std::string &run);

} // namespace windlass::rt

#endif
