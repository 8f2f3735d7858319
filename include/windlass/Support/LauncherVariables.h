// Variables of the environment by which an MPI launcher tells a process which rank of which job it is.
#ifndef WINDLASS_SUPPORT_LAUNCHERVARIABLES_H
#define WINDLASS_SUPPORT_LAUNCHERVARIABLES_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace windlass {

/// Returns whether a launcher sets a variable of this name to say which process of a job this is. Variables that
/// configure a launcher, such as OMPI_MCA_btl or SLURM_JOB_NODELIST, are not meant.
bool isLauncherVariable(llvm::StringRef name);

/// Returns the environment for programs that windlass starts: its own without those variables. Windlass starts ranks
/// itself; a job that windlass happens to run in is not the ranks' job.
std::vector<std::string> environmentOfPrograms();

} // namespace windlass

#endif
