// The bigram program as an emitted one would be: an executable whose ranks are processes or threads.
#include "test_programs.h"

#include <cstdlib>
#include <cstring>

int main(int argc, char **argv) {
  const char *groups = std::getenv("BIGRAM_RANKS");
  return windlass::rt::run_program(windlass::rt::test::bigram_program(groups && std::strcmp(groups, "2") == 0 ? 2 : 1),
                                   argc, argv);
}
