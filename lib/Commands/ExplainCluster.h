// windlass explain --cluster.
#ifndef WINDLASS_LIB_COMMANDS_EXPLAINCLUSTER_H
#define WINDLASS_LIB_COMMANDS_EXPLAINCLUSTER_H

#include "CommandSupport.h"

#include "llvm/ADT/StringRef.h"

namespace windlass {

/// Prints the cluster that `text` names as a file that --cluster takes, with the source of each figure that has one.
int explainCluster(Console &console, llvm::StringRef text);

/// Prints how long each collective takes on the cluster that the file at `path` lists, as docs/cluster.md describes it.
int explainCollectives(Console &console, llvm::StringRef cluster, llvm::StringRef path, bool asJson);

} // namespace windlass

#endif
