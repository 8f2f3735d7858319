#include "windlass/Support/LauncherVariables.h"

#include "llvm/ADT/STLExtras.h"

#include <unistd.h>

using namespace windlass;

bool windlass::isLauncherVariable(llvm::StringRef name) {
  // PMIX_MCA_* and most of OMPI_MCA_* are the user's settings.
  if (name.starts_with("PMIX_MCA_"))
    return false;
  for (llvm::StringRef prefix : {"OMPI_COMM_WORLD_", "OMPI_MCA_ess", "OMPI_MCA_orte_ess_", "PMIX_", "PMI_"})
    if (name.starts_with(prefix))
      return true;
  static constexpr llvm::StringLiteral names[] = {
      "MPI_LOCALNRANKS",
      "MPI_LOCALRANKID",
      "OMPI_APP_CTX_NUM_PROCS",
      "OMPI_ARGV",
      "OMPI_COMMAND",
      "OMPI_FILE_LOCATION",
      "OMPI_FIRST_RANKS",
      "OMPI_MCA_orte_app_num",
      "OMPI_MCA_orte_bound_at_launch",
      "OMPI_MCA_orte_hnp_uri",
      "OMPI_MCA_orte_jobfam_session_dir",
      "OMPI_MCA_orte_launch",
      "OMPI_MCA_orte_local_daemon_uri",
      "OMPI_MCA_orte_num_nodes",
      "OMPI_MCA_orte_top_session_dir",
      "OMPI_NUM_APP_CTX",
      "OMPI_UNIVERSE_SIZE",
      "SLURM_LOCALID",
      "SLURM_NODEID",
      "SLURM_PROCID",
  };
  return llvm::is_contained(names, name);
}

std::vector<std::string> windlass::environmentOfPrograms() {
  std::vector<std::string> kept;
  for (char **entry = environ; *entry; ++entry)
    if (!isLauncherVariable(llvm::StringRef(*entry).split('=').first))
      kept.push_back(*entry);
  return kept;
}
