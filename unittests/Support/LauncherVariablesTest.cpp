#include "windlass/Support/LauncherVariables.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

#include <cstdlib>

using namespace windlass;

namespace {

TEST(LauncherVariables, WhatSaysWhichRankThisIs) {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMIX_SERVER_URI41", "PMI_SIZE", "SLURM_PROCID",
                           "OMPI_MCA_ess_base_vpid", "OMPI_MCA_orte_hnp_uri"})
    EXPECT_TRUE(isLauncherVariable(name)) << name;
  // Settings, and what a launcher in an allocation needs.
  for (const char *name : {"OMPI_MCA_btl", "OMPI_MCA_orte_tmpdir_base", "PMIX_MCA_gds", "SLURM_JOB_NODELIST",
                           "SLURM_NTASKS", "PATH", "PMIXED"})
    EXPECT_FALSE(isLauncherVariable(name)) << name;
}

TEST(LauncherVariables, ProgramsDoNotGetThem) {
  setenv("PMIX_RANK", "3", 1);
  setenv("OMPI_MCA_btl", "self", 1);
  std::vector<std::string> environment = environmentOfPrograms();
  EXPECT_FALSE(llvm::is_contained(environment, "PMIX_RANK=3"));
  EXPECT_TRUE(llvm::is_contained(environment, "OMPI_MCA_btl=self"));
}

} // namespace
