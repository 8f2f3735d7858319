// Runs the tests where the back end can run at all; with --instructions=baseline by the kernels for such processors.
#include "windlass/rt/backend.h"
#include "windlass/rt/detail/instructions.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--instructions=baseline")
      windlass::rt::detail::limit_instructions(windlass::rt::detail::instruction_set::baseline);
  const windlass::rt::status found = windlass::rt::describe_backend().result;
  if (!found.is_ok() && !::testing::GTEST_FLAG(list_tests)) {
    std::fprintf(stderr, "error: %s\n", found.message().c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
