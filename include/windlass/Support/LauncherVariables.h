// Variables of the environment by which an MPI launcher tells a process which rank of which job it is.
#ifndef WINDLASS_SUPPORT_LAUNCHERVARIABLES_H
#define WINDLASS_SUPPORT_LAUNCHERVARIABLES_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace windlass {

/// Whether a launcher sets a variable of this name to say which process of a job this is. What configures a launcher,
/// such as OMPI_MCA_btl or SLURM_JOB_NODELIST, is not meant.
bool isLauncherVariable(llvm::StringRef name);

/// The environment for programs that windlass starts: its own but for those variables. Windlass starts ranks itself; a
/// job that it happens to be inside of is not theirs.
std::vector<std::string> environmentOfPrograms();

} // namespace windlass

#endif
