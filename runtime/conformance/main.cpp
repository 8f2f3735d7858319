// Runs the tests where the back end can run at all.
#include "windlass/rt/backend.h"

#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char **argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const windlass::rt::status found = windlass::rt::describe_backend().result;
  if (!found.is_ok() && !::testing::GTEST_FLAG(list_tests)) {
    std::fprintf(stderr, "error: %s\n", found.message().c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
