#include "windlass/rt/kernels.h"
#include "windlass/rt/map.h"
#include "windlass/rt/null_backend.h"
#include "windlass/rt/streams.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace windlass::rt {
namespace {

std::vector<std::string> calls;

struct negate {
  static constexpr const char *name = "negate";
  using outputs = type_list<float>;
  using inputs = type_list<float>;
  static void apply(float &r0, float a0) { r0 = -a0; }
};

TEST(Null, KeepsTheOrderAndTouchesNothing) {
  set_null_observer([](const stream &, const char *kernel) { calls.emplace_back(kernel); });
  const std::unique_ptr<stream> s = make_worker_stream(1, nullptr, 0);
  // An address that must not be read or written.
  auto *nowhere = reinterpret_cast<std::byte *>(std::uintptr_t(8192));
  const view m = dense_view(nowhere, element_type::f32, {4, 4});
  EXPECT_TRUE(fill(*s, m, 1).is_ok());
  EXPECT_TRUE(matmul(*s, m, m, m, 0, 1, false).is_ok());
  EXPECT_TRUE(map(*s, negate(), {m}, {m}).is_ok());
  EXPECT_TRUE(softmax(*s, m, m).is_ok());
  EXPECT_TRUE(s->synchronize().is_ok());
  set_null_observer(nullptr);
  EXPECT_EQ(calls, (std::vector<std::string>{"fill", "matmul", "softmax"}));
}

} // namespace
} // namespace windlass::rt
