// The bigram programs as emitted ones would be: an executable whose ranks are processes or threads.
#include "test_programs.h"

#include <cstdlib>
#include <cstring>

int main(int argc, char **argv) {
  const char *groups = std::getenv("BIGRAM_RANKS");
  if (const char *positions = std::getenv("BIGRAM_POSITIONS"))
    return windlass::rt::run_program(windlass::rt::test::pipeline_job(std::strcmp(positions, "2") == 0 ? 2 : 1, 1),
                                     argc, argv);
  return windlass::rt::run_program(windlass::rt::test::bigram_program(groups && std::strcmp(groups, "2") == 0 ? 2 : 1),
                                   argc, argv);
}
