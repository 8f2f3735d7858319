// The hosts that a run's ranks are started on.
#ifndef WINDLASS_PROGRAMS_HOSTS_H
#define WINDLASS_PROGRAMS_HOSTS_H

#include "windlass/rt/status.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace windlass {

/// A host by the name that SSH reaches it by, and how many ranks it runs.
struct RankHost {
  std::string name;
  int64_t ranks = 1;
};

/// Reads the value of `--hosts`: a list such as "a:4,b:4", or the path of a file, which holds a slash. A line of the
/// file is a host as in Open MPI's host files, "a slots=4"; what follows a '#' is a comment. A host without a number
/// runs one rank.
llvm::Expected<std::vector<RankHost>> readHosts(llvm::StringRef text);

int64_t countRanks(llvm::ArrayRef<RankHost> hosts);

/// Returns a list such as "a:4,b:4".
std::string listOf(llvm::ArrayRef<RankHost> hosts);

/// Fails with the first host, other than this machine, that SSH does not reach without a question, or that has another
/// Open MPI.
rt::status checkHosts(llvm::ArrayRef<RankHost> hosts);

/// Fails with the first host that does not have the file `path`, the built program.
rt::status checkHostsSee(llvm::ArrayRef<RankHost> hosts, const std::string &path);

} // namespace windlass

#endif
